import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { lockDirectory } from './directory-lock.js';
import { identifyProcess, type ProcessIdentity } from './process-identity.js';

let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-lock-'));
  path = join(directory, 'server.lock');
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
  writeFile(path, JSON.stringify({ owner, servers }));

describe('lockDirectory', () => {
  it('refuses a second holder and names the first', async () => {
    await lockDirectory(path, 'data');
    await expect(lockDirectory(path, 'data')).rejects.toMatchObject({
      code: 'directory_in_use',
      message: expect.stringMatching(new RegExp(`^data is in use by process ${process.pid}\\.`)),
    });
  });

  it('may be taken again after a release, and leaves no file behind', async () => {
    await (await lockDirectory(path, 'data')).release();
    await (await lockDirectory(path, 'data')).release();
    expect(await readdir(directory)).toEqual([]);
  });

  it("does not release a later holder's lock", async () => {
    const first = await lockDirectory(path, 'data');
    await first.release();
    await lockDirectory(path, 'data');
    await first.release();
    await access(path);
  });

  it('takes over from an owner that is dead', async () => {
    await leaveLock(await deadProcess());
    await lockDirectory(path, 'data');
    expect(await readdir(directory)).toEqual(['server.lock']);
  });

  it('takes over from an owner whose pid now belongs to another process', async () => {
    await leaveLock({ pid: process.pid, born: '1' });
    await lockDirectory(path, 'data');
  });

  it('takes over a file that is not a lock', async () => {
    await writeFile(path, 'nonsense');
    await lockDirectory(path, 'data');
  });

  it('waits until the servers of a dead owner are gone', async () => {
    const server = await idleProcess();
    await leaveLock(await deadProcess(), [server.identity]);
    let taken = false;
    const taking = lockDirectory(path, 'data').then(() => {
      taken = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(taken).toBe(false);
    await server.kill();
    await taking;
  });

  it('lets exactly one of many rivals take over a stale lock', async () => {
    await leaveLock(await deadProcess());
    const rivals = await Promise.allSettled(Array.from({ length: 8 }, () => lockDirectory(path, 'data')));
    expect(rivals.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});
