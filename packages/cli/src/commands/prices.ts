/** Prices without a server: the book that a command prices with, what is billed, and what a list of usage would cost. */

import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  COST_SCALE,
  costOf,
  DEFAULT_PRICE_BOOK_FILE,
  type DecimalText,
  DIMENSIONS,
  decimalText,
  type EpochMs,
  formatScaled,
  formatTimestamp,
  formatUsage,
  formatUsdExact,
  instantText,
  type PriceBook,
  PriceBookError,
  parseUsage,
  priceText,
  sumDecimals,
  UNIT_NAME,
  USAGE_SCALE,
} from '@meterline/catalog';
import { loadPriceBook } from '@meterline/service/files';
import type { Command } from 'commander';
import { z } from 'zod';
import { type CommandContext, say } from '../command.js';
import { CommandError, EXIT_CODES, type ExitCode, readFailure, systemErrorCode, usageError } from '../failure.js';
import { nameOf, type OutputFlags, timeOf, withOutput } from '../flags.js';
import { jsonLines, openEventSource } from '../input.js';
import { printResult } from '../output/result.js';
import { type ItemColumn, itemRows, layoutFor, printList, textTable } from '../output/table.js';
import type { Setting } from '../settings.js';

interface BookFlags {
  readonly book?: string;
  readonly account?: string;
  readonly at?: number;
}

interface OpenedBook {
  readonly book: PriceBook;
  /** For which the prices hold. */
  readonly account: string;
  readonly at: number;
  /** Which book it is and when, in a sentence. */
  readonly origin: string;
}

/** No account has this name, so no override applies. */
const NO_ACCOUNT = '';

function withBook(command: Command): Command {
  return command
    .option('--book <file>', 'the price book, a JSON file (else PRICE_BOOK, the built-in example book)')
    .option('--account <account>', 'with the prices of this account', nameOf)
    .option('--at <time>', 'with the prices in force at this time (default: now)', timeOf);
}

/** @throws CommandError when the book cannot be used */
async function openBook({ settings, now }: CommandContext, flags: BookFlags): Promise<OpenedBook> {
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
  try {
    return await loadPriceBook(file?.value, file && `the price book ${file.value} (from ${file.source})`);
  } catch (error) {
    if (!(error instanceof PriceBookError)) throw error;
    if (file && systemErrorCode(error.cause) !== undefined) throw readFailure(file.value, error.cause);
    throw new CommandError(error.message, undefined, { cause: error });
  }
}

interface DimensionsFlags extends BookFlags, OutputFlags {
  readonly exampleBook?: boolean;
}

export function addDimensions(command: Command, context: CommandContext): void {
  command
    .description(
      'Lists the billing dimensions: what each belongs to, its unit, and its price. GB-s are gigabyte-seconds; a month is ' +
        '730 hours.\nAsks no server.',
    )
    .option('--example-book', 'print the example price book instead, as a file to begin your own with')
    .action((flags: DimensionsFlags) => listDimensions(context, flags));
  withOutput(withBook(command));
}

async function listDimensions(context: CommandContext, flags: DimensionsFlags): Promise<void> {
  if (flags.exampleBook) return void context.stdout.write(`${JSON.stringify(DEFAULT_PRICE_BOOK_FILE, null, 2)}\n`);
  const { book, account, at, origin } = await openBook(context, flags);
  const items = BILLING_DIMENSIONS.map((billingDimension) => {
    const price = book.priceAt(account, billingDimension, at);
    return { billingDimension, ...DIMENSIONS[billingDimension], price };
  });
  const result = items.map(({ price, ...dimension }) => ({
    ...dimension,
    price: price ? { currency: 'USD', amount: price.amount, per: price.per } : null,
  }));
  const columns: ItemColumn<(typeof items)[number]>[] = [
    { heading: 'DIMENSION', cell: ({ billingDimension }) => billingDimension },
    { heading: 'TYPE', cell: ({ resourceType }) => resourceType },
    { heading: 'UNIT', cell: ({ unit }) => UNIT_NAME[unit] },
    { heading: 'PRICE', cell: ({ unit, price }) => (price ? priceText(price, unit) : 'none yet') },
  ];
  printList(context, flags, { columns, items, none: '' }, result);
  say(context, origin);
}

interface EstimateFlags extends BookFlags, OutputFlags {
  readonly file?: string;
}

interface UsageItem {
  readonly billingDimension: BillingDimension;
  /** Scaled by 10^9. */
  readonly usage: bigint;
  /** When it is used; undefined: at the time of the query. */
  readonly timestamp: EpochMs | undefined;
  readonly account: string | undefined;
}

/** Scaled by 10^9 and 10^12. */
interface Amounts {
  usage: bigint;
  cost: bigint;
}

const EXAMPLES = `
Examples:
  meterline estimate agent_compute_runtime_gbs=86400 agent_async_requests_count=1000000
  meterline estimate --file events.jsonl`;

/** A line of the estimate. */
interface Line {
  readonly billingDimension: BillingDimension;
  readonly usage: DecimalText;
  readonly cost: DecimalText;
}

