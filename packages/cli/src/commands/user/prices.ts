/** The `meterline dimensions` and `meterline estimate` commands, with prices from the API or from a price book. */
import {
  addDimensions as addKnownDimensions,
  type BillingDimension,
  type BillingDimensionResponse,
  billingDimensions,
  COST_SCALE,
  costOf,
  DEFAULT_PRICE_BOOK_FILE,
  type DecimalText,
  decimalText,
  END_OF_TIME,
  type EpochMs,
  formatScaled,
  formatTimestamp,
  formatUsage,
  formatUsdExact,
  instantText,
  isBillingDimension,
  PriceBook,
  parseUsage,
  priceText,
  shortened,
  sumDecimals,
  USAGE_SCALE,
  unitName,
  unitOf,
} from '@meterline/catalog';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { type CommandContext, say } from '../../command.js';
import { withAccount } from '../../connections/api.js';
import { CommandError, EXIT_CODES, type ExitCode, usageError } from '../../failure.js';
import { type OutputFlags, timeOf, withApiFlags, withOutput } from '../../flags.js';
import { jsonLines, openEventSource } from '../../input.js';
import { printResult } from '../../output/result.js';
import { type ItemColumn, itemRows, layoutFor, printList, textTable } from '../../output/table.js';
import { readPriceBook } from '../../price-book.js';
import { API_SETTINGS_HELP, type ApiFlags, settingText } from '../../settings.js';
import { didYouMean } from '../../typing-errors.js';

interface BookFlags extends ApiFlags {
  readonly book?: string;
  readonly at?: number;
}

interface Prices {
  readonly bookOf: (account: string) => Promise<PriceBook>;
  readonly account: string;
  readonly at: EpochMs;
  /** The time as it appears in messages, such as `now` or `at 2026-01-01T00:00:00Z`. */
  readonly moment: string;
  readonly origin: string;
}

/** An account that cannot exist. No price override applies to it. */
const NO_ACCOUNT = '';

function withBook(command: Command): Command {
  return withApiFlags(command)
    .addOption(
      new Option('--book <file>', 'Use the prices of a JSON price book instead of the API').conflicts('apiUrl'),
    )
    .option('--at <time>', 'With --book: use the prices in force at this time (default: now)', timeOf)
    .addHelpText('after', API_SETTINGS_HELP);
}

/** Runs `work` with the prices of --book, or with the prices of the API if there is no --book. @throws CommandError */
async function withPrices(context: CommandContext, flags: BookFlags, work: (prices: Prices) => Promise<void>) {
  const { settings, now } = context;
  if (flags.book !== undefined) {
    const book = await readPriceBook(settings.priceBookFile(flags.book), settings.catalogFile());
    const { account = NO_ACCOUNT, at = now().getTime() } = flags;
    const moment = flags.at === undefined ? 'now' : `at ${formatTimestamp(at)}`;
    return work({ bookOf: async () => book, account, at, moment, origin: `${flags.book}, version ${book.version}` });
  }
  if (flags.at !== undefined) throw usageError('--at needs --book: the API returns only the prices in force now');
  const { key, url } = await settings.api(flags);
  if (!key) {
    throw usageError(
      `there is no API key to read prices from ${url.value} (from ${url.source}); run "meterline login", set METERLINE_API_KEY, or use --book <file>`,
    );
  }
  await withAccount(context, flags, ({ client, account }) => {
    const books = new Map<string, Promise<PriceBook>>();
    const read = async (name: string) => {
      const dimensions = await client.billingDimensions(name);
      addKnownDimensions(dimensions);
      return PriceBook.ofBillingDimensions(dimensions);
    };
    const bookOf = (name: string) => {
      const book = books.get(name) ?? read(name);
      books.set(name, book);
      return book;
    };
    // Use the latest time: the API has already chosen the current prices by its own clock, and the clock of this machine may be behind.
    return work({ bookOf, account, at: END_OF_TIME, moment: 'now', origin: `${account} at ${settingText(url)}` });
  });
}

interface DimensionsFlags extends BookFlags, OutputFlags {
  readonly exampleBook?: boolean;
}

