/** Small files of JSON that only their owner may read. */
import { readFile } from 'node:fs/promises';
import { writePrivateText } from '@meterline/service/private-file';
import { ZodError, type z } from 'zod';
import { hasErrorCode, LocalStackError } from './errors.js';

/** See {@link writePrivateText}. */
export async function writePrivateFile(path: string, content: unknown): Promise<void> {
  await writePrivateText(path, `${JSON.stringify(content, null, 2)}\n`);
}

/**
 * Undefined if there is no such file.
 *
 * @throws LocalStackError `file_damaged` if it cannot be read or its content does not match the schema
 */
export async function readPrivateFile<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  try {
    return schema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    if (hasErrorCode(cause, 'ENOENT')) return undefined;
    throw new LocalStackError(
      'file_damaged',
      `${path} is damaged (${faultOf(cause)}). Fix it, or delete it: the next start makes a new one.`,
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