const ESTIMATE_COLUMNS: readonly ItemColumn<Line>[] = [
  { heading: 'DIMENSION', cell: ({ billingDimension }) => billingDimension },
  {
    heading: 'USAGE',
    cell: ({ usage, billingDimension }) => formatUsage(usage, DIMENSIONS[billingDimension].unit),
    isNumeric: true,
  },
  { heading: 'COST', cell: ({ cost }) => formatUsdExact(cost), isNumeric: true },
];

export function addEstimate(command: Command, context: CommandContext): void {
  command
    .description(
      'Prices a list of usage as the service would: each item by the price in force at its time, rounded once to 12 ' +
        'decimals, then added up.\nA file has a JSON object on each line, with billingDimension and usage, and optionally ' +
        'timestamp and accountId: a file of events will do, but it is not known here that one is sent twice or revised.\n' +
        'Asks no server.',
    )
    .argument('[usage...]', 'as <dimension>=<usage>')
    .option('--file <path>', 'a JSON Lines file, or - for standard input')
    .addHelpText('after', EXAMPLES)
    .action((usage: string[], flags: EstimateFlags) => estimate(context, usage, flags));
  withOutput(withBook(command));
}

async function estimate(context: CommandContext, usage: readonly string[], flags: EstimateFlags): Promise<void> {
  if (usage.length > 0 === (flags.file !== undefined)) {
    throw usageError('name some usage, as <dimension>=<usage>, or a --file');
  }
  const opened = await openBook(context, flags);
  const sums = new Map<BillingDimension, Amounts>();
  const items = flags.file === undefined ? usage.map(usageArgument) : readItems(context, flags.file);
  for await (const item of items) if (item) add(sums, item, opened);
  report(context, flags, sums, opened.origin);
}

function add(sums: Map<BillingDimension, Amounts>, item: UsageItem, { book, account, at }: OpenedBook): void {
  const { billingDimension, usage, timestamp = at } = item;
  const price = book.priceAt(item.account ?? account, billingDimension, timestamp);
  if (!price) throw new CommandError(`${billingDimension} has no price at ${formatTimestamp(timestamp)}`);
  const sum = sums.get(billingDimension) ?? { usage: 0n, cost: 0n };
  sums.set(billingDimension, { usage: sum.usage + usage, cost: sum.cost + costOf(usage, price) });
}

async function* readItems({ stdin }: CommandContext, path: string): AsyncGenerator<UsageItem | undefined> {
  const { name, input } = await openEventSource(path, stdin);
  try {
    for await (const line of jsonLines(input)) {
      const place = `${name}:${line.number}`;
      if ('problem' in line) throw new CommandError(`${place}: ${line.problem}`);
      yield usageItem(line.object, place);
    }
  } finally {
    input.destroy();
  }
}

function report(
  context: CommandContext,
  flags: EstimateFlags,
  sums: ReadonlyMap<BillingDimension, Amounts>,
  origin: string,
): void {
  const lines = BILLING_DIMENSIONS.flatMap((billingDimension): Line[] => {
    const sum = sums.get(billingDimension);
    return sum ? [{ billingDimension, usage: scaled(sum.usage, USAGE_SCALE), cost: scaled(sum.cost, COST_SCALE) }] : [];
  });
  const totalCost = sumDecimals(lines.map(({ cost }) => cost));
  const total = { cells: ['Total', '', formatUsdExact(totalCost)], isStrong: true };
  const text = textTable(ESTIMATE_COLUMNS, [...itemRows(ESTIMATE_COLUMNS, lines), total], layoutFor(context));
  printResult(context, flags, { currency: 'USD', lines, totalCost }, text, lines);
  say(context, origin);
}

function scaled(value: bigint, scale: number): DecimalText {
  return decimalText(formatScaled(value, scale));
}

/** A line of a file such as `meterline emit` takes. */
const usageLine = z.object({
  billingDimension: z.enum(BILLING_DIMENSIONS, 'must be one of those that "meterline dimensions" lists'),
  usage: z.union([z.number(), z.string()], 'must be a number or a decimal string'),
  timestamp: z.string('must be RFC 3339 in UTC').pipe(instantText).optional(),
  accountId: z.string('must be a string').optional(),
  void: z.boolean('must be true or false').optional(),
});

/** `agent_compute_runtime_gbs=12.5`. @throws CommandError */
function usageArgument(text: string): UsageItem | undefined {
  const [, billingDimension, usage] = /^([^=]+)=([^=]+)$/.exec(text) ?? [];
  if (billingDimension === undefined) throw usageError(`${text} is not <dimension>=<usage>`);
  return usageItem({ billingDimension, usage }, text, EXIT_CODES.usage);
}

/** Undefined for an event that is void, and costs nothing. @throws CommandError with what is wrong with it */
function usageItem(object: object, place: string, exitCode?: ExitCode): UsageItem | undefined {
  const line = usageLine.safeParse(object);
  if (!line.success) {
    const problems = line.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
    throw new CommandError(`${place}: ${problems.join('; ')}`, exitCode);
  }
  const { billingDimension, timestamp, accountId: account } = line.data;
  if (line.data.void) return undefined;
  const usage = parseUsage(billingDimension, line.data.usage);
  if (!usage.ok) throw new CommandError(`${place}: ${usage.message}`, exitCode);
  return { billingDimension, usage: usage.value, timestamp, account };
}