export function addDimensions(command: Command, context: CommandContext): void {
  command
    .description(
      'List the billing dimensions with their resource type, unit and price. GB-s are gigabyte-seconds; a month has 730 hours.',
    )
    .option('--example-book', 'Print an example price book in JSON instead')
    .action((flags: DimensionsFlags) => {
      if (flags.exampleBook) return void context.stdout.write(`${JSON.stringify(DEFAULT_PRICE_BOOK_FILE, null, 2)}\n`);
      return withPrices(context, flags, (prices) => listDimensions(context, flags, prices));
    });
  withOutput(withBook(command));
}

const DIMENSION_COLUMNS: readonly ItemColumn<BillingDimensionResponse>[] = [
  { heading: 'DIMENSION', cell: ({ billingDimension }) => billingDimension },
  { heading: 'TYPE', cell: ({ resourceType }) => resourceType },
  { heading: 'UNIT', cell: ({ unit }) => unitName(unit) },
  { heading: 'PRICE', cell: ({ unit, price }) => (price ? priceText(price, unit) : 'none yet') },
  { heading: 'SINCE', cell: ({ price }) => price?.effectiveFrom ?? '' },
];

async function listDimensions(context: CommandContext, flags: OutputFlags, prices: Prices): Promise<void> {
  const { bookOf, account, at } = prices;
  const items = (await bookOf(account)).billingDimensions(account, at);
  printList(context, flags, { columns: DIMENSION_COLUMNS, items, none: '' });
  sayOrigin(context, prices);
}

function sayOrigin(context: CommandContext, { moment, origin }: Prices): void {
  say(context, `Prices in force ${moment}: ${origin}.`);
}

interface EstimateFlags extends BookFlags, OutputFlags {
  readonly file?: string;
}

interface UsageItem {
  readonly billingDimension: BillingDimension;
  readonly usage: number | string;
  /** The time of use, or undefined for the time of the command. */
  readonly timestamp: EpochMs | undefined;
  readonly account: string | undefined;
  /** The item as it appears in error messages. */
  readonly origin: string;
  readonly exitCode: ExitCode | undefined;
}

/** Sums of usage, scaled by 10^9, and of cost, scaled by 10^12. */
interface Amounts {
  usage: bigint;
  cost: bigint;
}

const EXAMPLES = `
Examples:
  meterline estimate agent_compute_runtime_gbs=86400 agent_async_requests_count=1000000
  meterline estimate --file events.jsonl`;

interface Line {
  readonly billingDimension: BillingDimension;
  readonly usage: DecimalText;
  readonly cost: DecimalText;
}

const ESTIMATE_COLUMNS: readonly ItemColumn<Line>[] = [
  { heading: 'DIMENSION', cell: ({ billingDimension }) => billingDimension },
  {
    heading: 'USAGE',
    cell: ({ usage, billingDimension }) => formatUsage(usage, unitOf(billingDimension)),
    isNumeric: true,
  },
  { heading: 'COST', cell: ({ cost }) => formatUsdExact(cost), isNumeric: true },
];

export function addEstimate(command: Command, context: CommandContext): void {
  command
    .description(
      'Estimate the cost of a list of usage. Each item is priced like an event: with the price in force at its time, rounded to 12 ' +
        'decimals.\nEach line of a file is a JSON object with billingDimension and usage, and optionally timestamp and accountId. ' +
        'Event files work too, but duplicates and revisions are counted as separate usage.\n' +
        'The API returns only the prices in force now; older usage needs --book.',
    )
    .argument('[usage...]', 'Usage, as <dimension>=<usage>')
    .option('--file <path>', 'JSON Lines file, or - for standard input')
    .addHelpText('after', EXAMPLES)
    .action((usage: string[], flags: EstimateFlags) => {
      if (usage.length > 0 === (flags.file !== undefined)) {
        throw usageError('specify either usage, as <dimension>=<usage>, or --file');
      }
      const items = flags.file === undefined ? usage.map(usageArgument) : readItems(context, flags.file);
      return withPrices(context, flags, (prices) => estimate(context, items, flags, prices));
    });
  withOutput(withBook(command));
}

type UsageItems = Iterable<UsageItem | undefined> | AsyncIterable<UsageItem | undefined>;

async function estimate(context: CommandContext, items: UsageItems, flags: OutputFlags, prices: Prices): Promise<void> {
  const sums = new Map<BillingDimension, Amounts>();
  for await (const item of items) if (item) await add(sums, item, prices);
  report(context, flags, sums);
  sayOrigin(context, prices);
}

