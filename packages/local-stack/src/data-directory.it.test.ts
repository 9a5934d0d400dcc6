import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { DataDirectory, readPrivateFile, writePrivateFile } from './data-directory.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-data-'));
});
afterEach(() => rm(directory, { recursive: true }));

describe('the lock of a data directory', () => {
  it('is held by a child process that inherits it, until that is gone, when its owner was killed', async () => {
    const code = `import { spawn } from 'node:child_process';
      import { DataDirectory } from '${new URL('../dist/data-directory.js', import.meta.url)}';
      const { lock } = await DataDirectory.open(process.argv[1]);
      const { pid } = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', lock], detached: true });
      console.log(pid);
      process.kill(process.pid, 'SIGKILL');`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code, directory], {
      encoding: 'utf8',
    });
    let isTaken = false;
    const taking = DataDirectory.open(directory).then((taken) => {
      isTaken = true;
      return taken;
    });
    await sleep(200);
    expect(isTaken).toBe(false);
    process.kill(Number(stdout), 'SIGKILL');
    (await taking).close();
  });

  it('is taken by exactly one of many rivals, and by another one after it was given back', async () => {
    const rivals = await Promise.allSettled(Array.from({ length: 8 }, () => DataDirectory.open(directory)));
    const [winner, ...others] = rivals.flatMap((rival) => (rival.status === 'fulfilled' ? [rival.value] : []));
    expect(others).toEqual([]);
    winner?.close();
    winner?.close();
    const second = await DataDirectory.open(directory);
    expect(second.secret).toBe(winner?.secret);
    second.close();
  });
});

describe('the data directory', () => {
  it('is made with those above it, for its owner alone, and may be there already', async () => {
    const path = join(directory, 'a', 'b');
    (await DataDirectory.open(path)).close();
    (await DataDirectory.open(path)).close();
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect(await readdir(path)).toEqual(['secret.json', 'stack.lock']);
    expect((await stat(join(path, 'secret.json'))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['a file', 'file', 'EEXIST'],
    ['below a file', 'file/below', 'ENOTDIR'],
    ['a name that is too long', 'x'.repeat(300), 'ENAMETOOLONG'],
  ])('a path that is %s cannot be used, and the message says why', async (_what, name, code) => {
    await writeFile(join(directory, 'file'), '');
    const path = join(directory, name);
    await expect(DataDirectory.open(path)).rejects.toMatchObject({
      code: 'data_directory_unusable',
      message: expect.stringContaining(`${path} cannot hold the data (${code}`),
    });
    await expect(DataDirectory.open(path)).rejects.toThrow('METERLINE_DATA_DIR');
  });
});

const schema = z.object({ secret: z.string() });

describe('a file of the data directory', () => {
  it('a file reads as it was written, for its owner alone, and as undefined before', async () => {
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
  ])('a file that %s is named, with the way to fix it', async (_what, content, fault) => {
    const path = join(directory, 'damaged.json');
    await writeFile(path, content);
    const reading = readPrivateFile(path, schema);
    await expect(reading).rejects.toMatchObject({ code: 'file_damaged', message: expect.stringMatching(fault) });
    await expect(reading).rejects.toThrow(`${path} is damaged`);
    await expect(reading).rejects.toThrow('Fix it, or delete it: the next start makes a new one.');
  });
});
