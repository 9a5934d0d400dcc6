/** The `meterline rejected` commands, which list, show, replay and discard rejected events and jobs. */
import { counted, type EpochMs, REJECTION_REASONS, type RejectionReason, shortened } from '@meterline/catalog';
import { type RejectionFilter, type RejectionId, readBounds } from '@meterline/warehouse';
import { type Command, Option } from 'commander';
import { type CommandContext, formatCount, say, sayProgress } from '../../command.js';
import { withQueue, withShards } from '../../connections/servers.js';
import { CommandError, usageError } from '../../failure.js';
import {
  lastSpan,
  nameOf,
  type OutputFlags,
  type Span,
  spanOf,
  timeOf,
  wholeNumber,
  withClickHouseFlags,
  withOutput,
  withRedisFlags,
} from '../../flags.js';
import { operate } from '../../operations/operation.js';
import {
  discardRejections,
  formatRejectionId,
  type KeptRejection,
  outcome,
  parseRejectionId,
  type RejectionSelection,
  type ReplayOptions,
  type Resend,
  replayRejections,
  type SettlementOptions,
  selectNow,
  sendableRejections,
} from '../../operations/rejections.js';
import { type Edits, parseEdit } from '../../operations/resendable.js';
import { printResult } from '../../output/result.js';
import { type ItemColumn, itemRows, printable, textTable } from '../../output/table.js';
import { RepeatableOption } from '../../repeated.js';
import type { ClickHouseFlags, RedisFlags } from '../../settings.js';
import { describeRejection, type ListFlags, listRejections, type ShowFlags, showRejection } from './rejected-show.js';

interface FilterFlags extends ClickHouseFlags, OutputFlags {
  readonly reason?: RejectionReason;
  readonly account?: string;
  readonly since?: Span;
  readonly from?: EpochMs;
  readonly to?: EpochMs;
}
interface SelectionFlags extends FilterFlags {
  readonly all?: boolean;
  readonly dryRun?: boolean;
}
interface DiscardFlags extends SelectionFlags {
  readonly yes?: boolean;
}
interface ReplayFlags extends RedisFlags, SelectionFlags {
  readonly edit: readonly string[];
  readonly unset: readonly string[];
}

const MAX_LIMIT = 100_000;
const REPLAY_COLUMNS: readonly ItemColumn<{ id: string; account: string; reason: string; outcome: string }>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'ACCOUNT', cell: ({ account }) => account },
  { heading: 'REJECTED FOR', cell: ({ reason }) => reason },
  { heading: 'NOW', cell: ({ outcome: now }) => now },
];
const RESUMABLE = 'Run the same command again to continue.';

const REPLAY_EXAMPLES = `
Examples:
  meterline rejected replay mwqkploc-3ltseossqrnma --edit usage=1.5
  meterline rejected replay --all --reason no_price --dry-run`;

export function addRejected(rejected: Command, context: CommandContext): void {
  rejected.description(
    'Manage events and jobs that the ingest workers rejected. The ID of a rejection is permanent: it contains the time of receipt and a ' +
      'hash of job, position and payload.',
  );

  const list = rejected
    .command('list')
    .summary('List rejected events and jobs')
    .description('List rejections that are neither replayed nor discarded, newest first.')
    .option('--limit <n>', 'Maximum number of rejections', (text) => wholeNumber(text, 1, MAX_LIMIT), 50)
    .action((flags: FilterFlags & ListFlags) => listRejections(context, filterOf(flags, context.now()), flags));
  withFilter(list);

  const show = rejected
    .command('show')
    .summary('Show a rejection with its payload')
    .description('Show a rejection with its message and the payload that the producer sent.')
    .argument('<id>', 'Rejection ID, from "rejected list"')
    .option('--payload', 'Print only the payload, unchanged')
    .action((id: string, flags: ShowFlags) => showRejection(context, idOf(id), flags));
  withOutput(withClickHouseFlags(show));

  const collect = (text: string, earlier: readonly string[]) => [...earlier, text];
  const replay = rejected
    .command('replay')
    .summary('Send rejected events again')
    .description(
      'Send rejected events to the queue again, unchanged or with edited fields. If a whole job was rejected, all its events are sent again. The ' +
        'rejection is removed once its event is in the queue. An event that is rejected again becomes a new rejection.\n' +
        'Sending an event twice is safe: it counts once. Rejections that cannot be sent are kept and reported, and the exit code is 1.',
    )
    .argument('[id...]', 'Rejection IDs, from "rejected list"')
    .option('--all', 'Replay all rejections that match the filters; needs at least one filter')
    .addOption(
      new RepeatableOption('--edit <field=value>', 'Set this field in each event; repeatable')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new RepeatableOption('--unset <field>', 'Remove this field from each event; repeatable')
        .argParser(collect)
        .default([], 'none'),
    )
    .option('--dry-run', 'Show what would be sent, and send nothing')
    .addHelpText('after', REPLAY_EXAMPLES)
    .action((ids: string[], flags: ReplayFlags) => replayRejected(context, ids, flags));
  withRedisFlags(withFilter(replay));

  const discard = rejected
    .command('discard')
    .summary('Delete rejections permanently')
    .description('Delete rejections permanently, after confirmation. Their events will not count.')
    .argument('[id...]', 'Rejection IDs, from "rejected list"')
    .option('--all', 'Discard all rejections that match the filters; needs at least one filter')
    .option('--yes', 'Skip the confirmation')
    .option('--dry-run', 'Show how many would be discarded, and delete nothing')
    .action((ids: string[], flags: DiscardFlags) => discardRejected(context, ids, flags));
  withFilter(discard);
}

