/** Small files that only their owner may read. */
import { writeFile } from 'node:fs/promises';
import writeFileAtomic from 'write-file-atomic';

const OWNER_ONLY = 0o600;

/**
 * Replaces the file as a whole, on disk: a reader finds the old content or the new, never half of it. On a full disk the old
 * one stays, and nothing beside it.
 *
 * @throws the system's error
 */
export async function writePrivateText(path: string, text: string): Promise<void> {
  // write-file-atomic would write once, and take the beginning of the text for all of it when no more has room. It makes the
  // draft, flushes it to disk, and renames or removes it.
  await writeFileAtomic(path, '', { mode: OWNER_ONLY, tmpfileCreated: (draft) => writeFile(draft, text) });
}
