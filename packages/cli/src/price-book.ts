import { CatalogError, type PriceBook, PriceBookError } from '@meterline/catalog';
import { loadCatalog, loadPriceBook } from '@meterline/service/files';
import { CommandError, readFailure, systemErrorCode } from './failure.js';
import type { Setting } from './setting-sources.js';

/**
 * Returns the price book in a JSON file, or the built-in price book if no file is set.
 * @param catalog the file with the dimensions that the platform has added
 * @throws CommandError if a file is unreadable or invalid
 */
export async function readPriceBook(file: Setting | undefined, catalog: Setting | undefined): Promise<PriceBook> {
  try {
    await loadCatalog(catalog?.value);
    return await loadPriceBook(file?.value, file && `the price book ${file.value} (from ${file.source})`);
  } catch (error) {
    if (!(error instanceof PriceBookError || error instanceof CatalogError)) throw error;
    const read = error instanceof CatalogError ? catalog : file;
    if (read && systemErrorCode(error.cause) !== undefined) throw readFailure(read.value, error.cause);
    throw new CommandError(error.message, undefined, { cause: error });
  }
}
