/** The passwords of the local servers. */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../private-file.js';

const passwordSchema = z.object({ password: z.string().min(16) });

/** Made once and kept in the file, so that what uses the server still reaches it after a restart. Letters and digits. */
export async function ensurePassword(file: string): Promise<string> {
  const kept = await readPrivateFile(file, passwordSchema);
  if (kept) return kept.password;
  const password = randomBytes(24).toString('hex');
  await writePrivateFile(file, { password });
  return password;
}
