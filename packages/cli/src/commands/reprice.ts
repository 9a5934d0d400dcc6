import { counted, type EpochMs, formatTimestamp, type PriceBook } from '@meterline/catalog';
import { renewStampsWith } from '@meterline/operations/renewed-stamps';
import { type CostChange, CostChanges, reprice } from '@meterline/operations/repricing';
import { type CommandContext, CommandError, formatCount, printResult, say, usageError } from '../command.js';
import { type Command, Option } from '../commander.js';
import { withShards } from '../connections/clickhouse.js';
import { withRedis } from '../connections/redis.js';
import {
  instantOf,
  type JsonFlag,
  nameOf,
  wholeNumber,
  withClickHouseFlags,
  withJson,
  withRedisUrl,
} from '../flags.js';
import { withProgress } from '../output/progress.js';
import { textTable } from '../output/table.js';
import { readPriceBook } from '../prices/book.js';
import type { ClickHouseFlags, RedisFlags } from '../settings/settings.js';

interface RepriceFlags extends ClickHouseFlags, RedisFlags, JsonFlag {
  readonly account: string;
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly book?: string;
  readonly dryRun?: boolean;
  readonly step: number;
}

const COLUMNS = [
  { heading: 'DIMENSION' },
  ...['EVENTS', 'CHANGED', 'BEFORE (USD)', 'AFTER (USD)', 'DIFFERENCE'].map((heading) => ({
    heading,
    isNumeric: true,
  })),
];
const STEP_EVENTS = 10_000;
const RESUMABLE = 'Run the same command again: it does the rest, and nothing twice.';

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('reprice')
    .description(
      'Gives the events of an account in a window the cost they have under a price book. What producers own stays: usage, ' +
        'revision and every other field. Voided events are left alone, and so are those whose cost is right already.\n' +
        'Start the ingest workers with the new book first: what arrives meanwhile has the price of their book. Run one ' +
        're-pricing of an account at a time.\n' +
        `Works in steps, so it may be stopped or killed at any time. ${RESUMABLE}\n` +
        'An event older than the first price of its dimension is an error that names it, and then nothing is written.',
    )
    .requiredOption('--account <account>', 'the account', nameOf)
    .requiredOption('--from <time>', 'events from this time on, such as 2026-10-01T00:00:00Z', instantOf)
    .requiredOption('--to <time>', 'events before this time', instantOf)
    .option('--book <file>', 'the price book, a JSON file (else PRICE_BOOK, the built-in book)')
    .option('--dry-run', 'write nothing, and print the difference in money')
    .addOption(
      new Option('--step <n>', 'events per step')
        .argParser((text) => wholeNumber(text, 1, 100_000))
        .default(STEP_EVENTS)
        .hideHelp(),
    )
    .action((flags: RepriceFlags) => runReprice(context, flags));
  withJson(withRedisUrl(withClickHouseFlags(command)));
}

async function runReprice(context: CommandContext, flags: RepriceFlags): Promise<void> {
  const { account, from, to, step, dryRun = false } = flags;
  if (from >= to) throw usageError('--to must be after --from');
  const book = await readPriceBook(context.settings.priceBookFile(flags.book));
  const scope = { accountId: account, window: { startTime: from, endTime: to } };
  const signal = context.interruption();
  const changes = new CostChanges();
  const redisUrl = await context.settings.redisUrl(flags);
  const renewStamps = renewStampsWith((work) => withRedis(redisUrl, work));
  try {
    await withShards(await context.settings.clickhouse(flags), (shards) =>
      withProgress(
        context,
        (events) => `${dryRun ? 'Comparing' : 'Re-pricing'} ${counted(events, 'event')}`,
        (onProgress) => reprice({ shards, renewStamps, scope, book, dryRun, step, signal, onProgress }, changes),
      ),
    );
  } catch (error) {
    if (!dryRun && changes.total().events > 0) say(context, `Stopped on the way. ${RESUMABLE}`);
    throw error;
  }
  report(context, flags, book, changes, signal.aborted);
  if (!signal.aborted) return;
  throw new CommandError(dryRun ? 'interrupted before everything was compared' : `interrupted. ${RESUMABLE}`);
}

function report(
  context: CommandContext,
  flags: RepriceFlags,
  book: PriceBook,
  changes: CostChanges,
  interrupted: boolean,
): void {
  const { account, from, to, dryRun = false, json } = flags;
  const total = changes.total();
  const result = {
    account,
    from: formatTimestamp(from),
    to: formatTimestamp(to),
    priceBook: book.version,
    dryRun,
    dimensions: changes.byDimension(),
    total,
  };
  const isEmpty = total.events === 0 && !interrupted;
  const text = isEmpty ? `Account ${account} has no events in this window.` : describe(changes, book, dryRun);
  printResult(context, json, result, text);
}

function describe(changes: CostChanges, book: PriceBook, dryRun: boolean): string {
  const { changed, events } = changes.total();
  const share = `${formatCount(changed)} of ${counted(events, 'event')}`;
  const outcome = dryRun
    ? `Price book ${book.version} would change ${share}. Nothing was written.`
    : `Changed ${share} to the prices of book ${book.version}; the others had them already.`;
  return `${textTable(COLUMNS, [...changes.byDimension(), changes.total()].map(row))}\n\n${outcome}`;
}

function row({ billingDimension, events, changed, before, after, difference }: CostChange) {
  return { cells: [billingDimension, formatCount(events), formatCount(changed), before, after, difference] };
}
