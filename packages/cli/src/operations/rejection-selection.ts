/** Which rejections are meant: by their ids, as people see them, or by a filter. */
import {
  countOpenRejections,
  type OpenRejection,
  type RejectionFilter,
  type RejectionId,
  readOpenRejections,
  type Warehouse,
} from '@meterline/warehouse';
import { CommandError } from '../failure.js';

const PAGE_SIZE = 2_000;
const ID = /^([0-9a-z]{1,9})-([0-9a-z]{1,13})$/;
const MAX_FINGERPRINT = 2n ** 64n;

/** A rejection's id as people see it: the time of receipt and the fingerprint, both in base 36. Times sort as ids do. */
export function formatRejectionId({ receivedAt, fingerprint }: RejectionId): string {
  return `${receivedAt.toString(36)}-${fingerprint.toString(36)}`;
}

/** Undefined when it is no such id. */
export function parseRejectionId(text: string): RejectionId | undefined {
  const [, time, hash] = ID.exec(text) ?? [];
  if (time === undefined || hash === undefined) return undefined;
  const fingerprint = [...hash].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n);
  return fingerprint < MAX_FINGERPRINT ? { receivedAt: Number.parseInt(time, 36), fingerprint } : undefined;
}

export type RejectionSelection = { readonly ids: readonly RejectionId[] } | { readonly filter: RejectionFilter };

/**
 * The selection as it is now: what is rejected later, which nobody has seen, is left out. The time of receipt is the
 * producer's, whose clock may be ahead; what `readOpenRejections` shows now is selected nevertheless.
 */
export async function selectionAt(
  warehouse: Warehouse,
  selection: RejectionSelection,
  now: Date,
): Promise<RejectionSelection> {
  if ('ids' in selection || selection.filter.to !== undefined) return selection;
  const [newest] = await readOpenRejections(warehouse, selection.filter, { limit: 1 });
  const to = Math.max(now.getTime(), (newest?.receivedAt ?? 0) + 1);
  return { filter: { ...selection.filter, to } };
}

/** @throws CommandError when one that is named is not there */
export async function countSelected(warehouse: Warehouse, selection: RejectionSelection): Promise<number> {
  if ('filter' in selection) return countOpenRejections(warehouse, selection.filter);
  return (await namedRejections(warehouse, selection.ids)).length;
}

/**
 * The selected rejections a page at a time, in the order in which they may be settled: the last of a job first.
 * @throws CommandError when one that is named is not there
 */
export async function* selectedPages(
  warehouse: Warehouse,
  selection: RejectionSelection,
): AsyncGenerator<OpenRejection[]> {
  if ('ids' in selection) {
    const named = await namedRejections(warehouse, selection.ids);
    yield named.sort((a, b) => b.position - a.position);
    return;
  }
  let after: OpenRejection | undefined;
  do {
    const page = await readOpenRejections(warehouse, selection.filter, { limit: PAGE_SIZE, after });
    if (page.length > 0) yield page;
    after = page.length === PAGE_SIZE ? page.at(-1) : undefined;
  } while (after);
}

/** Each once, however often it is named. */
async function namedRejections(warehouse: Warehouse, ids: readonly RejectionId[]): Promise<OpenRejection[]> {
  const different = new Map(ids.map((id) => [formatRejectionId(id), id]));
  return Promise.all([...different.values()].map((id) => requireRejection(warehouse, id)));
}

/** @throws CommandError when there is none */
export async function requireRejection(warehouse: Warehouse, id: RejectionId): Promise<OpenRejection> {
  const { receivedAt, fingerprint } = id;
  const filter = { from: receivedAt, to: receivedAt + 1, fingerprint };
  const [found] = await readOpenRejections(warehouse, filter, { limit: 1 });
  if (found) return found;
  throw new CommandError(
    `there is no rejection ${formatRejectionId(id)}, or it is settled; "meterline rejected list" shows those that are not`,
  );
}
