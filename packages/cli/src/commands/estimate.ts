import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
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
  parseJson,
  parseTimestamp,
  parseUsage,
  USAGE_SCALE,
} from '@meterline/catalog';
import type { Command } from 'commander';
import { z } from 'zod';
import { type CommandContext, CommandError, printResult, readFailure, say, usageError } from '../command.js';
import { type JsonFlag, withJson } from '../flags.js';
import { layoutFor, textTable } from '../output/table.js';
import { type BookFlags, type OpenedBook, openBook, withBook } from '../prices/book.js';

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

const COLUMNS = [{ heading: 'DIMENSION' }, { heading: 'USAGE', isNumeric: true }, { heading: 'COST', isNumeric: true }];

export function addCommand(program: Command, context: CommandContext): void {
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
  const name = path === '-' ? 'standard input' : path;
  const input: Readable = path === '-' ? stdin : createReadStream(path);
  let number = 0;
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) {
      number += 1;
      const item = line.trim() === '' ? undefined : usageLine(line, `${name}:${number}`);
      if (item) yield item;
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw readFailure(name, error);
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
  const text = textTable(COLUMNS, [...rows, total], layoutFor(context));
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
function usageLine(text: string, place: string): UsageItem | undefined {
  const line = lineSchema.safeParse(parseJson(text) ?? null);
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
