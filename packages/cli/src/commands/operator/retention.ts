/** The `meterline retention` commands. */
import { bucketStart, counted, type EpochMs, formatTimestamp, plusMonths } from '@meterline/catalog';
import type { EventMonth } from '@meterline/warehouse';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say, sayProgress } from '../../command.js';
import { withShards } from '../../connections/servers.js';
import { usageError } from '../../failure.js';
import { monthOf, monthText, type OutputFlags, wholeNumber, withClickHouseFlags, withOutput } from '../../flags.js';
import { requireConfirmation } from '../../input.js';
import { operate } from '../../operations/operation.js';
import {
  closeMonths,
  compareClosedMonths,
  dropClosedMonths,
  type Retention,
  readRetention,
  reopenMonths,
  requireSealed,
} from '../../operations/retention.js';
import { printResult } from '../../output/result.js';
import { type ItemColumn, itemRows, textTable } from '../../output/table.js';
import type { ClickHouseFlags } from '../../settings.js';

type StatusFlags = ClickHouseFlags & OutputFlags;

interface ChangeFlags extends StatusFlags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

interface CloseFlags extends ChangeFlags {
  readonly before?: EpochMs;
  readonly months?: number;
}

interface ReopenFlags extends StatusFlags {
  readonly from: EpochMs;
}

const COLUMNS: readonly ItemColumn<MonthState>[] = [
  { heading: 'MONTH', cell: ({ month }) => month },
  { heading: 'EVENTS', cell: ({ rows }) => formatCount(rows), isNumeric: true },
  { heading: 'STATE', cell: ({ state }) => state },
];
const MAX_MONTHS = 1_200;
const RESUMABLE = 'Run the same command again to finish.';

export function addRetention(retention: Command, context: CommandContext): void {
  retention.description(
    'Manage how long events are kept. By default, events are kept forever. Hourly and daily rollups are always kept, so amounts ' +
      'of whole hours and days never change. To free disk space, close old months, and later drop their events.',
  );

  const status = retention
    .command('status')
    .summary('List months and their state')
    .description('List the months that have events, and whether each is open or closed.')
    .action((flags: StatusFlags) => showStatus(context, flags));
  withOutput(withClickHouseFlags(status));

  const close = retention
    .command('close')
    .summary('Close old months: reject their events from now on')
    .description(
      'Close old months, after confirmation: new events of these months become rejected events with the reason too_old. Nothing is ' +
        'deleted, and "retention reopen" undoes it. The current month, the previous month and months that are not sealed cannot ' +
        'be closed.',
    )
    .option('--before <month>', 'First month that stays open, such as 2025-01', monthStart)
    .option('--months <n>', 'Number of months before the current one that stay open', (text) =>
      wholeNumber(text, 1, MAX_MONTHS),
    );
  withChange(close).action((flags: CloseFlags) => runClose(context, flags));

  const reopen = retention
    .command('reopen')
    .summary('Reopen closed months: accept their events again')
    .description(
      'Reopen closed months whose events have not been dropped. To count events that were rejected meanwhile, run ' +
        '"meterline rejected replay --all --reason too_old".',
    )
    .requiredOption('--from <month>', 'First month to reopen, such as 2024-11', monthStart)
    .action((flags: ReopenFlags) => runReopen(context, flags));
  withOutput(withClickHouseFlags(reopen));

  const drop = retention
    .command('drop')
    .summary('Permanently delete the events of closed months')
    .description(
      'Delete the events of all closed months permanently, after confirmation. Each month is deleted only after a check that its ' +
        'rollups match its events. Afterwards, these months no longer support parts of an hour, lists of events ("explain"), ' +
        're-pricing and audits.\n' +
        `The command can be stopped or killed at any time. ${RESUMABLE} Run only one at a time.`,
    );
  withChange(drop).action((flags: ChangeFlags) => runDrop(context, flags));
}

function withChange(command: Command): Command {
  const confirmed = command
    .option('--yes', 'Skip the confirmation')
    .option('--dry-run', 'Dry run: show what would change');
  return withOutput(withClickHouseFlags(confirmed));
}

const monthStart = (text: string): EpochMs => monthOf(text).startTime;

interface MonthState {
  readonly month: string;
  readonly rows: number;
  readonly state: string;
}

async function showStatus(context: CommandContext, flags: StatusFlags): Promise<void> {
  const found = await withShards(context, flags, readRetention);
  const { closedBefore, droppingBefore, droppedBefore } = found;
  const months = found.months.map(({ startTime, endTime, rows }): MonthState => {
    const state = endTime <= droppingBefore ? 'being dropped' : endTime <= closedBefore ? 'closed' : 'open';
    return { month: monthText(startTime), rows, state };
  });
  const bounds = { closedBefore: formatTimestamp(closedBefore), droppedBefore: formatTimestamp(droppedBefore) };
  const table = months.length > 0 ? `${textTable(COLUMNS, itemRows(COLUMNS, months))}\n\n` : '';
  printResult(context, flags, { ...bounds, months }, `${table}${describe(found)}`, months);
}

