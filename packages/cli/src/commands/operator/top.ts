/** The `meterline top` command. */
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { ACTIVITY_ORDERS, type AccountActivity, readAccountActivity } from '@meterline/warehouse';
import { type Command, Option } from 'commander';
import { type CommandContext, formatCount, say } from '../../command.js';
import { withShards } from '../../connections/servers.js';
import { usageError } from '../../failure.js';
import {
  formOf,
  lastSpan,
  type OutputFlags,
  type Span,
  spanOf,
  wholeNumber,
  withClickHouseFlags,
  withOutput,
} from '../../flags.js';
import { type ItemColumn, printList } from '../../output/table.js';
import type { ClickHouseFlags } from '../../settings.js';

interface TopFlags extends ClickHouseFlags, OutputFlags {
  readonly by: keyof typeof ACTIVITY_ORDERS;
  readonly since?: Span;
  readonly limit: number;
}

const MAX_DAYS = 31;
const MAX_ACCOUNTS = 10_000;
const COLUMNS: readonly ItemColumn<AccountActivity>[] = [
  { heading: 'ACCOUNT', cell: ({ account }) => account || '(unreadable)', minWidth: 12 },
  { heading: 'REVISIONS', isNumeric: true, cell: ({ revisions }) => formatCount(revisions) },
  { heading: 'REJECTED', isNumeric: true, cell: ({ rejected }) => formatCount(rejected) },
  { heading: 'NEWEST HOUR', cell: ({ newestHour }) => newestHour ?? '-' },
];

const BY_HOUR = 'Events count by the hour of their timestamp, not of their receipt.';
const ONLY_WORKERS =
  'Counts only events that workers rejected. The collector stores no event that it rejects: see "rejected" in its log event "request", ' +
  'and its metric meterline_collector_rejected_events_total.';

export function addTop(command: Command, context: CommandContext): void {
  command
    .description(
      'Show which accounts send the most events, have the most rejected events, or have sent nothing for the longest time. Revisions are ' +
        'the stored rows of events with a timestamp in these hours: a corrected or voided event has several until ClickHouse merges them. ' +
        'Events that workers rejected count by their time of receipt, unless they were replayed or discarded.',
    )
    .addOption(
      new Option(
        '--by <order>',
        'Sort by number of revisions, number of rejected events, or time since the newest event (lag)',
      )
        .choices(Object.keys(ACTIVITY_ORDERS))
        .default('revisions'),
    )
    .option(
      '--since <span>',
      `Count the most recent hours or days (24h, 7d), at most ${MAX_DAYS}d (default: 24h, or ${MAX_DAYS}d with --by lag)`,
      spanOf,
    )
    .option('--limit <n>', 'Maximum number of accounts', (text) => wholeNumber(text, 1, MAX_ACCOUNTS), 20)
    .action((flags: TopFlags) => showTop(context, flags));
  withOutput(withClickHouseFlags(command));
}

async function showTop(context: CommandContext, flags: TopFlags): Promise<void> {
  const { since = spanOf(flags.by === 'lag' ? `${MAX_DAYS}d` : '24h') } = flags;
  const { startTime } = lastSpan(since, context.now().getTime());
  const from = startTime - (startTime % MS_PER_HOUR);
  if (context.now().getTime() - from > MAX_DAYS * MS_PER_DAY) throw usageError(`--since must be at most ${MAX_DAYS}d`);
  const read = await withShards(context, flags, ({ whole }) => readAccountActivity(whole, { ...flags, from }));
  const isByRejected = flags.by === 'rejected';
  const items = isByRejected ? read.filter(({ rejected }) => rejected > 0) : read;
  const none = isByRejected ? 'No rejections.' : 'No events and no rejections in this time.';
  printList(context, flags, { columns: COLUMNS, items, none }, items, [
    'account',
    'revisions',
    'rejected',
    'newestHour',
  ]);
  if (formOf(flags) === 'table') say(context, isByRejected ? ONLY_WORKERS : BY_HOUR);
}
