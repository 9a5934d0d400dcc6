import { counted } from '@meterline/catalog';
import {
  type Edits,
  formatRejectionId,
  type KeptRejection,
  parseEdit,
  type RejectionSelection,
  type Resend,
  rehearseReplay,
  replayRejections,
  type SettlementOptions,
  selectionAt,
  verdict,
} from '@meterline/operations/rejections';
import { type CommandContext, CommandError, formatCount, printResult, say, usageError } from '../command.js';
import { type Command, Option } from '../commander.js';
import { withShards } from '../connections/clickhouse.js';
import { withQueue } from '../connections/redis.js';
import { type JsonFlag, withClickHouseFlags, withJson, withRedisFlags } from '../flags.js';
import { printable, textTable } from '../output/table.js';
import { type SelectionFlags, selectionOf, withFilter } from '../rejection-flags.js';
import type { ClickHouseFlags, RedisFlags } from '../settings/settings.js';

interface ReplayFlags extends ClickHouseFlags, RedisFlags, SelectionFlags, JsonFlag {
  readonly edit: readonly string[];
  readonly unset: readonly string[];
  readonly dryRun?: boolean;
}

/** How far a replay has come. */
interface Tally {
  replayed: number;
  readonly jobIds: string[];
  readonly kept: KeptRejection[];
}

const COLUMNS = ['ID', 'ACCOUNT', 'REFUSED FOR', 'NOW'].map((heading) => ({ heading }));

const collect = (text: string, earlier: readonly string[]) => [...earlier, text];

export function addReplayCommand(rejected: Command, context: CommandContext): void {
  const command = rejected
    .command('replay')
    .summary('send refused events through the queue again')
    .description(
      'Sends refused events through the queue again, as they are or with fields changed; a job that was refused whole is ' +
        'sent whole. A refusal is removed once its event is in the queue. Should the worker refuse it again, it comes back ' +
        'as a new refusal.\nSending twice is harmless: an event that is sent twice counts once.\n' +
        'What cannot be sent stays, is named, and makes the exit code 1.',
    )
    .argument('[id...]', 'as shown by list')
    .option('--all', 'all that fit the filters')
    .addOption(
      new Option(
        '--edit <field=value>',
        'change a field first; a value that is JSON is taken as such, else as a string',
      )
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(new Option('--unset <field>', 'remove a field first').argParser(collect).default([], 'none'))
    .option('--dry-run', 'send nothing, and print what would be sent')
    .action((ids: string[], flags: ReplayFlags) => replayRejected(context, ids, flags));
  withJson(withRedisFlags(withClickHouseFlags(withFilter(command))));
}

async function replayRejected(context: CommandContext, ids: readonly string[], flags: ReplayFlags): Promise<void> {
  const asked = selectionOf(ids, flags, context.now());
  const edits = editsOf(flags);
  requireIdentities(asked, edits);
  const signal = context.interruption();
  const tally: Tally = { replayed: 0, jobIds: [], kept: [] };
  const onKept = (kept: KeptRejection) => {
    tally.kept.push(kept);
    say(context, `${kept.id} stays: ${kept.why}`);
  };
  await withShards(await context.settings.clickhouse(flags), async (shards) => {
    const selection = await selectionAt(shards.whole, asked, context.now());
    const options = { shards, selection, signal, onKept, edits };
    if (flags.dryRun) return rehearse(context, flags, options);
    return withQueue(context, flags, (queue) =>
      replayRejections({
        ...options,
        queue,
        onReplayed: (jobIds, count) => {
          tally.jobIds.push(...jobIds);
          tally.replayed += count;
        },
      }),
    );
  });
  if (!flags.dryRun) report(context, flags, tally);
  if (signal.aborted) throw new CommandError('interrupted; what is not replayed yet is still there');
  if (tally.kept.length > 0) {
    throw new CommandError(`${formatCount(tally.kept.length)} could not be sent and stay where they are`);
  }
}

interface Rehearsal {
  readonly id: string;
  readonly account: string;
  readonly reason: string;
  readonly verdict: string;
  readonly data?: unknown;
}

function rehearsal(one: Resend, now: number, withData: boolean): Rehearsal {
  const { rejection, sendable } = one;
  return {
    id: formatRejectionId(rejection),
    account: rejection.accountId,
    reason: rejection.reason,
    verdict: verdict(one, now),
    ...(withData && { data: sendable.kind === 'event' ? sendable.event : sendable.jobs }),
  };
}

/** Says for each what would be sent, and what the worker would say of it. */
async function rehearse(
  context: CommandContext,
  flags: ReplayFlags,
  options: SettlementOptions & { readonly edits: Edits },
): Promise<void> {
  const now = context.now().getTime();
  const rows: Rehearsal[] = [];
  for await (const resends of rehearseReplay(options)) {
    // What a filter selects may be too much to hold.
    rows.push(...resends.map((one) => rehearsal(one, now, 'ids' in options.selection)));
  }
  const text = [
    textTable(
      COLUMNS,
      rows.map(({ id, account, reason, verdict }) => ({ cells: [id, account, reason, verdict] })),
    ),
    ...(rows.length === 1 && rows[0]?.data ? ['', printable(JSON.stringify(rows[0].data))] : []),
    '',
    `${formatCount(rows.length)} would be sent. Nothing was sent.`,
  ];
  printResult(context, flags.json, rows, text.join('\n'));
}

function report(context: CommandContext, flags: ReplayFlags, { replayed, jobIds, kept }: Tally): void {
  const jobs = jobIds.length === 1 ? `job ${jobIds[0]}` : counted(jobIds.length, 'job');
  const text = replayed === 0 ? 'Nothing was sent.' : `Sent ${formatCount(replayed)} again, as ${jobs}.`;
  printResult(context, flags.json, { replayed, jobIds, kept }, text);
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
  throw usageError('--edit eventId is for one refusal at a time: events with the same id count as one');
}
