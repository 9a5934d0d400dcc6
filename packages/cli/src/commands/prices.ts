/** Prices without a server: what is billed, and what a list of usage would cost. */

import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  COST_SCALE,
  costOf,
  type DecimalText,
  DIMENSIONS,
  decimalText,
  type EpochMs,
  formatScaled,
  formatTimestamp,
  formatUsage,
  formatUsdExact,
  isBillingDimension,
  parseTimestamp,
  parseUsage,
  priceText,
  UNIT_NAME,
  USAGE_SCALE,
} from '@meterline/catalog';
import type { Command } from 'commander';
import { z } from 'zod';
import { type CommandContext, printResult, say } from '../command.js';
import { CommandError, usageError } from '../failure.js';
import { type JsonFlag, withJson } from '../flags.js';
import { jsonLines, openEventSource } from '../input.js';
import { layoutFor, textTable } from '../output/table.js';
import { type BookFlags, type OpenedBook, openBook, withBook } from '../price-book.js';

type DimensionsFlags = BookFlags & JsonFlag;

const DIMENSION_COLUMNS = [{ heading: 'DIMENSION' }, { heading: 'TYPE' }, { heading: 'UNIT' }, { heading: 'PRICE' }];
const NO_PRICE = 'none yet';

export function addDimensions(program: Command, context: CommandContext): void {
  const command = program
    .command('dimensions')
    .description(
      'Lists the billing dimensions: what each belongs to, its unit, and its price. GB-s are gigabyte-seconds; a month is ' +
        '730 hours.\nAsks no server.',
    )
    .action((flags: DimensionsFlags) => listDimensions(context, flags));
  withJson(withBook(command));
}

async function listDimensions(context: CommandContext, flags: DimensionsFlags): Promise<void> {
  const { book, account, at, origin } = await openBook(context, flags);
  const dimensions = BILLING_DIMENSIONS.map((billingDimension) => {
    const price = book.priceAt(account, billingDimension, at);
    return { billingDimension, ...DIMENSIONS[billingDimension], price };
  });
  const result = dimensions.map(({ price, ...dimension }) => ({
    ...dimension,
    price: price ? { currency: 'USD', amount: price.amount, per: price.per } : null,
  }));
  const rows = dimensions.map(({ billingDimension, resourceType, unit, price }) => ({
    cells: [billingDimension, resourceType, UNIT_NAME[unit], price ? priceText(price, unit) : NO_PRICE],
  }));
  printResult(context, flags.json, result, textTable(DIMENSION_COLUMNS, rows, layoutFor(context)));
  say(context, origin);
}

interface EstimateFlags extends BookFlags, JsonFlag {
  readonly file?: string;
}

