import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { makeDataDirectory } from './make-data-directory.js';

let outside: string;
beforeEach(async () => {
  outside = await mkdtemp(join(tmpdir(), 'meterline-data-'));
});
afterEach(() => rm(outside, { recursive: true }));

describe('the data directory', () => {
  it('is made with those above it, for its owner alone, and may be there already', async () => {
    const path = join(outside, 'a', 'b');
    await makeDataDirectory(path);
    await makeDataDirectory(path);
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect(await readdir(path)).toEqual([]);
  });

  it.each([
    ['a file', 'file', 'ENOTDIR'],
    ['below a file', 'file/below', 'ENOTDIR'],
    ['a name that is too long', 'x'.repeat(300), 'ENAMETOOLONG'],
  ])('that is %s cannot be used, and the message says why', async (_what, name, code) => {
    await writeFile(join(outside, 'file'), '');
    const path = join(outside, name);
    await expect(makeDataDirectory(path)).rejects.toMatchObject({
      code: 'data_directory_unusable',
      message: expect.stringContaining(`${path} cannot hold the data (${code}`),
    });
    await expect(makeDataDirectory(path)).rejects.toThrow('METERLINE_DATA_DIR');
  });

  // In /proc a directory cannot be made even by root, and the failure looks as if the one above it were missing.
  it.each(
    process.platform === 'linux' ? ['/proc/meterline', '/proc/meterline/data', '/proc'] : ['/dev/null/meterline'],
  )('cannot be %s', async (path) => {
    await expect(makeDataDirectory(path)).rejects.toMatchObject({ code: 'data_directory_unusable' });
  });
});
