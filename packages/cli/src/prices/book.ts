/** The price book that a command prices with, and prices in words. */
import {
  formatTimestamp,
  grouped,
  type Price,
  type PriceBook,
  PriceBookError,
  UNIT_NAME,
  type Unit,
} from '@meterline/catalog';
import type { Command } from 'commander';
import { type CommandContext, CommandError, readFailure, systemErrorCode } from '../command.js';
import { instantOf, nameOf } from '../flags.js';
import type { Setting } from '../settings/settings.js';

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

/** A month is 730 hours: the storage prices of most books are for a GB over a month. */
const GB_SECONDS_PER_GB_MONTH = '2628000';
const HOURS_PER_MONTH = '730';

/** `$0.0000115 per GB-s`, `$0.12 per GB-month`, `$0.20 per 1,000,000 events`. */
export function priceText({ amount, per }: Pick<Price, 'amount' | 'per'>, unit: Unit): string {
  return `$${grouped(amount)} per ${quantityText(per, unit)}`;
}

function quantityText(per: string, unit: Unit): string {
  if (unit === 'gbs' && per === GB_SECONDS_PER_GB_MONTH) return 'GB-month';
  if (unit === 'hours' && per === HOURS_PER_MONTH) return 'month (730 h)';
  if (unit === 'count' && per === '1') return 'event';
  return per === '1' ? UNIT_NAME[unit] : `${grouped(per)} ${UNIT_NAME[unit]}`;
}
