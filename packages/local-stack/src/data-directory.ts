import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type DirectoryLock, lockDirectory } from './directory-lock.js';

/** One server's share of a data directory: its files, its log beside them, and the right to use both. */
export interface ServerDirectory {
  path: string;
  logFile: string;
  lock: DirectoryLock;
}

/**
 * Creates `<dataDir>/<server>` if need be and takes its lock.
 *
 * @throws LocalStackError `directory_in_use`
 */
export async function openServerDirectory(dataDir: string, server: string): Promise<ServerDirectory> {
  const path = resolve(dataDir, server);
  await mkdir(path, { recursive: true, mode: 0o700 });
  return { path, logFile: `${path}.log`, lock: await lockDirectory(`${path}.lock`, path) };
}
