import { counted, type EpochMs, formatTimestamp } from '@meterline/catalog';
import { renewStampsWith } from '@meterline/operations/renewed-stamps';
import {
  closeMonths,
  dropClosedMonths,
  latestClosing,
  monthsBefore,
  type Retention,
  readRetention,
  rehearseDrop,
  reopenMonths,
  requireClosable,
} from '@meterline/operations/retention';
import { type CommandContext, CommandError, formatCount, printResult, say, usageError } from '../command.js';
import { type Command, InvalidArgumentError } from '../commander.js';
import { withShards } from '../connections/clickhouse.js';
import { withRedis } from '../connections/redis.js';
import { type JsonFlag, wholeNumber, withClickHouseFlags, withJson, withRedisUrl } from '../flags.js';
import { requireAnswer } from '../input.js';
import { withProgress } from '../output/progress.js';
import { textTable } from '../output/table.js';
import type { ClickHouseFlags, RedisFlags } from '../settings/settings.js';

type StatusFlags = ClickHouseFlags & JsonFlag;

interface ChangeFlags extends StatusFlags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

interface CloseFlags extends ChangeFlags {
  readonly before?: EpochMs;
  readonly months?: number;
}

interface DropFlags extends ChangeFlags, RedisFlags {}

interface ReopenFlags extends StatusFlags {
  readonly from: EpochMs;
}

const COLUMNS = [{ heading: 'MONTH' }, { heading: 'EVENTS', isNumeric: true }, { heading: 'STATE' }];
const MAX_MONTHS = 1_200;
const RESUMABLE = 'Run the same command again: it does the rest.';

export function addCommand(program: Command, context: CommandContext): void {
  const retention = program
    .command('retention')
    .description(
      'How long single events are kept. By default for ever. Hours and days are always kept, so figures of whole hours and ' +
        'days stay as they are, to the last digit. To save the space of old events, close their months, and later drop them.',
    );

  const status = retention
    .command('status')
    .summary('which months have events, and which are closed')
    .description('Lists the months that have events, and says which of them are closed.')
    .action((flags: StatusFlags) => showStatus(context, flags));
  withJson(withClickHouseFlags(status));

  const close = retention
    .command('close')
    .summary('refuse events of old months from now on')
    .description(
      'Closes the months before one, after a typed "yes": their events are refused as too_old from then on, and kept among ' +
        'the refused ones. Nothing is deleted, and "retention reopen" takes it back. This month and the one before it cannot ' +
        'be closed, nor can one that is not sealed.',
    )
    .option('--before <month>', 'the first month that stays open, such as 2025-01', monthOf)
    .option('--months <n>', 'so many whole months before this one stay open (else RETENTION_MONTHS)', (text) =>
      wholeNumber(text, 1, MAX_MONTHS),
    );
  withChange(close).action((flags: CloseFlags) => runClose(context, flags));

  const reopen = retention
    .command('reopen')
    .summary('accept events of closed months again')
    .description(
      'Opens closed months again, as far as their events have not been dropped. Events that were refused meanwhile count when ' +
        'they are sent again: "meterline rejected replay --all --reason too_old".',
    )
    .requiredOption('--from <month>', 'the first month to open, such as 2024-11', monthOf)
    .action((flags: ReopenFlags) => runReopen(context, flags));
  withJson(withClickHouseFlags(reopen));

  const drop = retention
    .command('drop')
    .summary('delete the events of closed months')
    .description(
      'Deletes the events of all closed months for good, after a typed "yes", a month at a time, each when a comparison has ' +
        'shown that its hours and days agree with its events. What cannot be asked of such a month any more: parts of an ' +
        'hour, the list of events and "explain", re-pricing, an audit.\n' +
        `It may be stopped or killed at any time. ${RESUMABLE} Run one at a time.`,
    );
  withRedisUrl(withChange(drop)).action((flags: DropFlags) => runDrop(context, flags));
}

function withChange(command: Command): Command {
  const confirmed = command
    .option('--yes', 'do not ask')
    .option('--dry-run', 'change nothing, and say what would be done');
  return withJson(withClickHouseFlags(confirmed));
}

/** @throws InvalidArgumentError */
function monthOf(text: string): EpochMs {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  const start = Date.UTC(Number(year), Number(month) - 1);
  // NaN is neither.
  if (start >= 0 && start < Date.UTC(2101, 0)) return start;
  throw new InvalidArgumentError('It must be a month from 1970-01 to 2100-12, such as 2025-01.');
}

async function showStatus(context: CommandContext, flags: StatusFlags): Promise<void> {
  const found = await withShards(await context.settings.clickhouse(flags), readRetention);
  const months = found.months.map((month) => ({ month: nameOf(month.startTime), ...stateOf(month, found) }));
  const result = {
    closedBefore: formatTimestamp(found.closedBefore),
    droppedBefore: formatTimestamp(found.droppedBefore),
    months,
  };
  const rows = months.map(({ month, rows, state }) => ({ cells: [month, formatCount(rows), state] }));
  const table = rows.length > 0 ? `${textTable(COLUMNS, rows)}\n\n` : '';
  printResult(context, flags.json, result, `${table}${describe(found)}`);
}

function stateOf({ endTime, rows }: Retention['months'][number], { closedBefore, droppingBefore }: Retention) {
  if (endTime <= droppingBefore) return { rows, state: 'being dropped' };
  return { rows, state: endTime <= closedBefore ? 'closed' : 'open' };
}

