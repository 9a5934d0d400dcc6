import { bucketStart, counted, type EpochMs, formatTimestamp, plusMonths } from '@meterline/catalog';
import type { EventMonth } from '@meterline/warehouse';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say, sayProgress } from '../command.js';
import { withShards } from '../connections/servers.js';
import { usageError } from '../failure.js';
import { monthOf, monthText, type OutputFlags, wholeNumber, withClickHouseFlags, withOutput } from '../flags.js';
import { requireConfirmation } from '../input.js';
import { operate } from '../operations/operation.js';
import {
  closeMonths,
  compareClosedMonths,
  dropClosedMonths,
  type Retention,
  readRetention,
  reopenMonths,
  requireSealed,
} from '../operations/retention.js';
import { printResult } from '../output/result.js';
import { type ItemColumn, itemRows, textTable } from '../output/table.js';
import type { ClickHouseFlags } from '../settings.js';

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
const RESUMABLE = 'Run the same command again: it does the rest.';

export function addRetention(retention: Command, context: CommandContext): void {
  retention.description(
    'How long single events are kept. By default for ever. Hours and days are always kept, so figures of whole hours and ' +
      'days stay as they are, to the last digit. To save the space of old events, close their months, and later drop them.',
  );

  const status = retention
    .command('status')
    .summary('which months have events, and which are closed')
    .description('Lists the months that have events, and says which of them are closed.')
    .action((flags: StatusFlags) => showStatus(context, flags));
  withOutput(withClickHouseFlags(status));

  const close = retention
    .command('close')
    .summary('reject events of old months from now on')
    .description(
      'Closes the months before one, after a typed "yes": their events are rejected as too_old from then on, and kept among ' +
        'the rejected ones. Nothing is deleted, and "retention reopen" takes it back. This month and the one before it cannot ' +
        'be closed, nor can one that is not sealed.',
    )
    .option('--before <month>', 'the first month that stays open, such as 2025-01', monthStart)
    .option('--months <n>', 'so many whole months before this one stay open', (text) =>
      wholeNumber(text, 1, MAX_MONTHS),
    );
  withChange(close).action((flags: CloseFlags) => runClose(context, flags));

  const reopen = retention
    .command('reopen')
    .summary('accept events of closed months again')
    .description(
      'Opens closed months again, as far as their events have not been dropped. Events that were rejected meanwhile count when ' +
        'they are sent again: "meterline rejected replay --all --reason too_old".',
    )
    .requiredOption('--from <month>', 'the first month to open, such as 2024-11', monthStart)
    .action((flags: ReopenFlags) => runReopen(context, flags));
  withOutput(withClickHouseFlags(reopen));

  const drop = retention
    .command('drop')
    .summary('delete the events of closed months')
    .description(
      'Deletes the events of all closed months for good, after a typed "yes", a month at a time, each when a comparison has ' +
        'shown that its hours and days agree with its events. What cannot be asked of such a month any more: parts of an ' +
        'hour, the list of events and "explain", re-pricing, an audit.\n' +
        `It may be stopped or killed at any time. ${RESUMABLE} Run one at a time.`,
    );
  withChange(drop).action((flags: ChangeFlags) => runDrop(context, flags));
}

function withChange(command: Command): Command {
  const confirmed = command
    .option('--yes', 'do not ask')
    .option('--dry-run', 'change nothing, and say what would be done');
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
  if (closedBefore === 0) return 'No month is closed: events of any age are accepted, and kept.';
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
    if (until <= closedEverywhere) return print(`Months before ${monthText(until)} are closed already.`);
    await requireSealed(shards, until);
    if (flags.dryRun) return print(`Months before ${monthText(until)} would be closed. Nothing was changed.`);
    const question = `Reject events before ${monthText(until)} from now on? Type yes:`;
    if (!flags.yes) await requireConfirmation(context, question, 'yes');
    const closed = await closeMonths(shards, until);
    const text = `Months before ${monthText(closed)} are closed. Every worker knows within seconds.`;
    printResult(context, flags, { closedBefore: formatTimestamp(closed) }, text);
  });
}

/** @throws CommandError when not exactly one of the flags is there, or as {@link requireClosable} */
function closingOf({ before, months }: CloseFlags, now: EpochMs): EpochMs {
  if ((before === undefined) === (months === undefined)) throw usageError('give --before or --months');
  const start = before ?? plusMonths(bucketStart(now, 'monthly'), -(months ?? 0));
  requireClosable(start, now);
  return start;
}

/**
 * This month and the one before it stay open: late events of its end are usual, and so are queries that are under way.
 * @throws CommandError when months before are one of these
 */
function requireClosable(before: EpochMs, now: EpochMs): void {
  if (before <= plusMonths(bucketStart(now, 'monthly'), -1)) return;
  throw usageError(`months before ${monthText(before)} cannot be closed: this month and the one before it stay open`);
}

async function runReopen(context: CommandContext, flags: ReopenFlags): Promise<void> {
  const from = monthText(flags.from);
  await withShards(context, flags, async (shards) => {
    const { closedBefore } = await readRetention(shards);
    const isOpen = flags.from >= closedBefore;
    if (!isOpen) await reopenMonths(shards, flags.from);
    const result = { closedBefore: formatTimestamp(Math.min(flags.from, closedBefore)) };
    const opened = `Months from ${from} on are open again. Every worker knows within seconds.`;
    printResult(context, flags, result, isOpen ? `Months from ${from} on are open already.` : opened);
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
    // Another machine, whose clock is ahead, may have closed the months.
    requireClosable(closedBefore, context.now().getTime());
    const rows = closed.reduce((sum, month) => sum + month.rows, 0);
    const names = closed.map(({ startTime }) => monthText(startTime));
    say(context, `Closed months with ${counted(rows, 'stored event')}: ${names.join(', ')}.`);
    const dropped: string[] = [];
    await operate(context, flags, {
      confirm: dryRun || yes ? undefined : { question: 'Delete these events for good? Type yes:', answer: 'yes' },
      label: (days) => `Comparing ${counted(days, 'day')}`,
      work: async (onProgress, signal) => {
        const options = { shards, before: closedBefore, signal, onProgress };
        const onDropped = ({ startTime }: EventMonth) => {
          dropped.push(monthText(startTime));
          // At once: one that fails later has still deleted these.
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

const NOT_COMPARED = 'Not everything was compared. Nothing was changed.';
const COMPARED = 'Their hours and days agree with their events, which would be dropped. Nothing was changed.';

function droppedText(dropped: readonly string[]): string {
  return dropped.length > 0 ? `Dropped the events of ${dropped.join(', ')}.` : 'No event was dropped.';
}
