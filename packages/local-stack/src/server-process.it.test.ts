import { readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { testFolder } from '../../../test/harness/test-folder.js';
import { DataDirectory } from './data-directory.js';
import { startServer } from './server-process.js';

const folder = testFolder('each test');
let directory: DataDirectory;
beforeEach(async () => {
  directory = await DataDirectory.open(folder());
});
afterEach(() => directory.close());

/** A program whose process is ready at once, or never. */
function start(program: string, { isReady = false, ...limits }: { isReady?: boolean; readyTimeoutMs?: number } = {}) {
  return startServer(directory, {
    ...{ name: 'The ingest service', label: 'ingest', args: ['-e', program], ends: 'channel', url: '' },
    answers: () => (isReady ? Promise.resolve() : Promise.reject(new Error('no answer'))),
    ...limits,
  });
}

it.each([
  [
    ['{"level":30}', 'meterline-ingest: LOG_LEVEL must be loud', 'meterline-ingest: PORT must be a port'],
    'LOG_LEVEL must be loud; PORT must be a port',
  ],
  [['meterline-ingest: a thing', 'Error: a defect', '    at somewhere'], undefined],
  [[], undefined],
])('a process that ends before it is ready speaks for itself, or its log is quoted: %j', async (lines, own) => {
  const text = lines.map((line) => `${line}\n`).join('');
  const log = folder('ingest.log');
  const quoted = `The ingest service ended before it was ready (exit code 1). The end of ${log}:\n${lines.join('\n')}`;
  const failing = start(`process.stderr.write(${JSON.stringify(text)}); process.exitCode = 1`);
  await expect(failing).rejects.toMatchObject({ name: 'LocalStackError', message: own ?? quoted });
});

it('a process that never answers is killed, and the message says so', async () => {
  const hanging = start('setInterval(() => {}, 1000)', { readyTimeoutMs: 50 });
  await expect(hanging).rejects.toThrow('The ingest service did not answer within 0.05 s');
});

it('a log that has grown too long is put aside at the next start', async () => {
  const log = folder('ingest.log');
  await writeFile(log, '');
  await truncate(log, 30 * 1024 * 1024);
  const server = await start('setInterval(() => console.log("new"), 10)', { isReady: true });
  while (!(await readFile(log, 'utf8')).includes('new'));
  await server.kill();
  expect((await stat(`${log}.1`)).size).toBe(30 * 1024 * 1024);
});
