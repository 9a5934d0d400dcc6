import { type Command, Option } from 'commander';
import { type CommandContext, formatCount, printResult, say } from '../command-context.js';
import { CommandError, usageError } from '../command-error.js';
import { withWarehouse } from '../connections/clickhouse.js';
import { withRedis } from '../connections/redis.js';
import { UsageQueue } from '../queue/usage-queue.js';
import { type Edits, parseEdit } from '../rejected/edits.js';
import { formatRejectionId } from '../rejected/rejection-id.js';
import { type Resend, resend, resendsOf, verdict } from '../rejected/replaying.js';
import {
  type RejectionSelection,
  type SelectionFlags,
  selectionOf,
  withFilter,
  withoutLater,
} from '../rejected/selection.js';
import { type KeptRejection, type Settlement, settleSelected } from '../rejected/settlement.js';
import type { ClickHouseFlags, RedisFlags } from '../settings/settings.js';
import { printable, textTable } from '../text-table.js';
import { withClickHouseFlags, withJson, withRedisFlags } from './flags.js';

interface ReplayFlags extends ClickHouseFlags, RedisFlags, SelectionFlags {
  readonly edit: readonly string[];
  readonly unset: readonly string[];
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** How far a replay has come. */
interface Tally {
  replayed: number;
  readonly jobIds: string[];
  readonly kept: KeptRejection[];
}

const collect = (text: string, earlier: readonly string[]) => [...earlier, text];

export function addReplayRejectedCommand(rejected: Command, context: CommandContext): void {
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
  await withWarehouse(await context.settings.clickhouse(flags), async (warehouse) => {
    const selection = await withoutLater(warehouse, asked, context.now());
    const settlement = { warehouse, selection, signal, dryRun: flags.dryRun, onKept };
    if (flags.dryRun) await rehearse(context, flags, settlement, edits);
    else await send(context, flags, settlement, edits, tally);
  });
  if (!flags.dryRun) report(context, flags, tally);
  if (signal.aborted) throw new CommandError('interrupted; what is not replayed yet is still there');
  if (tally.kept.length > 0) {
    throw new CommandError(`${formatCount(tally.kept.length)} could not be sent and stay where they are`);
  }
}

async function send(
  { settings, tracing }: CommandContext,
  flags: ReplayFlags,
  settlement: Omit<Settlement, 'settle'>,
  edits: Edits,
  tally: Tally,
): Promise<void> {
  const { warehouse, onKept } = settlement;
  await withRedis(await settings.redisUrl(flags), async (redis) => {
    const { queueTelemetry } = await tracing();
    const queue = new UsageQueue(redis, settings.queuePrefix(flags), queueTelemetry);
    try {
      await settleSelected({
        ...settlement,
        settle: async (group) => {
          const resends = await resendsOf(warehouse, group, edits, onKept);
          tally.jobIds.push(...(await resend(warehouse, redis, queue, resends)));
          tally.replayed += resends.length;
        },
      });
    } finally {
      await queue.close();
    }
  });
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

/** Says for each what would be sent and what the worker would make of it. */
async function rehearse(
  context: CommandContext,
  flags: ReplayFlags,
  settlement: Omit<Settlement, 'settle'>,
  edits: Edits,
): Promise<void> {
  const { warehouse, selection, onKept } = settlement;
  const now = context.now().getTime();
  const rows: Rehearsal[] = [];
  await settleSelected({
    ...settlement,
    settle: async (group) => {
      const resends = await resendsOf(warehouse, group, edits, onKept);
      // What a filter selects may be too much to hold.
      rows.push(...resends.map((one) => rehearsal(one, now, 'ids' in selection)));
    },
  });
  const text = [
    textTable([
      ['ID', 'ACCOUNT', 'REFUSED FOR', 'NOW'],
      ...rows.map(({ id, account, reason, verdict }) => [id, account, reason, verdict]),
    ]),
    ...(rows.length === 1 && rows[0]?.data ? ['', printable(JSON.stringify(rows[0].data))] : []),
    '',
    `${formatCount(rows.length)} would be sent. Nothing was sent.`,
  ];
  printResult(context, flags.json, rows, text.join('\n'));
}

function report(context: CommandContext, flags: ReplayFlags, { replayed, jobIds, kept }: Tally): void {
  const jobs = jobIds.length === 1 ? `job ${jobIds[0]}` : `${formatCount(jobIds.length)} jobs`;
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
  if (!set.has('eventId') || ('ids' in selection && new Set(selection.ids).size === 1)) return;
  throw usageError('--edit eventId is for one refusal at a time: events with the same id count as one');
}
