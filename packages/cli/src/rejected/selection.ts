/** Which refusals a command is about: those named by their ids, or all that fit a filter. */
import { type EpochMs, REJECTION_REASONS, type RejectionReason } from '@meterline/catalog';
import { type OpenRejection, type RejectionFilter, readOpenRejections, type Warehouse } from '@meterline/warehouse';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { CommandError, usageError } from '../command-error.js';
import { instantOf, nameOf } from '../commands/flags.js';
import { parseRejectionId } from './rejection-id.js';

export interface FilterFlags {
  readonly reason?: RejectionReason;
  readonly account?: string;
  /** Milliseconds. */
  readonly since?: number;
  readonly from?: EpochMs;
  readonly to?: EpochMs;
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

export function withFilter(command: Command): Command {
  return command
    .addOption(new Option('--reason <code>', 'only those with this reason code').choices(REJECTION_REASONS))
    .option('--account <account>', 'only those that claim this account', nameOf)
    .addOption(
      new Option('--since <duration>', 'received within this time, such as 30m, 12h or 7d')
        .argParser(durationOf)
        .conflicts('from'),
    )
    .option('--from <time>', 'received at this time or later, such as 2026-10-01T00:00:00Z', instantOf)
    .option('--to <time>', 'received before this time', instantOf);
}

export function filterOf({ reason, account, since, from, to }: FilterFlags, now: Date): RejectionFilter {
  return { reason, accountId: account, from: since === undefined ? from : now.getTime() - since, to };
}

function durationOf(text: string): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  if (count !== undefined) return Number(count) * (UNITS[unit] ?? 0);
  throw new InvalidArgumentError('It must be a number of minutes, hours or days, such as 30m, 12h or 7d.');
}

export interface SelectionFlags extends FilterFlags {
  readonly all?: boolean;
}

export type RejectionSelection = { readonly ids: readonly string[] } | { readonly filter: RejectionFilter };

/** @throws CommandError for anything but ids alone, or --all with a filter */
export function selectionOf(ids: readonly string[], flags: SelectionFlags, now: Date): RejectionSelection {
  const { all, ...filterFlags } = flags;
  const filter = filterOf(filterFlags, now);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  if (ids.length > 0 && !all && !isFiltered) return { ids };
  if (ids.length === 0 && all && isFiltered) return { filter };
  throw usageError('name refusals by their ids, or choose them with --all and at least one of the filters');
}

/**
 * The selection as it is now: what is refused later, which nobody has seen, is left out. The time of receipt is the word
 * of a producer, whose clock may be ahead; what `list` shows is selected nevertheless.
 */
export async function withoutLater(
  warehouse: Warehouse,
  selection: RejectionSelection,
  now: Date,
): Promise<RejectionSelection> {
  if ('ids' in selection || selection.filter.to !== undefined) return selection;
  const [newest] = await readOpenRejections(warehouse, selection.filter, { limit: 1 });
  const to = Math.max(now.getTime(), (newest?.receivedAt ?? 0) + 1);
  return { filter: { ...selection.filter, to } };
}

/** The selected refusals a page at a time, in the order in which they may be settled. */
export async function* selectedPages(
  warehouse: Warehouse,
  selection: RejectionSelection,
  pageSize: number,
): AsyncGenerator<OpenRejection[]> {
  if ('ids' in selection) {
    const named = await Promise.all([...new Set(selection.ids)].map((id) => requireRejection(warehouse, id)));
    yield named.sort((a, b) => b.position - a.position);
    return;
  }
  let after: OpenRejection | undefined;
  do {
    const page = await readOpenRejections(warehouse, selection.filter, { limit: pageSize, after });
    if (page.length > 0) yield page;
    after = page.length === pageSize ? page.at(-1) : undefined;
  } while (after);
}

/** @throws CommandError when there is none */
export async function requireRejection(warehouse: Warehouse, text: string): Promise<OpenRejection> {
  const id = parseRejectionId(text);
  if (!id) throw usageError(`${text} is no id of a refusal; "meterline rejected list" shows the ids`);
  const { receivedAt, fingerprint } = id;
  const filter = { from: receivedAt, to: receivedAt + 1, fingerprint };
  const [found] = await readOpenRejections(warehouse, filter, { limit: 1 });
  if (found) return found;
  throw new CommandError(
    `there is no refusal ${text}, or it is settled; "meterline rejected list" shows those that are not`,
  );
}
