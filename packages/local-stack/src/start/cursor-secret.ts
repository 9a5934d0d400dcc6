import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from './private-file.js';

const schema = z.object({ cursorSecret: z.string().min(32) });

/** The same at every start, so that a cursor outlives a restart as it does in production. */
export async function ensureCursorSecret(file: string): Promise<string> {
  const kept = await readPrivateFile(file, schema);
  if (kept) return kept.cursorSecret;
  const cursorSecret = randomBytes(32).toString('hex');
  await writePrivateFile(file, { cursorSecret });
  return cursorSecret;
}
