import { existsSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FULL = '/dev/full';

/**
 * A descriptor on which every write fails, as on a full disk. Without Linux's device for it the error is another one: that of
 * a file which was opened for reading.
 */
export function openFull(): number {
  return existsSync(FULL) ? openSync(FULL, 'w') : openSync(fileURLToPath(import.meta.url), 'r');
}
