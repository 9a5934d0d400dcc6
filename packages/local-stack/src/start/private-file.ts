/** Small JSON files that only their owner may read. */
import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { ZodError, type z } from 'zod';
import { LocalStackError } from '../errors.js';
import { hasErrorCode } from '../system-error.js';

/** Replaces the file as a whole: a reader finds the old content or the new, never half of it. */
export async function writePrivateFile(path: string, content: unknown): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, path);
}

/**
 * Undefined if there is no such file.
 *
 * @throws LocalStackError `file_damaged` if it cannot be read or holds something else than it should
 */
export async function readPrivateFile<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  try {
    return schema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    if (hasErrorCode(cause, 'ENOENT')) return undefined;
    throw new LocalStackError(
      'file_damaged',
      `${path} is damaged (${faultOf(cause)}). Mend it, or delete it: the next start makes a new one.`,
      { cause },
    );
  }
}

function faultOf(error: unknown): string {
  if (error instanceof ZodError) {
    return error.issues.map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(': ')).join('; ');
  }
  return error instanceof Error ? error.message : String(error);
}
