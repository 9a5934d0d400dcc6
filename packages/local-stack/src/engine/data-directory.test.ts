import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DataDirectory, identifyProcess, type ProcessIdentity } from './data-directory.js';

let directory: string;
let lock: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-data-'));
  lock = join(directory, 'stack.lock');
});
afterEach(() => rm(directory, { recursive: true }));

/** A process that does nothing until it is killed. */
async function idleProcess() {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  await once(child, 'spawn');
  const identity = await identifyProcess(child.pid ?? 0);
  const kill = async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return { identity, kill };
}

async function deadProcess(): Promise<ProcessIdentity> {
  const { identity, kill } = await idleProcess();
  await kill();
  return identity;
}

const leaveLock = (owner: ProcessIdentity, servers: ProcessIdentity[] = []) =>
  writeFile(lock, JSON.stringify({ owner, servers }));

describe('the lock of a data directory', () => {
  it('refuses a second holder and names the first', async () => {
    await DataDirectory.open(directory);
    await expect(DataDirectory.open(directory)).rejects.toMatchObject({
      code: 'directory_in_use',
      message: expect.stringMatching(new RegExp(`^${directory} is in use by process ${process.pid}\\.`)),
    });
  });

  it('may be taken again after it was given back, and leaves no file behind', async () => {
    await (await DataDirectory.open(directory)).close();
    await (await DataDirectory.open(directory)).close();
    expect(await readdir(directory)).toEqual([]);
  });

  it('leaves no file behind when the disk is full', async () => {
    // A limit on the size of files fails as a full disk does: the file is created and nothing can be written to it.
    const code = `import { DataDirectory } from '${new URL('../../dist/engine/data-directory.js', import.meta.url)}';
      await DataDirectory.open(process.argv[1]).catch((error) => console.log(error.code));`;
    const limited = 'trap "" XFSZ; ulimit -f 0; exec "$0" "$@"';
    const node = [process.execPath, '--input-type=module', '-e', code, directory];
    const child = spawn('sh', ['-c', limited, ...node], { stdio: ['ignore', 'pipe', 'inherit'] });
    expect(await text(child.stdout)).toBe('EFBIG\n');
    expect(await readdir(directory)).toEqual([]);
  });

  it('is not given back by an earlier holder', async () => {
    const first = await DataDirectory.open(directory);
    await first.close();
    await DataDirectory.open(directory);
    await first.close();
    await access(lock);
  });

  it('does not come back when a process is recorded after it was given back', async () => {
    const data = await DataDirectory.open(directory);
    await data.close();
    await data.addProcess(process.pid);
    expect(await readdir(directory)).toEqual([]);
  });

  it('takes over from an owner that is dead', async () => {
    await leaveLock(await deadProcess());
    await DataDirectory.open(directory);
    expect(await readdir(directory)).toEqual(['stack.lock']);
  });

  it('takes over from an owner whose pid now belongs to another process', async () => {
    await leaveLock({ pid: process.pid, born: '1' });
    await DataDirectory.open(directory);
  });

  it('takes over a file that is not a lock', async () => {
    await writeFile(lock, 'nonsense');
    await DataDirectory.open(directory);
  });

  it('names every process that uses the directory, and no longer those that have ended', async () => {
    const data = await DataDirectory.open(directory);
    const [ended, ...running] = await Promise.all([idleProcess(), idleProcess(), idleProcess()]);
    await data.addProcess(ended.identity.pid);
    await ended.kill();
    await Promise.all(running.map(({ identity }) => data.addProcess(identity.pid)));
    const { servers } = JSON.parse(await readFile(lock, 'utf8'));
    expect(servers).toEqual(running.map(({ identity }) => identity));
    expect((await stat(lock)).mode & 0o777).toBe(0o600);
    await Promise.all(running.map(({ kill }) => kill()));
  });

  it('waits until the servers of a dead owner are gone', async () => {
    const server = await idleProcess();
    await leaveLock(await deadProcess(), [server.identity]);
    let taken = false;
    const taking = DataDirectory.open(directory).then(() => {
      taken = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(taken).toBe(false);
    await server.kill();
    await taking;
  });

  it('lets exactly one of many rivals take over a stale lock', async () => {
    await leaveLock(await deadProcess());
    const rivals = await Promise.allSettled(Array.from({ length: 8 }, () => DataDirectory.open(directory)));
    expect(rivals.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});

describe('the data directory', () => {
  it('is made with those above it, for its owner alone, and may be there already', async () => {
    const path = join(directory, 'a', 'b');
    await (await DataDirectory.open(path)).close();
    await (await DataDirectory.open(path)).close();
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect(await readdir(path)).toEqual([]);
  });

  it.each([
    ['a file', 'file', 'ENOTDIR'],
    ['below a file', 'file/below', 'ENOTDIR'],
    ['a name that is too long', 'x'.repeat(300), 'ENAMETOOLONG'],
  ])('that is %s cannot be used, and the message says why', async (_what, name, code) => {
    await writeFile(join(directory, 'file'), '');
    const path = join(directory, name);
    await expect(DataDirectory.open(path)).rejects.toMatchObject({
      code: 'data_directory_unusable',
      message: expect.stringContaining(`${path} cannot hold the data (${code}`),
    });
    await expect(DataDirectory.open(path)).rejects.toThrow('METERLINE_DATA_DIR');
  });

  // In /proc a directory cannot be made even by root, and the failure looks as if the one above it were missing.
  it.each(
    process.platform === 'linux' ? ['/proc/meterline', '/proc/meterline/data', '/proc'] : ['/dev/null/meterline'],
  )('cannot be %s', async (path) => {
    await expect(DataDirectory.open(path)).rejects.toMatchObject({ code: 'data_directory_unusable' });
  });
});