async function add(sums: Map<BillingDimension, Amounts>, item: UsageItem, { bookOf, ...prices }: Prices) {
  const { billingDimension, usage, timestamp = prices.at, account = prices.account } = item;
  const price = (await bookOf(account)).priceAt(account, billingDimension, timestamp);
  // The platform may have added dimensions, which are known once the prices have been read.
  if (!isBillingDimension(billingDimension)) {
    const problem = `billingDimension ${DIMENSION_RULE}${didYouMean(billingDimension, billingDimensions())}`;
    throw new CommandError(`${item.origin}: ${problem}`, item.exitCode);
  }
  if (!price) {
    const moment = item.timestamp === undefined ? prices.moment : `at ${formatTimestamp(timestamp)}`;
    throw new CommandError(`no price of ${billingDimension} is known ${moment}; use --book with a book that has one`);
  }
  const parsed = parseUsage(billingDimension, usage);
  if (!parsed.ok) throw new CommandError(`${item.origin}: ${parsed.message}`, item.exitCode);
  const sum = sums.get(billingDimension) ?? { usage: 0n, cost: 0n };
  sums.set(billingDimension, { usage: sum.usage + parsed.value, cost: sum.cost + costOf(parsed.value, price) });
}

async function* readItems({ stdin }: CommandContext, path: string): AsyncGenerator<UsageItem | undefined> {
  const { name, input } = await openEventSource(path, stdin);
  try {
    for await (const line of jsonLines(input)) {
      const origin = `${name}:${line.number}`;
      if ('problem' in line) throw new CommandError(`${origin}: ${line.problem}`);
      yield usageItem(line.object, origin);
    }
  } finally {
    input.destroy();
  }
}

function report(context: CommandContext, flags: OutputFlags, sums: ReadonlyMap<BillingDimension, Amounts>): void {
  const lines = billingDimensions().flatMap((billingDimension): Line[] => {
    const sum = sums.get(billingDimension);
    return sum ? [{ billingDimension, usage: scaled(sum.usage, USAGE_SCALE), cost: scaled(sum.cost, COST_SCALE) }] : [];
  });
  const totalCost = sumDecimals(lines.map(({ cost }) => cost));
  const total = { cells: ['Total', '', formatUsdExact(totalCost)], isStrong: true };
  const text = textTable(ESTIMATE_COLUMNS, [...itemRows(ESTIMATE_COLUMNS, lines), total], layoutFor(context));
  printResult(context, flags, { currency: 'USD', lines, totalCost }, text, lines);
}

function scaled(value: bigint, scale: number): DecimalText {
  return decimalText(formatScaled(value, scale));
}

const DIMENSION_RULE = 'must be a dimension from "meterline dimensions"';
const usageLine = z.object({
  billingDimension: z.string(DIMENSION_RULE),
  usage: z.union([z.number(), z.string()], 'must be a number or a decimal string'),
  timestamp: z.string('must be RFC 3339 in UTC').pipe(instantText).optional(),
  accountId: z.string('must be a string').optional(),
  void: z.boolean('must be true or false').optional(),
});

/** Parses usage such as `agent_compute_runtime_gbs=12.5`. @throws CommandError */
function usageArgument(text: string): UsageItem | undefined {
  const [, billingDimension, usage] = /^([^=]+)=([^=]+)$/.exec(text) ?? [];
  if (billingDimension === undefined) throw usageError(`${shortened(text)} is not <dimension>=<usage>`);
  return usageItem({ billingDimension, usage }, shortened(text), EXIT_CODES.usage);
}

/** Parses an item. Returns undefined for a voided event, which costs nothing. @throws CommandError that lists all problems */
function usageItem(object: object, origin: string, exitCode?: ExitCode): UsageItem | undefined {
  const line = usageLine.safeParse(object);
  if (!line.success) {
    const problems = line.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
    throw new CommandError(`${origin}: ${problems.join('; ')}`, exitCode);
  }
  const { billingDimension, usage, timestamp, accountId: account } = line.data;
  return line.data.void ? undefined : { billingDimension, usage, timestamp, account, origin, exitCode };
}
