/** Sending refused events and jobs through the queue again. */
import { type EpochMs, parseUsageEvent } from '@meterline/catalog';
import { type OpenRejection, readRejectionPayloads, settleRejections, type Warehouse } from '@meterline/warehouse';
import type { Redis } from 'ioredis';
import { writtenToDisk } from '../queue/durability.js';
import type { UsageQueue } from '../queue/usage-queue.js';
import type { Edits } from './edits.js';
import { formatRejectionId } from './rejection-id.js';
import { type Replayable, replayable } from './replayable.js';
import type { KeptRejection } from './settlement.js';
import { referencedPayload } from './whole-jobs.js';

export type Sendable = Exclude<Replayable, { readonly kind: 'unsendable' }>;

/** A refusal and what would be sent for it. */
export interface Resend {
  readonly rejection: OpenRejection;
  readonly sendable: Sendable;
}

/** What would be sent for each refusal of the group; those for which nothing can be sent are told of. */
export async function resendsOf(
  warehouse: Warehouse,
  group: readonly OpenRejection[],
  edits: Edits,
  onKept: (kept: KeptRejection) => void,
): Promise<Resend[]> {
  const payloads = await readRejectionPayloads(warehouse, group);
  const resends: Resend[] = [];
  for (const [index, rejection] of group.entries()) {
    const payload = payloads[index];
    // Settled by somebody else since the page was read.
    if (payload === undefined) continue;
    const referenced = await referencedPayload(warehouse, rejection, payload);
    const sendable = replayable(rejection, payload, referenced, edits);
    if (sendable.kind === 'unsendable') onKept({ id: formatRejectionId(rejection), why: sendable.why });
    else resends.push({ rejection, sendable });
  }
  return resends;
}

/**
 * Crash order: sent, on Redis' disk, settled. A crash before the end leaves refusals open that are in the queue already;
 * sending them again is harmless, because the ids of events make them the same events. Never the other way round: a
 * refusal that is settled and not in the queue would be lost.
 * @returns the ids of the jobs
 */
export async function resend(
  warehouse: Warehouse,
  redis: Redis,
  queue: UsageQueue,
  resends: readonly Resend[],
): Promise<string[]> {
  const jobIds: string[] = [];
  const events = resends.flatMap(({ sendable }) => (sendable.kind === 'event' ? [sendable.event] : []));
  if (events.length > 0) jobIds.push(await queue.send(events));
  for (const { sendable } of resends) {
    if (sendable.kind === 'event') continue;
    for (const job of sendable.jobs) jobIds.push(await queue.sendJob(job));
  }
  await writtenToDisk(redis);
  await settleRejections(
    warehouse,
    resends.map(({ rejection }) => rejection),
    'replayed',
  );
  return jobIds;
}

/** What the worker would say, but for the price and the storage, which only it can tell. */
export function verdict({ sendable }: Resend, now: EpochMs): string {
  if (sendable.kind === 'jobs') return sendable.jobs.length === 1 ? 'a whole job' : `${sendable.jobs.length} jobs`;
  const checked = parseUsageEvent(sendable.event, now);
  return checked.ok ? 'valid' : `still ${checked.reason}: ${checked.message}`;
}
