import { type EpochMs, formatTimestamp, type PriceBook } from '@meterline/catalog';
import {
  checkPriceBook,
  insertUsageEvents,
  PriceBookConflictError,
  type PricedEvent,
  type RepricingScope,
  readDimensionSpans,
  readRepricingStep,
  registerPriceBook,
  type Warehouse,
} from '@meterline/warehouse';
import { type Command, Option } from 'commander';
import { type CommandContext, formatCount, printResult, say } from '../command-context.js';
import { CommandError, usageError } from '../command-error.js';
import { withWarehouse } from '../connections/clickhouse.js';
import { startProgress } from '../progress.js';
import { DailyRepairs } from '../reprice/daily-repairs.js';
import { MoneyTable } from '../reprice/money-table.js';
import { readPriceBook } from '../reprice/price-book-file.js';
import { repricedEvent, requirePrice } from '../reprice/repricing.js';
import type { ClickHouseFlags } from '../settings/settings.js';
import { instantOf, nameOf, wholeNumber, withClickHouseFlags, withJson } from './flags.js';

interface RepriceFlags extends ClickHouseFlags {
  readonly account: string;
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly book?: string;
  readonly dryRun?: boolean;
  readonly step: number;
  readonly json?: boolean;
}

const STEP_EVENTS = 10_000;
const RESUMABLE = 'Run the same command again: it does the rest, and nothing twice.';

export function addRepriceCommand(program: Command, context: CommandContext): void {
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
  withJson(withClickHouseFlags(command));
}

async function runReprice(context: CommandContext, flags: RepriceFlags): Promise<void> {
  if (flags.from >= flags.to) throw usageError('--to must be after --from');
  const book = await readPriceBook(context.settings.priceBookFile(flags.book));
  const scope = { accountId: flags.account, window: { startTime: flags.from, endTime: flags.to } };
  const signal = context.interruption();
  const table = new MoneyTable();
  try {
    await withWarehouse(await context.settings.clickhouse(flags), async (warehouse) => {
      await admitted(checkPriceBook(warehouse, book));
      await repriceAll(context, warehouse, { ...flags, scope, book, signal }, table);
    });
  } catch (error) {
    if (!flags.dryRun && table.total().events > 0) say(context, `Stopped on the way. ${RESUMABLE}`);
    throw error;
  }
  report(context, flags, book, table, signal.aborted);
  if (!signal.aborted) return;
  throw new CommandError(flags.dryRun ? 'interrupted before everything was compared' : `interrupted. ${RESUMABLE}`);
}

/** As at a worker's start: a version must mean the same prices for ever. @throws CommandError */
async function admitted(check: Promise<unknown>): Promise<void> {
  try {
    await check;
  } catch (error) {
    if (error instanceof PriceBookConflictError) throw new CommandError(error.message, undefined, { cause: error });
    throw error;
  }
}

interface Repricing {
  readonly scope: RepricingScope;
  readonly book: PriceBook;
  readonly dryRun?: boolean;
  /** Events per step: what is held in memory at once. */
  readonly step: number;
  readonly signal: AbortSignal;
}

/**
 * Crash order: a step is read, then inserted as one block; the sealed cells of a day are recomputed when the steps have
 * left it. A crash leaves whole steps done, the one under way done or not, and the cells of a day perhaps without them. A
 * second run reads the same events, finds those that are done at their new cost, and recomputes the cells of all: a cell
 * is not known to hold what its events say only because none of them changes any more. A revision that a producer
 * sends between reading and inserting wins, because it is compared before the price revision; its price is that of the
 * worker's book, and so is the price of an event that arrives behind the step.
 */
async function repriceAll(
  context: CommandContext,
  warehouse: Warehouse,
  { scope, book, dryRun, step, signal }: Repricing,
  table: MoneyTable,
): Promise<void> {
  const spans = await readDimensionSpans(warehouse, scope);
  for (const { billingDimension, first } of spans) requirePrice(book, scope.accountId, billingDimension, first);
  // Only now: one that lacks a price is mended and comes again under the same version.
  if (!dryRun && spans.length > 0) await admitted(registerPriceBook(warehouse, book));
  const total = spans.reduce((sum, { events }) => sum + events, 0);
  const progress = startProgress(context, `${dryRun ? 'Comparing' : 'Re-pricing'} ${formatCount(total)} events`, total);
  try {
    const repairs = new DailyRepairs(warehouse);
    let done = 0;
    let last: PricedEvent | undefined;
    for (let isMore = total > 0; isMore && !signal.aborted; ) {
      const events = await readRepricingStep(warehouse, scope, last, step);
      const changes = changesOf(events, book, table);
      if (!dryRun) {
        await insertUsageEvents(warehouse, changes);
        await repairs.add(events);
      }
      last = events.at(-1);
      done += events.length;
      isMore = events.length === step;
      progress.update(done);
    }
    await repairs.finish();
  } finally {
    progress.stop();
  }
}

function changesOf(events: readonly PricedEvent[], book: PriceBook, table: MoneyTable): PricedEvent[] {
  return events.flatMap((event) => {
    const change = repricedEvent(event, book);
    table.add(event.billingDimension, event.cost, change?.cost ?? event.cost);
    return change ? [change] : [];
  });
}

function report(
  context: CommandContext,
  flags: RepriceFlags,
  book: PriceBook,
  table: MoneyTable,
  interrupted: boolean,
): void {
  const { account, from, to, dryRun = false, json } = flags;
  const total = table.total();
  const result = {
    account,
    from: formatTimestamp(from),
    to: formatTimestamp(to),
    priceBook: book.version,
    dryRun,
    dimensions: table.lines(),
    total,
  };
  const isEmpty = total.events === 0 && !interrupted;
  const text = isEmpty ? `Account ${account} has no events in this window.` : describe(table, book, dryRun);
  printResult(context, json, result, text);
}

function describe(table: MoneyTable, book: PriceBook, dryRun: boolean): string {
  const { changed, events } = table.total();
  const share = `${formatCount(changed)} of ${formatCount(events)} events`;
  const outcome = dryRun
    ? `Price book ${book.version} would change ${share}. Nothing was written.`
    : `Changed ${share} to the prices of book ${book.version}; the others had them already.`;
  return `${table.text()}\n\n${outcome}`;
}
