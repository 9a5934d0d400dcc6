/** The `meterline reprice` command. */
import { counted, type EpochMs, formatTimestamp, type PriceBook } from '@meterline/catalog';
import { readNewestPriceBookVersion } from '@meterline/warehouse';
import { type Command, Option } from 'commander';
import { type CommandContext, formatCount } from '../../command.js';
import { withShards } from '../../connections/servers.js';
import { usageError } from '../../failure.js';
import { nameOf, type OutputFlags, timeOf, wholeNumber, withClickHouseFlags, withOutput } from '../../flags.js';
import { operate } from '../../operations/operation.js';
import { type CostChange, CostChanges, reprice } from '../../operations/repricing.js';
import { type ItemColumn, itemRows, textTable } from '../../output/table.js';
import { readPriceBook } from '../../price-book.js';
import type { ClickHouseFlags } from '../../settings.js';

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
const RESUMABLE = 'Run the same command again to finish; no event is re-priced twice.';

export function addReprice(command: Command, context: CommandContext): void {
  command
    .description(
      'Recalculate the costs of an account in a time window with a price book. Usage, revisions and all other fields stay unchanged; ' +
        'voided events and events with the correct cost are skipped.\n' +
        'First start the ingest workers with the new price book, because they price the events that arrive meanwhile. Run only ' +
        'one re-pricing of an account at a time.\n' +
        `The command can be stopped or killed at any time. ${RESUMABLE}\n` +
        'If the price book has no price for an event, the command fails with the event ID and writes nothing.',
    )
    .requiredOption('--account <account>', 'Account ID', nameOf)
    .requiredOption('--from <time>', 'Start time, inclusive, such as 2026-10-01T00:00:00Z', timeOf)
    .requiredOption('--to <time>', 'End time, exclusive', timeOf)
    .option('--book <file>', `Price book: a JSON file or ${BUILT_IN} (default: $PRICE_BOOK; ${BUILT_IN} on first use)`)
    .option('--dry-run', 'Show how the costs would change, without writing anything')
    .addOption(
      new Option('--step <n>', 'Events to reprice per step')
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
  const book = await readPriceBook(file, context.settings.catalogFile());
  const scope = { accountId: account, window: { startTime: from, endTime: to } };
  const changes = new CostChanges();
  await withShards(context, flags, async (shards) => {
    const newest = await readNewestPriceBookVersion(shards.whole);
    if (!file && flags.book === undefined && newest !== undefined && newest > book.version)
      throw usageError(`another price book is in use: set it with --book, or use --book ${BUILT_IN}`);
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
