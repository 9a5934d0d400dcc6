/** Events and jobs that could not be accepted: see, fix, send again, discard. */
import { counted, type EpochMs, REJECTION_REASONS, type RejectionReason } from '@meterline/catalog';
import { type RejectionFilter, type RejectionId, readBounds } from '@meterline/warehouse';
import { type Command, Option } from 'commander';
import { type CommandContext, formatCount, say, sayProgress } from '../command.js';
import { withQueue, withShards } from '../connections/servers.js';
import { CommandError, usageError } from '../failure.js';
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
} from '../flags.js';
import { operate } from '../operations/operation.js';
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
} from '../operations/rejections.js';
import { type Edits, parseEdit } from '../operations/resendable.js';
import { printResult } from '../output/result.js';
import { type ItemColumn, itemRows, printable, textTable } from '../output/table.js';
import { RepeatableOption } from '../repeated.js';
import type { ClickHouseFlags, RedisFlags } from '../settings.js';
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
const RESUMABLE = 'What is not done yet is still there: run the same command again.';

export function addRejected(rejected: Command, context: CommandContext): void {
  rejected.description(
    'Events and jobs that the ingest workers could not accept. Each has an id that never changes: the time of receipt and a ' +
      'hash of job, position and payload, so a job that is delivered again brings no new ids.',
  );

  const list = rejected
    .command('list')
    .summary('list rejections, the newest first')
    .description('Lists the rejections that are neither replayed nor discarded, the newest first.')
    .option('--limit <n>', 'at most so many', (text) => wholeNumber(text, 1, MAX_LIMIT), 50)
    .action((flags: FilterFlags & ListFlags) => listRejections(context, filterOf(flags, context.now()), flags));
  withFilter(list);

  const show = rejected
    .command('show')
    .summary('show a rejection with its message and payload')
    .description('Shows a rejection with its message and the payload as the producer sent it.')
    .argument('<id>', 'as shown by list')
    .option('--payload', 'print the payload alone, as it is')
    .action((id: string, flags: ShowFlags) => showRejection(context, idOf(id), flags));
  withOutput(withClickHouseFlags(show));

  const collect = (text: string, earlier: readonly string[]) => [...earlier, text];
  const replay = rejected
    .command('replay')
    .summary('send rejected events through the queue again')
    .description(
      'Sends rejected events through the queue again, as they are or with fields changed; a job that was rejected whole is ' +
        'sent whole. A rejection is removed once its event is in the queue. Should the worker reject it again, it comes back ' +
        'as a new rejection.\nSending twice is harmless: an event that is sent twice counts once.\n' +
        'What cannot be sent stays, is named, and makes the exit code 1.',
    )
    .argument('[id...]', 'as shown by list')
    .option('--all', 'all that fit the filters')
    .addOption(
      new RepeatableOption(
        '--edit <field=value>',
        'change a field first; a value that is JSON is taken as such, else as a string',
      )
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(new RepeatableOption('--unset <field>', 'remove a field first').argParser(collect).default([], 'none'))
    .option('--dry-run', 'send nothing, and print what would be sent')
    .action((ids: string[], flags: ReplayFlags) => replayRejected(context, ids, flags));
  withRedisFlags(withFilter(replay));

  const discard = rejected
    .command('discard')
    .summary('delete rejections for good')
    .description('Deletes rejections for good, after a typed "yes". Their events are never counted.')
    .argument('[id...]', 'as shown by list')
    .option('--all', 'all that fit the filters')
    .option('--yes', 'do not ask')
    .option('--dry-run', 'delete nothing, and print how many there are')
    .action((ids: string[], flags: DiscardFlags) => discardRejected(context, ids, flags));
  withFilter(discard);
}

function withFilter(command: Command): Command {
  const filtered = command
    .addOption(new Option('--reason <code>', 'only those with this reason code').choices(REJECTION_REASONS))
    .option('--account <account>', 'only those that claim this account', nameOf)
    .addOption(
      new Option('--since <span>', 'received in the last 90m, 24h, 30d or 12w').argParser(spanOf).conflicts('from'),
    )
    .option('--from <time>', 'received at this time or later, such as 2026-10-01T00:00:00Z', timeOf)
    .option('--to <time>', 'received before this time', timeOf);
  return withOutput(withClickHouseFlags(filtered));
}

/** A span is exactly as long as it says, unlike that of a chart, which begins with a whole hour or day. */
function filterOf({ reason, account, since, from, to }: FilterFlags, now: Date): RejectionFilter {
  const last = since && lastSpan(since, now.getTime());
  return { reason, accountId: account, from: last ? now.getTime() - (last.endTime - last.startTime) : from, to };
}

/** @throws CommandError for anything but ids alone, or --all with a filter */
function selectionOf(ids: readonly string[], flags: SelectionFlags, now: Date): RejectionSelection {
  const filter = filterOf(flags, now);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  if (ids.length > 0 && !flags.all && !isFiltered) return { ids: ids.map(idOf) };
  if (ids.length === 0 && flags.all && isFiltered) return { filter };
  throw usageError('name rejections by their ids, or choose them with --all and at least one of the filters');
}

/** @throws CommandError for a text that is no id */
function idOf(text: string): RejectionId {
  const id = parseRejectionId(text);
  if (id) return id;
  throw usageError(`${text} is no id of a rejection; "meterline rejected list" shows the ids`);
}

/** The selection of now, and what is known of it. */
interface Selected extends Omit<SettlementOptions, 'signal'> {
  readonly found: number;
  /** Rejections that stay where they are. */
  readonly kept: readonly KeptRejection[];
}

/**
 * @param stay what to say of those that stay
 * @throws CommandError when some stay
 */
async function withSelected(
  context: CommandContext,
  flags: ClickHouseFlags,
  requested: RejectionSelection,
  stay: string,
  work: (selected: Selected) => Promise<void>,
): Promise<void> {
  const kept: KeptRejection[] = [];
  const onKept = (one: KeptRejection) => {
    kept.push(one);
    sayProgress(context, '');
    say(context, `${one.id} stays: ${one.why}`);
  };
  await withShards(context, flags, async (shards) => {
    await work({ shards, ...(await selectNow(shards.whole, requested)), kept, onKept });
  });
  if (kept.length > 0) throw new CommandError(`${formatCount(kept.length)} ${stay}`);
}

async function replayRejected(context: CommandContext, ids: readonly string[], flags: ReplayFlags): Promise<void> {
  const requested = selectionOf(ids, flags, context.now());
  const edits = editsOf(flags);
  requireIdentities(requested, edits);
  await withSelected(context, flags, requested, 'could not be sent and stay where they are', async (selected) => {
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

/** Says for each what would be sent, and what the worker would say of it. */
async function printReplay(
  context: CommandContext,
  flags: ReplayFlags,
  options: Omit<ReplayOptions, 'signal'>,
): Promise<void> {
  const now = context.now().getTime();
  const { closedBefore } = await readBounds(options.shards.whole);
  // What a filter selects may be too much to hold.
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
  await withSelected(context, flags, requested, 'stay, because others refer to them', async (selected) => {
    const { found, kept } = selected;
    const rejections = counted(found, 'rejection');
    if (flags.dryRun) {
      printResult(context, flags, { found }, `${rejections} would be discarded. Nothing was deleted.`);
      return;
    }
    const question = `Discard ${rejections} for good? Type yes:`;
    let discarded = 0;
    await operate(context, flags, {
      confirm: found > 0 && !flags.yes ? { question, answer: 'yes' } : undefined,
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

/** @throws CommandError for an edit that is none */
function editsOf({ edit, unset }: ReplayFlags): Edits {
  const set = edit.map((text) => {
    const parsed = parseEdit(text);
    if (!parsed) throw usageError(`--edit ${text} is not of the form field=value`);
    return [parsed.field, parsed.value] as const;
  });
  return { set: new Map(set), unset: new Set(unset) };
}

/** Events that are given the same id become one event: one of them would count, and the others would be gone. */
function requireIdentities(selection: RejectionSelection, { set }: Edits): void {
  if (!set.has('eventId') || ('ids' in selection && new Set(selection.ids.map(formatRejectionId)).size === 1)) return;
  throw usageError('--edit eventId is for one rejection at a time: events with the same id count as one');
}
