/** Small JSON files that only their owner may read. */
import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { z } from 'zod';
import { hasErrorCode } from '../system-error.js';

/** Replaces the file as a whole: a reader finds the old content or the new, never half of it. */
export async function writePrivateFile(path: string, content: unknown): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, path);
}

/** Undefined if there is no such file; throws if it holds something else than it should. */
export async function readPrivateFile<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
  return schema.parse(JSON.parse(text));
}
