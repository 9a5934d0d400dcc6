import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from './private-file.js';

const schema = z.object({ secret: z.string() });

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-file-'));
});
afterAll(() => rm(directory, { recursive: true }));

describe('a file of the data directory', () => {
  it('reads as it was written, for its owner alone, and as undefined before', async () => {
    const path = join(directory, 'whole.json');
    expect(await readPrivateFile(path, schema)).toBeUndefined();
    await writePrivateFile(path, { secret: 'x' });
    expect(await readPrivateFile(path, schema)).toEqual({ secret: 'x' });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['is empty', '', /\(Unexpected end of JSON input\)/],
    ['is cut off', '{"secret', /\(Unterminated string in JSON/],
    ['holds something else', '{"secret":7}', /\(secret: Invalid input: expected string, received number\)/],
  ])('that %s is named, with the way to fix it', async (_what, content, fault) => {
    const path = join(directory, 'damaged.json');
    await writeFile(path, content);
    const reading = readPrivateFile(path, schema);
    await expect(reading).rejects.toMatchObject({ code: 'file_damaged', message: expect.stringMatching(fault) });
    await expect(reading).rejects.toThrow(`${path} is damaged`);
    await expect(reading).rejects.toThrow('Fix it, or delete it: the next start makes a new one.');
  });
});
