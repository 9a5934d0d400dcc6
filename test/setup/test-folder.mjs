/** The folder for all temporary files of a test run. */
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const IN_MEMORY = '/dev/shm';
const NEEDED_BYTES = 4 * 2 ** 30;

/**
 * In memory if Linux has room for it, because a test run mostly waits for servers that flush files to disk. Files of a killed process
 * stay in memory as well.
 * @returns its path; the caller removes it
 */
export async function createTestFolder() {
  return (await createInMemory()) ?? (await mkdtemp(join(tmpdir(), 'meterline-tests-')));
}

/** @returns undefined if there is no such file system, too little room, or it does not allow programs to run */
async function createInMemory() {
  try {
    const { bavail, bsize } = await statfs(IN_MEMORY);
    if (bavail * bsize < NEEDED_BYTES) return undefined;
    const folder = await mkdtemp(join(IN_MEMORY, 'meterline-tests-'));
    if (await runsPrograms(folder)) return folder;
    await rm(folder, { recursive: true });
    return undefined;
  } catch {
    return undefined;
  }
}

async function runsPrograms(folder) {
  const program = join(folder, 'program');
  await writeFile(program, '#!/bin/sh\nexit 0\n');
  await chmod(program, 0o700);
  const { status } = spawnSync(program);
  await rm(program);
  return status === 0;
}
