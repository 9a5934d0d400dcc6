/** Files that services and commands share: price books, and small files that only their owner may read. */
import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { DEFAULT_PRICE_BOOK, PriceBook, PriceBookError } from '@meterline/catalog';
import { StartError } from './start-error.js';

const OWNER_ONLY = 0o600;

/**
 * The price book in a JSON file, or the example book when there is no path.
 * @param label how an error message names the file
 * @throws PriceBookError naming the file when it cannot be read or is no usable price book; its cause says why
 */
export async function loadPriceBook(path: string | undefined, label = `PRICE_BOOK ${path}`): Promise<PriceBook> {
  if (path === undefined) return DEFAULT_PRICE_BOOK;
  try {
    return new PriceBook(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PriceBookError(
      `${label} cannot be used: ${reason}; "meterline dimensions --example-book" prints one that can`,
      { cause },
    );
  }
}

/** The price book of a service. @throws StartError when it cannot be used */
export async function openPriceBook(path: string | undefined): Promise<PriceBook> {
  try {
    return await loadPriceBook(path);
  } catch (error) {
    throw error instanceof PriceBookError ? new StartError(error.message, { cause: error }) : error;
  }
}

/**
 * Replaces the file as a whole, on disk: a reader finds the old content or the new, never half of it. On a full disk the old
 * one stays, and nothing beside it.
 *
 * @throws the system's error
 */
export async function writePrivateText(path: string, text: string): Promise<void> {
  const tempFile = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(tempFile, text, { mode: OWNER_ONLY, flag: 'wx', flush: true });
    await rename(tempFile, path);
  } catch (error) {
    await rm(tempFile, { force: true });
    throw error;
  }
}
