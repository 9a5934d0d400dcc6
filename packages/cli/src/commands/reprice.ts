import { counted, type EpochMs, formatTimestamp, type PriceBook } from '@meterline/catalog';
import { readNewestPriceBookVersion } from '@meterline/warehouse';
import { type Command, Option } from 'commander';
import { type CommandContext, formatCount } from '../command.js';
import { withShards } from '../connections/servers.js';
import { usageError } from '../failure.js';
import { nameOf, type OutputFlags, timeOf, wholeNumber, withClickHouseFlags, withOutput } from '../flags.js';
import { operate } from '../operations/operation.js';
import { type CostChange, CostChanges, reprice } from '../operations/repricing.js';
import { type ItemColumn, itemRows, textTable } from '../output/table.js';
import type { ClickHouseFlags } from '../settings.js';
import { readPriceBook } from './prices.js';

interface RepriceFlags extends ClickHouseFlags, OutputFlags {
  readonly account: string;
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly book?: string;
  readonly dryRun?: boolean;
  readonly step: number;
}

const COLUMNS: readonly ItemColumn<CostChange>[] = [
  { heading: 'DIMENSION', cell: ({ billingDimension }) => billingDimension },
  { heading: 'EVENTS', cell: ({ events }) => formatCount(events), isNumeric: true },
  { heading: 'CHANGED', cell: ({ changed }) => formatCount(changed), isNumeric: true },
  { heading: 'BEFORE (USD)', cell: ({ before }) => before, isNumeric: true },
  { heading: 'AFTER (USD)', cell: ({ after }) => after, isNumeric: true },
  { heading: 'DIFFERENCE', cell: ({ difference }) => difference, isNumeric: true },
];
const BUILT_IN = 'built-in';
const STEP_EVENTS = 10_000;
const RESUMABLE = 'Run the same command again: it does the rest, and nothing twice.';

export function addReprice(command: Command, context: CommandContext): void {
  command
    .description(
      'Gives the events of an account in a window the cost they have under a price book. What producers own stays: usage, ' +
        'revision and every other field. Voided events are left alone, and so are those whose cost is right already.\n' +
        'Start the ingest workers with the new book first: what arrives meanwhile has the price of their book. Run one ' +
        're-pricing of an account at a time.\n' +
        `Works in steps, so it may be stopped or killed at any time. ${RESUMABLE}\n` +
        'An event older than the first price of its dimension is an error that names it, and then nothing is written.',
    )
    .requiredOption('--account <account>', 'the account', nameOf)
    .requiredOption('--from <time>', 'events from this time on, such as 2026-10-01T00:00:00Z', timeOf)
    .requiredOption('--to <time>', 'events before this time', timeOf)
    .option(
      '--book <file>',
      `the price book, a JSON file or ${BUILT_IN} (else PRICE_BOOK, or the built-in one where no other was ever used)`,
    )
    .option('--dry-run', 'write nothing, and print the difference in money')
    .addOption(
      new Option('--step <n>', 'events per step')
        .argParser((text) => wholeNumber(text, 1, 100_000))
        .default(STEP_EVENTS)
        .hideHelp(),
    )
    .action((flags: RepriceFlags) => runReprice(context, flags));
  withOutput(withClickHouseFlags(command));
}

async function runReprice(context: CommandContext, flags: RepriceFlags): Promise<void> {
  const { account, from, to, step, dryRun = false } = flags;
  if (from >= to) throw usageError('--to must be after --from');
  const file = flags.book === BUILT_IN ? undefined : context.settings.priceBookFile(flags.book);
  const book = await readPriceBook(file);
  const scope = { accountId: account, window: { startTime: from, endTime: to } };
  const changes = new CostChanges();
  await withShards(context, flags, async (shards) => {
    const newest = await readNewestPriceBookVersion(shards.whole);
    if (!file && flags.book === undefined && newest !== undefined && newest > book.version)
      throw usageError(`there are other price books than the built-in one: name yours, or --book ${BUILT_IN}`);
    await operate(context, flags, {
      label: (events) => `${dryRun ? 'Comparing' : 'Re-pricing'} ${counted(events, 'event')}`,
      work: (onProgress, signal) => reprice({ shards, scope, book, dryRun, step, signal, onProgress }, changes),
      describe: (_, wasInterrupted) => {
        const total = changes.total();
        const times = { from: formatTimestamp(from), to: formatTimestamp(to) };
        const json = { account, ...times, priceBook: book.version, dryRun, dimensions: changes.byDimension(), total };
        const isEmpty = total.events === 0 && !wasInterrupted;
        const text = isEmpty ? `Account ${account} has no events in this window.` : describe(changes, book, dryRun);
        return { json, text, rows: json.dimensions };
      },
      resume: dryRun ? undefined : RESUMABLE,
    });
  });
}

function describe(changes: CostChanges, book: PriceBook, dryRun: boolean): string {
  const { changed, events } = changes.total();
  const share = `${formatCount(changed)} of ${counted(events, 'event')}`;
  const outcome = dryRun
    ? `Price book ${book.version} would change ${share}. Nothing was written.`
    : `Changed ${share} to the prices of book ${book.version}; the others had them already.`;
  return `${textTable(COLUMNS, itemRows(COLUMNS, [...changes.byDimension(), changes.total()]))}\n\n${outcome}`;
}
