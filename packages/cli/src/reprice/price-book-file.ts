import { type PriceBook, PriceBookError } from '@meterline/catalog';
import { loadPriceBook } from '@meterline/service/price-book';
import { CommandError, readFailure, systemErrorCode } from '../command-error.js';
import type { Setting } from '../settings/settings.js';

/**
 * The price book in a JSON file, or the built-in one when there is no file.
 * @throws CommandError when the file cannot be read or is no usable price book
 */
export async function readPriceBook(file: Setting | undefined): Promise<PriceBook> {
  try {
    return await loadPriceBook(file?.value, `the price book ${file?.value} (from ${file?.source})`);
  } catch (error) {
    if (!(error instanceof PriceBookError)) throw error;
    if (file && systemErrorCode(error.cause)) throw readFailure(file.value, error.cause);
    throw new CommandError(error.message, undefined, { cause: error });
  }
}
