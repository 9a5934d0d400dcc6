import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { formatTimestamp } from '@meterline/catalog';
import { formatRejectionId, holderOf, readData, requireRejection } from '@meterline/operations/rejections';
import { type OpenRejection, readOpenRejections, readRejectionPayloads } from '@meterline/warehouse';
import { type CommandContext, CommandError, printResult, say } from '../command.js';
import { type Command, Option } from '../commander.js';
import { withShards } from '../connections/clickhouse.js';
import { type JsonFlag, wholeNumber, withClickHouseFlags, withJson } from '../flags.js';
import { printable, shortened, textTable } from '../output/table.js';
import { type FilterFlags, filterOf, idOf, withFilter } from '../rejection-flags.js';
import type { ClickHouseFlags } from '../settings/settings.js';
import { addDiscardCommand } from './rejected-discard.js';
import { addReplayCommand } from './rejected-replay.js';

interface ListFlags extends ClickHouseFlags, FilterFlags, JsonFlag {
  readonly limit: number;
}

interface ShowFlags extends ClickHouseFlags, JsonFlag {
  readonly payload?: boolean;
}

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 100_000;
const MESSAGE_LENGTH = 100;
const COLUMNS = ['RECEIVED', 'ID', 'ACCOUNT', 'REASON', 'MESSAGE'].map((heading) => ({ heading }));

export function addCommand(program: Command, context: CommandContext): void {
  const rejected = program
    .command('rejected')
    .description(
      'Events and jobs that the ingest workers could not accept. Each has an id that never changes: the time of receipt and a ' +
        'hash of job, position and payload, so a job that is delivered again brings no new ids.',
    );

  const list = rejected
    .command('list')
    .summary('list refusals, the newest first')
    .description('Lists the refusals that are neither replayed nor discarded, the newest first.')
    .addOption(
      new Option('--limit <n>', 'at most so many')
        .argParser((text) => wholeNumber(text, 1, MAX_LIMIT))
        .default(DEFAULT_LIMIT),
    )
    .action((flags: ListFlags) => listRejections(context, flags));
  withJson(withClickHouseFlags(withFilter(list)));

  const show = rejected
    .command('show')
    .summary('show a refusal with its message and payload')
    .description('Shows a refusal with its message and the payload as the producer sent it.')
    .argument('<id>', 'as shown by list')
    .option('--payload', 'print the payload alone, as it is; all of it, also of a job that was too large to be read')
    .action((id: string, flags: ShowFlags) => showRejection(context, id, flags));
  withJson(withClickHouseFlags(show));

  addReplayCommand(rejected, context);
  addDiscardCommand(rejected, context);
}

async function listRejections(context: CommandContext, flags: ListFlags): Promise<void> {
  const filter = filterOf(flags, context.now());
  const found = await withShards(await context.settings.clickhouse(flags), ({ whole }) =>
    readOpenRejections(whole, filter, { limit: flags.limit + 1 }),
  );
  const shown = found.slice(0, flags.limit);
  printResult(context, flags.json, shown.map(describe), shown.length === 0 ? 'No refusals.' : table(shown));
  if (found.length > shown.length) say(context, `There are more; raise --limit (${flags.limit}) or narrow the filter.`);
}

function table(rejections: readonly OpenRejection[]): string {
  const rows = rejections.map((rejection) => ({
    cells: [
      formatTimestamp(rejection.receivedAt),
      formatRejectionId(rejection),
      rejection.accountId,
      rejection.reason,
      shortened(rejection.message, MESSAGE_LENGTH),
    ],
  }));
  return textTable(COLUMNS, rows);
}

async function showRejection(context: CommandContext, id: string, flags: ShowFlags): Promise<void> {
  const wanted = idOf(id);
  await withShards(await context.settings.clickhouse(flags), async ({ whole: warehouse }) => {
    const rejection = await requireRejection(warehouse, wanted);
    const [payload] = await readRejectionPayloads(warehouse, [rejection]);
    if (payload === undefined) throw new CommandError(`refusal ${id} has just been settled`);
    if (flags.payload) await printData(context, readData(warehouse, rejection, payload));
    else printRejection(context, flags, { rejection, payload, holder: await holderOf(warehouse, rejection, payload) });
  });
}

/** It may be more than fits in memory. */
async function printData({ stdout }: CommandContext, parts: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const part of parts) await written(stdout, part);
  await written(stdout, '\n');
}

/** Resolves when there is room for more; what reads may have stopped, which the program answers by itself. */
async function written(stdout: Writable, text: Uint8Array | string): Promise<void> {
  if (!stdout.write(text)) await Promise.race([once(stdout, 'drain'), once(stdout, 'close')]);
}

interface ShownRejection {
  readonly rejection: OpenRejection;
  readonly payload: string;
  readonly holder: OpenRejection | undefined;
}

function printRejection(context: CommandContext, flags: ShowFlags, shown: ShownRejection): void {
  const { rejection, payload, holder } = shown;
  const heldBy = holder && formatRejectionId(holder);
  const text = [
    `id        ${formatRejectionId(rejection)}`,
    `received  ${formatTimestamp(rejection.receivedAt)}`,
    `job       ${printable(rejection.jobId)}, position ${rejection.position}`,
    `account   ${printable(rejection.accountId)}`,
    `reason    ${rejection.reason}`,
    `message   ${printable(rejection.message)}`,
    ...(heldBy === undefined ? [] : [`held by   ${heldBy}: the payload there is the whole job`]),
    '',
    readable(payload),
  ];
  printResult(context, flags.json, { ...describe(rejection), payload, heldBy: heldBy ?? null }, text.join('\n'));
}

function describe(rejection: OpenRejection) {
  return {
    id: formatRejectionId(rejection),
    receivedAt: formatTimestamp(rejection.receivedAt),
    jobId: rejection.jobId,
    position: rejection.position,
    account: rejection.accountId,
    reason: rejection.reason,
    message: rejection.message,
  };
}

/** Indented when it is JSON that can be; a numeral that no double holds stays only in the payload as it is. */
function readable(payload: string): string {
  try {
    return JSON.stringify(JSON.parse(payload), null, 2).split('\n').map(printable).join('\n');
  } catch {
    return printable(payload);
  }
}
