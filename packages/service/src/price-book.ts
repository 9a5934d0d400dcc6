import { readFile } from 'node:fs/promises';
import { DEFAULT_PRICE_BOOK, PriceBook, PriceBookError } from '@meterline/catalog';

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
    throw new PriceBookError(`${label} cannot be used: ${reason}`, { cause });
  }
}
