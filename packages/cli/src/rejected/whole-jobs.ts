/**
 * Events of one job that were nested too deeply to be kept alone share the payload of the first of them. That one stays
 * for as long as others need it.
 */
import { isJobRejection, payloadReference, referencedPosition } from '@meterline/catalog';
import {
  countOpenRejections,
  type OpenRejection,
  readOpenRejections,
  readRejectionPayloads,
  type Warehouse,
} from '@meterline/warehouse';

/** What is shorter cannot be nested so deeply: a level takes two characters, and a stack holds thousands of levels. */
const SHORTEST_SHARED_BYTES = 2_000;

export const IN_USE = 'other refused events of its job refer to its payload; settle those first';

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
export function mayHoldOthers({ reason, payloadBytes }: OpenRejection): boolean {
  return payloadBytes >= SHORTEST_SHARED_BYTES && !isJobRejection(reason);
}

/** Whether an open refusal refers to this one's payload. */
export async function isReferredTo(warehouse: Warehouse, rejection: OpenRejection): Promise<boolean> {
  if (!mayHoldOthers(rejection)) return false;
  const { receivedAt, jobId, position } = rejection;
  const filter = { from: receivedAt, to: receivedAt + 1, jobId, payload: payloadReference(position) };
  return (await countOpenRejections(warehouse, filter)) > 0;
}
