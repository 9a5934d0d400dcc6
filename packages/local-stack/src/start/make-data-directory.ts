import { mkdir, mkdtemp, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { LocalStackError } from '../errors.js';
import { hasErrorCode, systemReason } from '../system-error.js';

/**
 * Creates the directory and those above it that are missing, and makes sure that it can be written to.
 *
 * One level at a time: where nothing can be created, as in /proc, Node's recursive mkdir never ends.
 *
 * @throws LocalStackError `data_directory_unusable`
 */
export async function makeDataDirectory(path: string): Promise<void> {
  try {
    for (const directory of await missingLevels(path)) await mkdir(directory, { mode: 0o700 });
    await rmdir(await mkdtemp(join(path, 'probe-')));
  } catch (cause) {
    throw new LocalStackError(
      'data_directory_unusable',
      `${path} cannot hold the data (${systemReason(cause)}). Choose a directory that can be written to with METERLINE_DATA_DIR.`,
      { cause },
    );
  }
}

/** The highest first; empty if the path exists. */
async function missingLevels(path: string): Promise<string[]> {
  const missing: string[] = [];
  for (let level = path; !(await exists(level)); level = dirname(level)) missing.unshift(level);
  return missing;
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return false;
    throw error;
  }
}
