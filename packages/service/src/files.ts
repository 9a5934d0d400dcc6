/** Reads price books, and writes small files that only their owner may read. */
import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { DEFAULT_PRICE_BOOK, PriceBook, PriceBookError } from '@meterline/catalog';
import { StartError } from './start-error.js';

const OWNER_ONLY = 0o600;

/** Loads a price book, or the example book if there is no path. Errors name the file by its label. @throws PriceBookError */
export async function loadPriceBook(path: string | undefined, label = `PRICE_BOOK ${path}`): Promise<PriceBook> {
  if (path === undefined) return DEFAULT_PRICE_BOOK;
  try {
    return new PriceBook(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PriceBookError(
      `${label} cannot be used: ${reason}; "meterline dimensions --example-book" prints a valid book`,
      { cause },
    );
  }
}

export async function openPriceBook(path: string | undefined): Promise<PriceBook> {
  try {
    return await loadPriceBook(path);
  } catch (error) {
    throw error instanceof PriceBookError ? new StartError(error.message, { cause: error }) : error;
  }
}

/** Replaces a file atomically and durably. If the disk is full, the old file stays and the temp file is removed. */
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
