import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type RunningServer, startServer } from './server-process.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-process-'));
});
afterEach(() => rm(directory, { recursive: true }));

/** A program whose process is ready at once, or never. */
function start(program: string, isReady: boolean, readyTimeoutMs = 60_000): Promise<RunningServer> {
  return startServer(directory, async () => ({
    name: 'The ingest service',
    label: 'ingest',
    args: ['-e', program],
    ends: 'channel',
    url: '',
    answers: () => (isReady ? Promise.resolve() : Promise.reject(new Error('no answer'))),
    readyTimeoutMs,
  }));
}

const failing = (lines: readonly string[]) =>
  start(
    `process.stderr.write(${JSON.stringify(lines.map((line) => `${line}\n`).join(''))}); process.exitCode = 1`,
    false,
  );

describe('a process that ends before it is ready', () => {
  it('is left to speak for itself when it said what is wrong', async () => {
    const lines = ['{"level":30}', 'meterline-ingest: LOG_LEVEL must be loud', 'meterline-ingest: PORT must be a port'];
    await expect(failing(lines)).rejects.toMatchObject({
      code: 'exited_early',
      message: 'LOG_LEVEL must be loud; PORT must be a port',
    });
  });

  it.each([[['meterline-ingest: a thing', 'Error: a defect', '    at somewhere']], [[]]])(
    'is quoted when it ended in any other way: %j',
    async (lines) => {
      const log = join(directory, 'ingest.log');
      await expect(failing(lines)).rejects.toThrow(
        `The ingest service ended before it was ready (exit code 1). The end of ${log}:\n${lines.join('\n')}`,
      );
    },
  );
});

it('a process that never answers is killed, and the message says so', async () => {
  await expect(start('setInterval(() => {}, 1000)', false, 50)).rejects.toMatchObject({ code: 'not_ready_in_time' });
});

it('a log that has grown too long is put aside at the next start', async () => {
  const log = join(directory, 'ingest.log');
  await writeFile(log, '');
  await truncate(log, 30 * 1024 * 1024);
  const server = await start('setInterval(() => console.log("new"), 10)', true);
  while (!(await readFile(log, 'utf8')).includes('new'));
  await server.kill();
  expect((await stat(`${log}.1`)).size).toBe(30 * 1024 * 1024);
});
