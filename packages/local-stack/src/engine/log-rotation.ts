/**
 * Keeps a log file from filling the disk, as logrotate's `copytruncate` does: the processes that write to it keep it open
 * and know nothing of this. A library that rotates would have to stand between them and the file, and a killed owner
 * would take the end of their logs with it. Lines that are written between the copy and the cut are lost.
 */
import { copyFile, stat, truncate } from 'node:fs/promises';
import { hasErrorCode } from '../errors.js';

/** Longer than most sessions; with the older half a log takes about twice as much. */
const MAX_BYTES = 20 * 1024 * 1024;
const CHECK_MS = 5_000;

/** Rotates the file now and then, for as long as the process runs. @returns ends it */
export function keepSmall(path: string): () => void {
  const timer = setInterval(() => {
    // A disk without room, or a file that somebody removed, must not end the stack.
    rotate(path).catch(() => undefined);
  }, CHECK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * If the file is too long, moves its content to `<path>.1`, in place of what was there.
 *
 * @param path of a file whose writers append to it
 */
export async function rotate(path: string, maxBytes = MAX_BYTES): Promise<void> {
  const size = await stat(path).then(
    (file) => file.size,
    (error: unknown) => {
      if (hasErrorCode(error, 'ENOENT')) return 0;
      throw error;
    },
  );
  if (size <= maxBytes) return;
  try {
    await copyFile(path, `${path}.1`);
  } finally {
    // Also if there is no room for the copy: this is what makes room.
    await truncate(path);
  }
}
