import { readFile } from 'node:fs/promises';
import { DEFAULT_PRICE_BOOK, PriceBook, PriceBookError } from '@meterline/catalog';
import { CommandError, readFailure } from '../command-error.js';
import type { Setting } from '../settings/settings.js';

/**
 * The price book in a JSON file, or the built-in one when there is no file.
 * @throws CommandError when the file cannot be read or is no usable price book
 */
export async function readPriceBook(file: Setting | undefined): Promise<PriceBook> {
  if (file === undefined) return DEFAULT_PRICE_BOOK;
  const text = await readFile(file.value, 'utf8').catch((error: unknown) => {
    throw readFailure(file.value, error);
  });
  try {
    return new PriceBook(JSON.parse(text));
  } catch (cause) {
    if (!(cause instanceof PriceBookError || cause instanceof SyntaxError)) throw cause;
    const message = `the price book ${file.value} (from ${file.source}) cannot be used: ${cause.message}`;
    throw new CommandError(message, undefined, { cause });
  }
}
