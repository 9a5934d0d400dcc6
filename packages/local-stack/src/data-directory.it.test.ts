import { spawnSync } from 'node:child_process';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { z } from 'zod';
import { testFolder } from '../../../test/harness/test-folder.js';
import { DataDirectory, readPrivateFile, writePrivateFile } from './data-directory.js';

const folder = testFolder('each test');

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

it('the lock of a data directory is held by a child process that inherits it, until that is gone, when its owner was killed', async () => {
  const code = `import { spawn } from 'node:child_process';
    import { DataDirectory } from '${new URL('../dist/data-directory.js', import.meta.url)}';
    const { lock } = await DataDirectory.open(process.argv[1]);
    const { pid } = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', lock], detached: true });
    console.log(pid);
    process.kill(process.pid, 'SIGKILL');`;
  const args = ['--input-type=module', '-e', code, folder()];
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  const taking = DataDirectory.open(folder());
  expect(await Promise.race([taking, sleep(200, 'waiting')])).toBe('waiting');
  process.kill(Number(stdout), 'SIGKILL');
  (await taking).close();
});

it('the lock of a data directory is taken by exactly one of many rivals, and by another one after it was given back', async () => {
  const rivals = await Promise.allSettled(Array.from({ length: 8 }, () => DataDirectory.open(folder())));
  const [winner, ...others] = rivals.flatMap((rival) => (rival.status === 'fulfilled' ? [rival.value] : []));
  expect(others).toEqual([]);
  winner?.close();
  winner?.close();
  const second = await DataDirectory.open(folder());
  expect(second.secret).toBe(winner?.secret);
  second.close();
});

it('a data directory is made with those above it, for its owner alone, and may be there already', async () => {
  const path = folder('a', 'b');
  for (let time = 0; time < 2; time += 1) (await DataDirectory.open(path)).close();
  expect(await readdir(path)).toEqual(['secret.json', 'stack.lock']);
  expect([await modeOf(path), await modeOf(`${path}/secret.json`)]).toEqual([0o700, 0o600]);
});

it.each([
  ['a file', 'file', 'EEXIST'],
  ['below a file', 'file/below', 'ENOTDIR'],
  ['a name that is too long', 'x'.repeat(300), 'ENAMETOOLONG'],
])('a data directory cannot be %s, and the message says why', async (_what, name, reason) => {
  await writeFile(folder('file'), '');
  const path = folder(name);
  await expect(DataDirectory.open(path)).rejects.toThrow(
    new RegExp(`^${path} cannot hold the data \\(${reason}.*METERLINE_DATA_DIR\\.$`),
  );
});

const schema = z.object({ secret: z.string() });

it('a file of the data directory reads as it was written, for its owner alone, and as undefined before', async () => {
  const path = folder('whole.json');
  expect(await readPrivateFile(path, schema)).toBeUndefined();
  await writePrivateFile(path, { secret: 'x' });
  expect(await readPrivateFile(path, schema)).toEqual({ secret: 'x' });
  expect(await modeOf(path)).toBe(0o600);
});

it.each([
  ['is empty', '', 'Unexpected end of JSON input'],
  ['is cut off', '{"secret', 'Unterminated string in JSON'],
  ['holds something else', '{"secret":7}', 'secret: Invalid input: expected string, received number'],
])('a file of the data directory that %s is named, with the way to fix it', async (_what, content, reason) => {
  const path = folder('damaged.json');
  await writeFile(path, content);
  await expect(readPrivateFile(path, schema)).rejects.toThrow(
    new RegExp(`^${path} is damaged \\(${reason}.*Fix it, or delete it: the next start makes a new one\\.$`),
  );
});