function withFilter(command: Command): Command {
  const filtered = command
    .addOption(new Option('--reason <code>', 'Filter by reason code').choices(REJECTION_REASONS))
    .option('--account <account>', 'Filter by the account ID in the event', nameOf)
    .addOption(
      new Option('--since <span>', 'Filter by time of receipt: the last 90m, 24h, 30d or 12w')
        .argParser(spanOf)
        .conflicts('from'),
    )
    .option('--from <time>', 'Earliest time of receipt, inclusive, such as 2026-10-01T00:00:00Z', timeOf)
    .option('--to <time>', 'Latest time of receipt, exclusive', timeOf);
  return withOutput(withClickHouseFlags(filtered));
}

/** Converts the flags to a filter. Here, --since 24h means exactly 24 hours. In `meterline metrics`, it means whole hours. */
function filterOf({ reason, account, since, from, to }: FilterFlags, now: Date): RejectionFilter {
  const last = since && lastSpan(since, now.getTime());
  return { reason, accountId: account, from: last ? now.getTime() - (last.endTime - last.startTime) : from, to };
}

/** Returns the selected rejections. The user must give either only IDs, or --all with a filter. @throws CommandError otherwise */
function selectionOf(ids: readonly string[], flags: SelectionFlags, now: Date): RejectionSelection {
  const filter = filterOf(flags, now);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  if (ids.length > 0 && !flags.all && !isFiltered) return { ids: ids.map(idOf) };
  if (ids.length === 0 && flags.all && isFiltered) return { filter };
  throw usageError('specify either rejection IDs, or --all with at least one filter');
}

function idOf(text: string): RejectionId {
  const id = parseRejectionId(text);
  if (id) return id;
  throw usageError(`${shortened(text)} is not a rejection ID; run "meterline rejected list" to see the IDs`);
}

interface Selected extends Omit<SettlementOptions, 'signal'> {
  readonly found: number;
  readonly kept: readonly KeptRejection[];
}

/** Runs `work` for the selected rejections. @param failure ends the message after the number of rejections. @throws CommandError if some are kept */
async function withSelected(
  context: CommandContext,
  flags: ClickHouseFlags,
  requested: RejectionSelection,
  failure: string,
  work: (selected: Selected) => Promise<void>,
): Promise<void> {
  const kept: KeptRejection[] = [];
  const onKept = (rejection: KeptRejection) => {
    kept.push(rejection);
    sayProgress(context, '');
    say(context, `${rejection.id} was kept: ${rejection.why}`);
  };
  await withShards(context, flags, async (shards) => {
    await work({ shards, ...(await selectNow(shards.whole, requested)), kept, onKept });
  });
  if (kept.length > 0) throw new CommandError(`${formatCount(kept.length)} ${failure}`);
}