interface UsageItem {
  readonly billingDimension: BillingDimension;
  /** Scaled by 10^9. */
  readonly usage: bigint;
  /** When it is used; undefined: at the time of the question. */
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

const ESTIMATE_COLUMNS = [
  { heading: 'DIMENSION' },
  { heading: 'USAGE', isNumeric: true },
  { heading: 'COST', isNumeric: true },
];

export function addEstimate(program: Command, context: CommandContext): void {
  const command = program
    .command('estimate')
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
  withJson(withBook(command));
}

async function estimate(context: CommandContext, usage: readonly string[], flags: EstimateFlags): Promise<void> {
  if (usage.length > 0 === (flags.file !== undefined)) {
    throw usageError('name some usage, as <dimension>=<usage>, or a --file');
  }
  const opened = await openBook(context, flags);
  const sums = new Map<BillingDimension, Amounts>();
  for (const item of usage.map(usageArgument)) add(sums, item, opened);
  if (flags.file !== undefined) {
    for await (const item of readItems(context, flags.file)) add(sums, item, opened);
  }
  report(context, flags, sums, opened.origin);
}

function add(sums: Map<BillingDimension, Amounts>, item: UsageItem, { book, account, at }: OpenedBook): void {
  const { billingDimension, usage, timestamp = at } = item;
  const price = book.priceAt(item.account ?? account, billingDimension, timestamp);
  if (!price) throw new CommandError(`${billingDimension} has no price at ${formatTimestamp(timestamp)}`);
  const sum = sums.get(billingDimension) ?? { usage: 0n, cost: 0n };
  sums.set(billingDimension, { usage: sum.usage + usage, cost: sum.cost + costOf(usage, price) });
}

async function* readItems({ stdin }: CommandContext, path: string): AsyncGenerator<UsageItem> {
  const { name, input } = await openEventSource(path, stdin);
  try {
    for await (const line of jsonLines(input)) {
      const place = `${name}:${line.number}`;
      if ('fault' in line) throw new CommandError(`${place}: ${line.fault}`);
      const item = usageLine(line.object, place);
      if (item) yield item;
    }
  } finally {
    input.destroy();
  }
}

function report(
  context: CommandContext,
  { json }: EstimateFlags,
  sums: ReadonlyMap<BillingDimension, Amounts>,
  origin: string,
): void {
  const lines = BILLING_DIMENSIONS.flatMap((billingDimension) => {
    const sum = sums.get(billingDimension);
    return sum ? [{ billingDimension, usage: scaled(sum.usage, USAGE_SCALE), cost: scaled(sum.cost, COST_SCALE) }] : [];
  });
  const totalCost = scaled(
    [...sums.values()].reduce((total, { cost }) => total + cost, 0n),
    COST_SCALE,
  );
  const rows = lines.map(({ billingDimension, usage, cost }) => ({
    cells: [billingDimension, formatUsage(usage, DIMENSIONS[billingDimension].unit), formatUsdExact(cost)],
  }));
  const total = { cells: ['Total', '', formatUsdExact(totalCost)], isStrong: true };
  const text = textTable(ESTIMATE_COLUMNS, [...rows, total], layoutFor(context));
  printResult(context, json, { currency: 'USD', lines, totalCost }, text);
  say(context, origin);
}

function scaled(value: bigint, scale: number): DecimalText {
  return decimalText(formatScaled(value, scale));
}

/** A line of a file such as `meterline emit` takes. */
const lineSchema = z.object({
  billingDimension: z.enum(
    BILLING_DIMENSIONS,
    'billingDimension must be one of those that "meterline dimensions" lists',
  ),
  usage: z.union([z.number(), z.string()], 'usage must be a number or a decimal string'),
  timestamp: z.string('timestamp must be RFC 3339 in UTC').optional(),
  accountId: z.string('accountId must be a string').optional(),
  void: z.boolean('void must be true or false').optional(),
});

/** `agent_compute_runtime_gbs=12.5`. @throws CommandError */
function usageArgument(text: string): UsageItem {
  const [dimension = '', amount = '', ...rest] = text.split('=');
  if (rest.length > 0 || !isBillingDimension(dimension)) {
    throw usageError(`${text} is not <dimension>=<usage>, with a dimension that "meterline dimensions" lists`);
  }
  const usage = parseUsage(dimension, amount);
  if (!usage.ok) throw usageError(`${text}: ${usage.message}`);
  return { billingDimension: dimension, usage: usage.value, timestamp: undefined, account: undefined };
}

/** Undefined for an event that is void, and costs nothing. @throws CommandError with what is wrong with the line */
function usageLine(object: object, place: string): UsageItem | undefined {
  const line = lineSchema.safeParse(object);
  if (!line.success) throw new CommandError(`${place}: ${line.error.issues.map(({ message }) => message).join('; ')}`);
  const { billingDimension, timestamp: at, accountId: account } = line.data;
  if (line.data.void) return undefined;
  const usage = parseUsage(billingDimension, line.data.usage);
  if (!usage.ok) throw new CommandError(`${place}: ${usage.message}`);
  const timestamp = at === undefined ? undefined : parseTimestamp(at);
  if (at !== undefined && timestamp === undefined) {
    throw new CommandError(`${place}: timestamp must be RFC 3339 in UTC, such as 2026-11-01T00:00:00Z`);
  }
  return { billingDimension, usage: usage.value, timestamp, account };
}
