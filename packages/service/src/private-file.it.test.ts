import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { writePrivateText } from './private-file.js';

/** In blocks of 512 bytes or of 1 kB, as the shell has it. Like a full disk, the limit cuts a write short and refuses the next. */
const MOST_BLOCKS = 8;
const TOO_LONG = 100_000;

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-private-'));
  path = join(directory, 'login.json');
});
afterEach(() => rm(directory, { recursive: true }));

/** In a process that can write short files only. @returns the code of the error, or `written` */
function writeWithoutRoom(length: number): string {
  // The limit comes with a signal, which a full disk does not send, and on which write-file-atomic would end the process.
  const program = `
    process.on('SIGXFSZ', () => undefined);
    import { writePrivateText } from ${JSON.stringify(new URL('../dist/private-file.js', import.meta.url).href)};
    await writePrivateText(process.argv[1], 'x'.repeat(Number(process.argv[2]))).then(
      () => console.log('written'),
      (error) => console.log(error.code),
    );`;
  const limited = `ulimit -f ${MOST_BLOCKS}; exec "$@"`;
  const command = [process.execPath, '--input-type=module', '-e', program, path, String(length)];
  const { stdout, stderr } = spawnSync('sh', ['-c', limited, 'sh', ...command], { encoding: 'utf8' });
  return stdout.trim() || stderr;
}

it('a private file is for its owner alone, and replaced as a whole', async () => {
  await writePrivateText(path, 'before, and longer');
  await writePrivateText(path, 'é');
  expect(await readFile(path, 'utf8')).toBe('é');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(directory)).toEqual(['login.json']);
});

it('a private file that has no room stays as it was, and leaves nothing behind', async () => {
  expect(writeWithoutRoom(10)).toBe('written');
  expect(writeWithoutRoom(TOO_LONG)).toBe('EFBIG');
  expect(await readFile(path, 'utf8')).toBe('xxxxxxxxxx');
  expect(await readdir(directory)).toEqual(['login.json']);
});
