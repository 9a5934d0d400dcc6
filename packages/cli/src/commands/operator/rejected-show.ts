/** Prints rejections: a list, or one rejection with its message and payload. */
import { formatTimestamp } from '@meterline/catalog';
import {
  type OpenRejection,
  type RejectionFilter,
  type RejectionId,
  readOpenRejections,
  readRejectionPayloads,
} from '@meterline/warehouse';
import { type CommandContext, say } from '../../command.js';
import { withShards } from '../../connections/servers.js';
import { CommandError } from '../../failure.js';
import type { OutputFlags } from '../../flags.js';
import { formatRejectionId, requireRejection } from '../../operations/rejections.js';
import { printResult } from '../../output/result.js';
import { fieldLines, type ItemColumn, printable, printList, shortened } from '../../output/table.js';
import type { ClickHouseFlags } from '../../settings.js';

const MESSAGE_LENGTH = 100;
const COLUMNS: readonly ItemColumn<ReturnType<typeof describeRejection>>[] = [
  { heading: 'RECEIVED', cell: ({ receivedAt }) => receivedAt },
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'ACCOUNT', cell: ({ account }) => account },
  { heading: 'REASON', cell: ({ reason }) => reason },
  { heading: 'MESSAGE', cell: ({ message }) => shortened(message, MESSAGE_LENGTH) },
];

export interface ListFlags extends ClickHouseFlags, OutputFlags {
  readonly limit: number;
}
export interface ShowFlags extends ClickHouseFlags, OutputFlags {
  readonly payload?: boolean;
}

export async function listRejections(
  context: CommandContext,
  filter: RejectionFilter,
  flags: ListFlags,
): Promise<void> {
  const found = await withShards(context, flags, ({ whole }) =>
    readOpenRejections(whole, filter, { limit: flags.limit + 1 }),
  );
  const items = found.slice(0, flags.limit).map(describeRejection);
  printList(context, flags, { columns: COLUMNS, items, none: 'No rejections.' });
  if (found.length > items.length) say(context, `There are more; raise --limit (${flags.limit}) or add filters.`);
}

export async function showRejection(context: CommandContext, id: RejectionId, flags: ShowFlags): Promise<void> {
  await withShards(context, flags, async ({ whole: warehouse }) => {
    const rejection = await requireRejection(warehouse, id);
    const [payload] = await readRejectionPayloads(warehouse, [rejection]);
    if (payload === undefined)
      throw new CommandError(`rejection ${formatRejectionId(id)} was just replayed or discarded`);
    if (flags.payload) {
      context.stdout.write(`${payload}\n`);
      return;
    }
    const described = describeRejection(rejection);
    const lines = fieldLines([
      ['id', described.id],
      ['received', described.receivedAt],
      ['job', `${rejection.jobId}, position ${rejection.position}`],
      ['account', rejection.accountId],
      ['reason', rejection.reason],
      ['message', rejection.message],
    ]);
    const text = [...lines, '', indented(payload)];
    printResult(context, flags, { ...described, payload }, text.join('\n'));
  });
}

export function describeRejection(rejection: OpenRejection) {
  const { receivedAt, jobId, position, accountId: account, reason, message } = rejection;
  const id = formatRejectionId(rejection);
  return { id, receivedAt: formatTimestamp(receivedAt), jobId, position, account, reason, message };
}

/** Indents JSON for reading. Numbers that do not fit in a double are rounded. The flag --payload prints the payload as it was received. */
function indented(payload: string): string {
  try {
    return JSON.stringify(JSON.parse(payload), null, 2).split('\n').map(printable).join('\n');
  } catch {
    return printable(payload);
  }
}
