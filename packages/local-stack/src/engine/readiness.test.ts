import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { exitedEarly, LogFile } from './readiness.js';

let directory: string;
let log: LogFile;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-readiness-'));
  log = await LogFile.open(join(directory, 'ingest.log'));
});
afterEach(async () => {
  await log.close();
  await rm(directory, { recursive: true });
});

async function messageAfter(lines: readonly string[]): Promise<string> {
  await appendFile(log.path, lines.map((line) => `${line}\n`).join(''));
  const exited = Promise.resolve({ code: 1, signal: null });
  return (await exitedEarly({ name: 'The ingest service', exited, log })).message;
}

describe('a process that ended before it was ready', () => {
  it('is left to speak for itself when it said what is wrong', async () => {
    const lines = ['{"level":30}', 'meterline-ingest: LOG_LEVEL must be loud', 'meterline-ingest: PORT must be a port'];
    expect(await messageAfter(lines)).toBe('LOG_LEVEL must be loud; PORT must be a port');
  });

  it('is quoted when it ended in any other way', async () => {
    expect(await messageAfter(['meterline-ingest: a thing', 'Error: a defect', '    at somewhere'])).toBe(
      `The ingest service ended before it was ready (exit code 1). The end of ${log.path}:\nmeterline-ingest: a thing\nError: a defect\n    at somewhere`,
    );
  });

  it('is quoted when it said nothing', async () => {
    expect(await messageAfter([])).toContain('ended before it was ready (exit code 1)');
  });
});