async function replayRejected(context: CommandContext, ids: readonly string[], flags: ReplayFlags): Promise<void> {
  const requested = selectionOf(ids, flags, context.now());
  const edits = editsOf(flags);
  requireIdentities(requested, edits);
  await withSelected(context, flags, requested, 'could not be sent and were kept', async (selected) => {
    const { found, kept } = selected;
    if (flags.dryRun) return printReplay(context, flags, { ...selected, edits });
    let replayed = 0;
    const jobIds: string[] = [];
    await withQueue(context, flags, (queue) =>
      operate(context, flags, {
        label: (rejections) => `Sending ${counted(rejections, 'rejection')}`,
        work: async (onProgress, signal) => {
          onProgress(0, found);
          for await (const group of replayRejections({ ...selected, edits, signal }, queue)) {
            jobIds.push(...group.jobIds);
            replayed += group.count;
            onProgress(replayed + kept.length, found);
          }
        },
        describe: () => {
          const jobs = jobIds.length === 1 ? `job ${jobIds[0]}` : counted(jobIds.length, 'job');
          const text = replayed === 0 ? 'Nothing was sent.' : `Sent ${formatCount(replayed)} again, as ${jobs}.`;
          return { json: { replayed, jobIds, kept }, text };
        },
        resume: RESUMABLE,
      }),
    );
  });
}

/** Prints the events or jobs that would be sent for each rejection, and how a worker would respond to them. */
async function printReplay(
  context: CommandContext,
  flags: ReplayFlags,
  options: Omit<ReplayOptions, 'signal'>,
): Promise<void> {
  const now = context.now().getTime();
  const { closedBefore } = await readBounds(options.shards.whole);
  // Print payloads only if the user named IDs, because all events that match a filter may not fit in memory.
  const dataOf = ({ sendable }: Resend) =>
    'ids' in options.selection && { data: sendable.kind === 'event' ? sendable.event : sendable.jobs };
  await operate(context, flags, {
    label: () => 'Reading',
    work: async (_, signal) => {
      const found = [];
      for await (const resends of sendableRejections({ ...options, signal })) {
        for (const resend of resends) {
          const { id, account, reason } = describeRejection(resend.rejection);
          found.push({ id, account, reason, outcome: outcome(resend, now, closedBefore), ...dataOf(resend) });
        }
      }
      return found;
    },
    describe: (found) => {
      const [only] = found;
      const data = found.length === 1 && only?.data ? ['', printable(JSON.stringify(only.data))] : [];
      const end = ['', `${formatCount(found.length)} would be sent. Nothing was sent.`];
      const table = textTable(REPLAY_COLUMNS, itemRows(REPLAY_COLUMNS, found));
      return { json: found, text: [table, ...data, ...end].join('\n') };
    },
    resume: undefined,
  });
}

async function discardRejected(context: CommandContext, ids: readonly string[], flags: DiscardFlags): Promise<void> {
  const requested = selectionOf(ids, flags, context.now());
  await withSelected(context, flags, requested, 'were kept, because other rejections need them', async (selected) => {
    const { found, kept } = selected;
    const rejections = counted(found, 'rejection');
    if (flags.dryRun) {
      printResult(context, flags, { found }, `${rejections} would be discarded. Nothing was deleted.`);
      return;
    }
    const question = `Discard ${rejections} permanently? Type yes:`;
    let discarded = 0;
    await operate(context, flags, {
      confirm: found > 0 && !flags.yes ? { question, reply: 'yes' } : undefined,
      label: () => `Discarding ${rejections}`,
      work: async (onProgress, signal) => {
        onProgress(0, found);
        for await (const count of discardRejections({ ...selected, signal })) {
          discarded += count;
          onProgress(discarded + kept.length, found);
        }
      },
      describe: () => ({ json: { discarded, kept }, text: `Discarded ${formatCount(discarded)}.` }),
      resume: RESUMABLE,
    });
  });
}

function editsOf({ edit, unset }: ReplayFlags): Edits {
  const set = edit.map((text) => {
    const parsed = parseEdit(text);
    if (!parsed) throw usageError(`--edit ${text} must have the form field=value`);
    return [parsed.field, parsed.value] as const;
  });
  return { set: new Map(set), unset: new Set(unset) };
}

/** Rejects `--edit eventId=…` for several rejections. Events with the same ID count as one, so all events but one would be lost. */
function requireIdentities(selection: RejectionSelection, { set }: Edits): void {
  if (!set.has('eventId') || ('ids' in selection && new Set(selection.ids.map(formatRejectionId)).size === 1)) return;
  throw usageError('--edit eventId needs a single rejection ID: events with the same ID count as one');
}
