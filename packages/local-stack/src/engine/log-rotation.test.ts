import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { rotate } from './log-rotation.js';

let folder: string;
let log: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'meterline-log-'));
  log = join(folder, 'query.log');
});
afterEach(() => rm(folder, { recursive: true }));

it('a log that is not too long stays as it is, and so does one that is not there', async () => {
  await rotate(log, 5);
  await writeFile(log, '12345');
  await rotate(log, 5);
  expect(await readFile(log, 'utf8')).toBe('12345');
  expect(existsSync(`${log}.1`)).toBe(false);
});

it('a longer one becomes the older half, which only its owner may read, and its writer begins a new one', async () => {
  const writer = await open(log, 'a', 0o600);
  await writer.write('first');
  await rotate(log, 4);
  await writer.write('second');
  expect(await readFile(`${log}.1`, 'utf8')).toBe('first');
  expect(await readFile(log, 'utf8')).toBe('second');
  expect((await stat(`${log}.1`)).mode & 0o777).toBe(0o600);

  await rotate(log, 4);
  expect(await readFile(`${log}.1`, 'utf8')).toBe('second');
  await writer.close();
});

it('without room for the older half, the log is cut all the same', async () => {
  await writeFile(log, 'too long');
  // A folder cannot be overwritten by a file.
  await mkdir(`${log}.1`);
  await expect(rotate(log, 4)).rejects.toThrow();
  expect(await readFile(log, 'utf8')).toBe('');
});