function describe({ closedBefore, droppedBefore }: Retention): string {
  if (closedBefore === 0) return 'No month is closed: events of any age are accepted and kept.';
  const dropped = droppedBefore > 0 ? ` Events before ${monthText(droppedBefore)} have been dropped.` : '';
  return `Months before ${monthText(closedBefore)} are closed.${dropped}`;
}

async function runClose(context: CommandContext, flags: CloseFlags): Promise<void> {
  const before = closingOf(flags, context.now().getTime());
  await withShards(context, flags, async (shards) => {
    const { closedBefore, closedEverywhere } = await readRetention(shards);
    const until = Math.max(before, closedBefore);
    const result = { closedBefore: formatTimestamp(until) };
    const print = (text: string) => printResult(context, flags, result, text);
    if (until <= closedEverywhere) return print(`Months before ${monthText(until)} are already closed.`);
    await requireSealed(shards, until);
    if (flags.dryRun) return print(`Months before ${monthText(until)} would be closed. Nothing was changed.`);
    const question = `Reject events before ${monthText(until)} from now on? Type yes:`;
    if (!flags.yes) await requireConfirmation(context, question, 'yes');
    const closed = await closeMonths(shards, until);
    const text = `Months before ${monthText(closed)} are closed. All workers apply this within seconds.`;
    printResult(context, flags, { closedBefore: formatTimestamp(closed) }, text);
  });
}

/** Returns the start of the first month that stays open. @throws CommandError if both flags or none is set, or the month is too recent */
function closingOf({ before, months }: CloseFlags, now: EpochMs): EpochMs {
  if ((before === undefined) === (months === undefined)) throw usageError('use either --before or --months');
  const start = before ?? plusMonths(bucketStart(now, 'monthly'), -(months ?? 0));
  requireClosable(start, now);
  return start;
}

/** Ensures that this and the previous month stay open: late events are common, and queries may still be running. @throws CommandError */
function requireClosable(before: EpochMs, now: EpochMs): void {
  if (before <= plusMonths(bucketStart(now, 'monthly'), -1)) return;
  throw usageError(`months before ${monthText(before)} cannot be closed: the current and the previous month stay open`);
}

async function runReopen(context: CommandContext, flags: ReopenFlags): Promise<void> {
  const from = monthText(flags.from);
  await withShards(context, flags, async (shards) => {
    const { closedBefore } = await readRetention(shards);
    const isOpen = flags.from >= closedBefore;
    if (!isOpen) await reopenMonths(shards, flags.from);
    const result = { closedBefore: formatTimestamp(Math.min(flags.from, closedBefore)) };
    const opened = `Months from ${from} on are open again. All workers apply this within seconds.`;
    printResult(context, flags, result, isOpen ? `Months from ${from} on are already open.` : opened);
  });
}

async function runDrop(context: CommandContext, flags: ChangeFlags): Promise<void> {
  const { dryRun = false, yes = false } = flags;
  await withShards(context, flags, async (shards) => {
    const { closedBefore, months } = await readRetention(shards);
    const closed = months.filter(({ endTime }) => endTime <= closedBefore);
    if (closed.length === 0) {
      printResult(context, flags, { dropped: [] }, 'No closed month has events. Nothing was changed.');
      return;
    }
    // Check again that these months are old enough, because a machine whose clock is ahead may have closed them too early.
    requireClosable(closedBefore, context.now().getTime());
    const rows = closed.reduce((sum, month) => sum + month.rows, 0);
    const names = closed.map(({ startTime }) => monthText(startTime));
    say(context, `Closed months with ${counted(rows, 'stored event')}: ${names.join(', ')}.`);
    const dropped: string[] = [];
    await operate(context, flags, {
      confirm: dryRun || yes ? undefined : { question: 'Delete these events permanently? Type yes:', reply: 'yes' },
      label: (days) => `Comparing ${counted(days, 'day')}`,
      work: async (onProgress, signal) => {
        const options = { shards, before: closedBefore, signal, onProgress };
        const onDropped = ({ startTime }: EventMonth) => {
          dropped.push(monthText(startTime));
          // Report each month immediately, because its events are gone even if a later step fails.
          sayProgress(context, '');
          say(context, `Dropped the events of ${monthText(startTime)}.`);
        };
        if (dryRun) await compareClosedMonths(options);
        else await dropClosedMonths({ ...options, onDropped });
      },
      describe: (_, wasInterrupted) => ({
        json: { dropped },
        text: !dryRun ? droppedText(dropped) : wasInterrupted ? NOT_COMPARED : COMPARED,
      }),
      resume: dryRun ? undefined : RESUMABLE,
    });
  });
}

const NOT_COMPARED = 'The comparison is incomplete. Nothing was changed.';
const COMPARED = 'Their rollups match their events, which would be dropped. Nothing was changed.';

function droppedText(dropped: readonly string[]): string {
  return dropped.length > 0 ? `Dropped the events of ${dropped.join(', ')}.` : 'No event was dropped.';
}
