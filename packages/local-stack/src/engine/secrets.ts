/** The secrets of a local stack. */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../private-file.js';

/**
 * Made once and kept in the file under a name, so that what was made with it is good after a restart as well: letters and digits.
 * @param bytes of randomness
 */
export async function ensureSecret(file: string, name: string, bytes: number): Promise<string> {
  const kept = await readPrivateFile(file, z.object({ [name]: z.string().min(16) }));
  if (kept?.[name]) return kept[name];
  const secret = randomBytes(bytes).toString('hex');
  await writePrivateFile(file, { [name]: secret });
  return secret;
}

/** Of a local server. */
export function ensurePassword(file: string): Promise<string> {
  return ensureSecret(file, 'password', 24);
}
