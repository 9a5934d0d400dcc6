/** The price book that a command prices with. */
import { formatTimestamp, type PriceBook, PriceBookError } from '@meterline/catalog';
import type { Command } from 'commander';
import type { CommandContext } from './command.js';
import { CommandError, readFailure, systemErrorCode } from './failure.js';
import { nameOf } from './flags.js';
import type { Setting } from './settings.js';
import { timeOf } from './times.js';

export interface BookFlags {
  readonly book?: string;
  readonly account?: string;
  readonly at?: number;
}

export interface OpenedBook {
  readonly book: PriceBook;
  /** For which the prices hold. */
  readonly account: string;
  readonly at: number;
  /** Which book it is and when, in a sentence. */
  readonly origin: string;
}

/** No account has this name, so no override applies. */
const NO_ACCOUNT = '';

export function withBook(command: Command): Command {
  return command
    .option('--book <file>', 'the price book, a JSON file (else PRICE_BOOK, the built-in example book)')
    .option('--account <account>', 'with the prices of this account', nameOf)
    .option('--at <time>', 'with the prices in force at this time (default: now)', timeOf);
}

/** @throws CommandError when the book cannot be used */
export async function openBook({ settings, now }: CommandContext, flags: BookFlags): Promise<OpenedBook> {
  const file = settings.priceBookFile(flags.book);
  const book = await readPriceBook(file);
  const at = flags.at ?? now().getTime();
  const name = file
    ? `the book ${file.value} (from ${file.source}), version ${book.version}`
    : 'the built-in example book; if your Meterline prices with another, name it with --book';
  const moment = flags.at === undefined ? 'now' : `at ${formatTimestamp(at)}`;
  return { book, account: flags.account ?? NO_ACCOUNT, at, origin: `Prices in force ${moment} by ${name}.` };
}

/**
 * The price book in a JSON file, or the built-in one when there is no file.
 * @throws CommandError when the file cannot be read or is no usable price book
 */
export async function readPriceBook(file: Setting | undefined): Promise<PriceBook> {
  const { loadPriceBook } = await import('@meterline/service/price-book');
  try {
    return await loadPriceBook(file?.value, file && `the price book ${file.value} (from ${file.source})`);
  } catch (error) {
    if (!(error instanceof PriceBookError)) throw error;
    if (file && systemErrorCode(error.cause) !== undefined) throw readFailure(file.value, error.cause);
    throw new CommandError(error.message, undefined, { cause: error });
  }
}
