/** The price book that a reader's command prices with. */
import { formatTimestamp, type PriceBook } from '@meterline/catalog';
import type { Command } from 'commander';
import type { CommandContext } from '../command-context.js';
import { instantOf, nameOf } from '../commands/flags.js';
import { readPriceBook } from '../reprice/price-book-file.js';

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
    .option('--at <time>', 'with the prices in force at this time (default: now)', instantOf);
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
