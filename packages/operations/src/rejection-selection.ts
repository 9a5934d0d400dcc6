/** Which refusals an operation is about: those named by their ids, or all that fit a filter. */
import { isJobRejection, payloadReference, referencedPosition } from '@meterline/catalog';
import {
  countOpenRejections,
  type OpenRejection,
  type RejectionFilter,
  type RejectionId,
  readOpenRejections,
  readRejectionPayloads,
  type Warehouse,
} from '@meterline/warehouse';
import { OperationError } from './operation-error.js';

const ID = /^([0-9a-z]{1,9})-([0-9a-z]{1,13})$/;
const MAX_FINGERPRINT = 2n ** 64n;

/** A refusal's id as people see it: the time of receipt and the fingerprint, both in base 36. Times sort as ids do. */
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
 * The selection as it is now: what is refused later, which nobody has seen, is left out. The time of receipt is the
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

/** @throws OperationError when one that is named is not there */
export async function countSelected(warehouse: Warehouse, selection: RejectionSelection): Promise<number> {
  if ('filter' in selection) return countOpenRejections(warehouse, selection.filter);
  return (await namedRejections(warehouse, selection.ids)).length;
}

/**
 * The selected refusals a page at a time, in the order in which they may be settled: the last of a job first.
 * @throws OperationError when one that is named is not there
 */
export async function* selectedPages(
  warehouse: Warehouse,
  selection: RejectionSelection,
  pageSize: number,
): AsyncGenerator<OpenRejection[]> {
  if ('ids' in selection) {
    const named = await namedRejections(warehouse, selection.ids);
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

/** Each once, however often it is named. */
async function namedRejections(warehouse: Warehouse, ids: readonly RejectionId[]): Promise<OpenRejection[]> {
  const different = new Map(ids.map((id) => [formatRejectionId(id), id]));
  return Promise.all([...different.values()].map((id) => requireRejection(warehouse, id)));
}

/** @throws OperationError when there is none */
export async function requireRejection(warehouse: Warehouse, id: RejectionId): Promise<OpenRejection> {
  const { receivedAt, fingerprint } = id;
  const filter = { from: receivedAt, to: receivedAt + 1, fingerprint };
  const [found] = await readOpenRejections(warehouse, filter, { limit: 1 });
  if (found) return found;
  throw new OperationError(
    `there is no refusal ${formatRejectionId(id)}, or it is settled; "meterline rejected list" shows those that are not`,
  );
}

/*
 * Events of one job that were nested too deeply to be kept alone share the payload of the first of them. That one stays
 * for as long as others need it.
 */

/** A shorter payload cannot be nested so deeply: a level takes two characters, and a stack holds thousands of levels. */
const SHORTEST_SHARED_BYTES = 2_000;

/** The refusal that holds the payload which this one refers to; undefined when it refers to none. */
export async function holderOf(
  warehouse: Warehouse,
  { receivedAt, jobId }: OpenRejection,
  payload: string,
): Promise<OpenRejection | undefined> {
  const position = referencedPosition(payload);
  if (position === undefined) return undefined;
  const filter = { from: receivedAt, to: receivedAt + 1, jobId, position };
  const [holder] = await readOpenRejections(warehouse, filter, { limit: 1 });
  return holder;
}

/** The payload that this refusal refers to; undefined when it refers to none, or to one that is gone. */
export async function referencedPayload(
  warehouse: Warehouse,
  rejection: OpenRejection,
  payload: string,
): Promise<string | undefined> {
  const holder = await holderOf(warehouse, rejection, payload);
  const [referenced] = holder ? await readRejectionPayloads(warehouse, [holder]) : [];
  return referenced;
}

/** Whether this can be a refusal that holds the payload of others. */
export function mayHoldOthers({ reason, payloadBytes }: Pick<OpenRejection, 'reason' | 'payloadBytes'>): boolean {
  return payloadBytes >= SHORTEST_SHARED_BYTES && !isJobRejection(reason);
}

/** Whether an open refusal refers to this one's payload. */
export async function isReferredTo(warehouse: Warehouse, rejection: OpenRejection): Promise<boolean> {
  if (!mayHoldOthers(rejection)) return false;
  const { receivedAt, jobId, position } = rejection;
  const filter = { from: receivedAt, to: receivedAt + 1, jobId, payload: payloadReference(position) };
  return (await countOpenRejections(warehouse, filter)) > 0;
}
