/** A small disk of its own for a fixture's data, which can be filled: a file system in memory. Needs the right to mount. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SIZE = '640m';
const CHUNK_BYTES = 1024 * 1024;
const FILLER = 'filler';

/** Mounts it on an existing, empty directory. @returns whether the system allows that */
export function mountSmallDisk(directory: string): boolean {
  const args = ['-t', 'tmpfs', '-o', `size=${SIZE},mode=0700`, 'meterline-faults', directory];
  return spawnSync('mount', args, { stdio: 'ignore' }).status === 0;
}

export function unmountSmallDisk(directory: string): void {
  spawnSync('umount', ['--lazy', directory], { stdio: 'ignore' });
}

/** Tries it. */
export function canMountSmallDisk(): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'meterline-mount-'));
  const canMount = mountSmallDisk(directory);
  if (canMount) unmountSmallDisk(directory);
  rmdirSync(directory);
  return canMount;
}

/**
 * Writes until no more than so many bytes are free: 0 until nothing more fits. It may be called again, because a server that
 * deletes files makes room.
 */
export async function fillDisk(directory: string, leftBytes = 0): Promise<void> {
  const file = await open(join(directory, FILLER), 'a');
  const { bavail, bsize } = await statfs(directory);
  let chunks = (bavail * bsize - leftBytes) / CHUNK_BYTES;
  try {
    for (let bytes = CHUNK_BYTES; bytes >= 1 && (leftBytes === 0 || chunks > 0); chunks -= 1) {
      try {
        await file.appendFile(Buffer.alloc(bytes));
      } catch (error) {
        if (!isNoSpace(error)) throw error;
        bytes = Math.floor(bytes / 2);
      }
    }
  } finally {
    await file.close();
  }
}

export async function freeDisk(directory: string): Promise<void> {
  await rm(join(directory, FILLER), { force: true });
}

function isNoSpace(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOSPC';
}
