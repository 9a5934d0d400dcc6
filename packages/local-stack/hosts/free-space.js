/**
 * The embedded engine does not notice that a write has failed: chdb takes ClickHouse's error out, so a part that a full disk
 * left empty replaces the parts that it was merged from. So the engine ends before its disk is full. Source:
 * docs/decisions/0026.
 */
import { statfsSync, writeSync } from 'node:fs';

const MEBIBYTE = 1024 * 1024;
const STANDARD_ERROR = 2;

/**
 * Ends this process, as a crash would, unless the directory's disk has so much space left.
 *
 * @param {string} directory
 * @param {number} leastFreeBytes
 */
export function requireFreeSpace(directory, leastFreeBytes) {
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize >= leastFreeBytes) return;
  const [free, least] = [bavail * bsize, leastFreeBytes].map((bytes) => Math.floor(bytes / MEBIBYTE));
  // Not console.error: in a worker its lines wait for the main thread, which the engine blocks.
  writeSync(
    STANDARD_ERROR,
    `The disk of ${directory} has ${free} MiB left. The embedded ClickHouse needs ${least} MiB: it stops, so that nothing is lost. Free some space.\n`,
  );
  process.kill(process.pid, 'SIGKILL');
}