function describe({ closedBefore, droppedBefore }: Retention): string {
  if (closedBefore === 0) return 'No month is closed: events of any age are accepted, and kept.';
  const dropped = droppedBefore > 0 ? ` Events before ${nameOf(droppedBefore)} have been dropped.` : '';
  return `Months before ${nameOf(closedBefore)} are closed.${dropped}`;
}

async function runClose(context: CommandContext, flags: CloseFlags): Promise<void> {
  const now = context.now().getTime();
  const before = closingOf(context, flags, now);
  await withShards(await context.settings.clickhouse(flags), async (shards) => {
    const { closedBefore } = await readRetention(shards);
    const result = { closedBefore: formatTimestamp(Math.max(before, closedBefore)) };
    if (before <= closedBefore) {
      printResult(context, flags.json, result, `Months before ${nameOf(closedBefore)} are closed already.`);
      return;
    }
    await requireClosable(shards, before, now);
    if (flags.dryRun) {
      printResult(context, flags.json, result, `Months before ${nameOf(before)} would be closed. Nothing was changed.`);
      return;
    }
    const question = `Refuse events before ${nameOf(before)} from now on? Type yes:`;
    if (!flags.yes) await requireAnswer(context, question, 'yes');
    await closeMonths(shards, before, now);
    printResult(
      context,
      flags.json,
      result,
      `Months before ${nameOf(before)} are closed. Every worker knows within seconds.`,
    );
  });
}

/** @throws CommandError when neither a flag nor the environment says */
function closingOf({ environment }: CommandContext, { before, months }: CloseFlags, now: EpochMs): EpochMs {
  if (before !== undefined && months !== undefined) throw usageError('give --before or --months, not both');
  const start = before ?? monthsBefore(now, months ?? monthsOf(environment.RETENTION_MONTHS));
  if (start > latestClosing(now)) {
    throw usageError(`months before ${nameOf(start)} cannot be closed: this month and the one before it stay open`);
  }
  return start;
}

/** @throws CommandError */
function monthsOf(variable: string | undefined): number {
  if (variable === undefined) throw usageError('give --before or --months, or set RETENTION_MONTHS');
  const months = Number(variable);
  if (/^\d+$/.test(variable) && months >= 1 && months <= MAX_MONTHS) return months;
  throw usageError(`RETENTION_MONTHS must be a whole number from 1 to ${MAX_MONTHS}`);
}

async function runReopen(context: CommandContext, flags: ReopenFlags): Promise<void> {
  await withShards(await context.settings.clickhouse(flags), async (shards) => {
    const { closedBefore } = await readRetention(shards);
    const result = { closedBefore: formatTimestamp(Math.min(flags.from, closedBefore)) };
    if (flags.from >= closedBefore) {
      printResult(context, flags.json, result, `Months from ${nameOf(flags.from)} on are open already.`);
      return;
    }
    await reopenMonths(shards, flags.from);
    const text = `Months from ${nameOf(flags.from)} on are open again. Every worker knows within seconds.`;
    printResult(context, flags.json, result, text);
  });
}

async function runDrop(context: CommandContext, flags: DropFlags): Promise<void> {
  const redisUrl = await context.settings.redisUrl(flags);
  const renewStamps = renewStampsWith((work) => withRedis(redisUrl, work));
  await withShards(await context.settings.clickhouse(flags), async (shards) => {
    const { closedBefore, months } = await readRetention(shards);
    const closed = months.filter(({ endTime }) => endTime <= closedBefore);
    if (closed.length === 0) {
      printResult(context, flags.json, { dropped: [] }, 'No closed month has events. Nothing was changed.');
      return;
    }
    const rows = closed.reduce((sum, month) => sum + month.rows, 0);
    const names = closed.map(({ startTime }) => nameOf(startTime));
    say(context, `Closed months with ${counted(rows, 'stored event')}: ${names.join(', ')}.`);
    if (!flags.dryRun && !flags.yes) await requireAnswer(context, 'Delete these events for good? Type yes:', 'yes');
    const signal = context.interruption();
    const dropped = new Set<string>();
    await withProgress(
      context,
      (days) => `Comparing ${counted(days, 'day')}`,
      async (onProgress) => {
        const options = { shards, now: context.now().getTime(), signal, onProgress };
        if (flags.dryRun) await rehearseDrop(options);
        else
          await dropClosedMonths({
            ...options,
            renewStamps,
            onDropped: ({ startTime }) => dropped.add(nameOf(startTime)),
          });
      },
    );
    const done =
      dropped.size > 0 ? `Dropped the events of ${[...dropped].sort().join(', ')}.` : 'No event was dropped.';
    const rehearsed = 'Their hours and days agree with their events, which would be dropped. Nothing was changed.';
    if (signal.aborted && flags.dryRun) throw new CommandError('interrupted before everything was compared');
    printResult(context, flags.json, { dropped: [...dropped].sort() }, flags.dryRun ? rehearsed : done);
    if (signal.aborted) throw new CommandError(`interrupted. ${RESUMABLE}`);
  });
}

/** 2025-01. */
function nameOf(month: EpochMs): string {
  return formatTimestamp(month).slice(0, 'YYYY-MM'.length);
}
