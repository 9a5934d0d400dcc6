/** The flags that say which refusals a command is about: those named by their ids, or all that fit a filter. */
import { type EpochMs, REJECTION_REASONS, type RejectionReason } from '@meterline/catalog';
import { parseRejectionId, type RejectionSelection } from '@meterline/operations/rejections';
import type { RejectionFilter, RejectionId } from '@meterline/warehouse';
import { usageError } from './command.js';
import { type Command, InvalidArgumentError, Option } from './commander.js';
import { instantOf, nameOf } from './flags.js';

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

/** @throws CommandError for anything but ids alone, or --all with a filter */
export function selectionOf(ids: readonly string[], flags: SelectionFlags, now: Date): RejectionSelection {
  const { all, ...filterFlags } = flags;
  const filter = filterOf(filterFlags, now);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  if (ids.length > 0 && !all && !isFiltered) return { ids: ids.map(idOf) };
  if (ids.length === 0 && all && isFiltered) return { filter };
  throw usageError('name refusals by their ids, or choose them with --all and at least one of the filters');
}

/** @throws CommandError for a text that is no id */
export function idOf(text: string): RejectionId {
  const id = parseRejectionId(text);
  if (id) return id;
  throw usageError(`${text} is no id of a refusal; "meterline rejected list" shows the ids`);
}
