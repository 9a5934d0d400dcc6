import { readFile } from 'node:fs/promises';
import { DEFAULT_PRICE_BOOK, PriceBook, PriceBookError } from '@meterline/catalog';

/**
 * The price book in a JSON file, or the example book when there is no path.
 * @throws PriceBookError naming the file when it cannot be read or is no usable price book
 */
export async function loadPriceBook(path: string | undefined): Promise<PriceBook> {
  if (path === undefined) return DEFAULT_PRICE_BOOK;
  try {
    return new PriceBook(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PriceBookError(`PRICE_BOOK ${path} cannot be used: ${reason}`, { cause });
  }
}
