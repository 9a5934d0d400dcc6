import { type PriceBook, PriceBookError } from '@meterline/catalog';
import { loadPriceBook } from '@meterline/service/files';
import { CommandError, readFailure, systemErrorCode } from './failure.js';
import type { Setting } from './setting-sources.js';

/** Returns the price book in a JSON file, or without a file the built-in one. @throws CommandError if the file is unreadable or invalid */
export async function readPriceBook(file: Setting | undefined): Promise<PriceBook> {
  try {
    return await loadPriceBook(file?.value, file && `the price book ${file.value} (from ${file.source})`);
  } catch (error) {
    if (!(error instanceof PriceBookError)) throw error;
    if (file && systemErrorCode(error.cause) !== undefined) throw readFailure(file.value, error.cause);
    throw new CommandError(error.message, undefined, { cause: error });
  }
}
