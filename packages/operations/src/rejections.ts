/** Settling refusals: refused events and jobs are sent through the queue again, or discarded. */
import { type EpochMs, parseOversizedPayload, parseUsageEvent } from '@meterline/catalog';
import {
  deleteRejectedPayload,
  type OpenRejection,
  type RejectedPayload,
  readPayloadParts,
  readRejectionPayloads,
  type Shards,
  settleRejections,
  type Warehouse,
} from '@meterline/warehouse';
import {
  formatRejectionId,
  isReferredTo,
  mayHoldOthers,
  type RejectionSelection,
  referencedPayload,
  selectedPages,
} from './rejection-selection.js';
import { type Edits, type Resendable, resendable } from './resendable.js';
import type { UsageQueue } from './usage-queue.js';

export {
  countSelected,
  formatRejectionId,
  holderOf,
  parseRejectionId,
  type RejectionSelection,
  requireRejection,
  selectionAt,
} from './rejection-selection.js';
export { type Edits, parseEdit } from './resendable.js';

const PAGE_SIZE = 2_000;
const MAX_GROUP = 500;
const MAX_GROUP_BYTES = 4 * 1024 * 1024;
const IN_USE = 'other refused events of its job refer to its payload; settle those first';

/** One that stays as it is, and why. */
export interface KeptRejection {
  readonly id: string;
  readonly why: string;
}

export interface SettlementOptions {
  readonly shards: Shards;
  readonly selection: RejectionSelection;
  /** Ends the settlement between two groups. */
  readonly signal: AbortSignal;
  readonly onKept: (kept: KeptRejection) => void;
}

export interface ReplayOptions extends SettlementOptions {
  readonly queue: UsageQueue;
  readonly edits: Edits;
  /** Of every group, when it is settled: the ids of its jobs, and how many refusals they were. */
  readonly onReplayed: (jobIds: readonly string[], count: number) => void;
}

/** A refusal and what would be sent for it. */
export interface Resend {
  readonly rejection: OpenRejection;
  readonly sendable: Exclude<Resendable, { readonly kind: 'unsendable' }>;
}

/**
 * Sends the selected refusals through the queue again, group by group.
 *
 * Crash order of a group: sent, on Redis' disk, settled. A crash before the end leaves refusals open that are in the queue
 * already; running it again sends them again, which is harmless, because the ids of events make them the same events.
 * Never the other way round: a refusal that is settled and not in the queue would be lost.
 * @throws OperationError when one that is named is not there, or Redis' disk takes too long
 */
export async function replayRejections(options: ReplayOptions): Promise<void> {
  const { shards, queue, edits, onKept, onReplayed } = options;
  await settleGroups(options, async (group) => {
    const resends = await resendsOf(shards.whole, group, edits, onKept);
    const events = resends.flatMap(({ sendable }) => (sendable.kind === 'event' ? [sendable.event] : []));
    const jobs = resends.flatMap(({ sendable }) => (sendable.kind === 'jobs' ? sendable.jobs : []));
    const jobIds: string[] = [];
    if (events.length > 0) jobIds.push(await queue.send(events));
    for (const job of jobs) jobIds.push(await queue.sendJob(job));
    await queue.writtenToDisk();
    const rejections = resends.map(({ rejection }) => rejection);
    await settleRejections(shards, rejections, 'replayed');
    onReplayed(jobIds, resends.length);
  });
}

/** What `replayRejections` would send, a group at a time. It settles nothing, so it cannot see what others still refer to. */
export async function* rehearseReplay(
  options: SettlementOptions & Pick<ReplayOptions, 'edits'>,
): AsyncGenerator<Resend[]> {
  const { shards, selection, signal, edits, onKept } = options;
  for await (const page of selectedPages(shards.whole, selection, PAGE_SIZE)) {
    for (const group of settlementGroups(page)) {
      if (signal.aborted) return;
      yield await resendsOf(shards.whole, group, edits, onKept);
    }
  }
}

/**
 * Deletes the selected refusals for good, group by group: first the data that lies elsewhere, then one insert settles the
 * group, then its rows are deleted. So a crash leaves whole groups discarded and the others open, the first of them perhaps
 * without such data; running it again discards those.
 * @throws OperationError when one that is named is not there
 */
export async function discardRejections(
  options: SettlementOptions & { readonly onDiscarded: (count: number) => void },
): Promise<void> {
  await settleGroups(options, async (group) => {
    await deleteDataElsewhere(options.shards, group);
    await settleRejections(options.shards, group, 'discarded');
    options.onDiscarded(group.length);
  });
}

/** What the worker would say, except for the price and the storage, which only it knows. */
export function verdict({ sendable }: Resend, now: EpochMs): string {
  if (sendable.kind === 'jobs') return sendable.jobs.length === 1 ? 'a whole job' : `${sendable.jobs.length} jobs`;
  const checked = parseUsageEvent(sendable.event, now);
  return checked.ok ? 'valid' : `still ${checked.reason}: ${checked.message}`;
}

async function settleGroups(
  { shards, selection, signal, onKept }: SettlementOptions,
  settle: (group: readonly OpenRejection[]) => Promise<void>,
): Promise<void> {
  for await (const page of selectedPages(shards.whole, selection, PAGE_SIZE)) {
    for (const group of settlementGroups(page)) {
      if (signal.aborted) return;
      const [first] = group;
      // Only the first of a group can be one that others refer to.
      const isHeld = first !== undefined && (await isReferredTo(shards.whole, first));
      if (isHeld) onKept({ id: formatRejectionId(first), why: IN_USE });
      await settle(isHeld ? group.slice(1) : group);
    }
  }
}

/**
 * Refusals that are settled together: few enough that their payloads fit in memory. One whose payload others may refer
 * to begins a group, so that those, which come before it in a selection, are settled by then.
 */
export function settlementGroups(rejections: readonly OpenRejection[]): OpenRejection[][] {
  const groups: OpenRejection[][] = [];
  let group: OpenRejection[] = [];
  let bytes = 0;
  for (const rejection of rejections) {
    const isFull = group.length === MAX_GROUP || bytes + rejection.payloadBytes > MAX_GROUP_BYTES;
    if (group.length > 0 && (isFull || mayHoldOthers(rejection))) {
      groups.push(group);
      group = [];
      bytes = 0;
    }
    group.push(rejection);
    bytes += rejection.payloadBytes;
  }
  return group.length > 0 ? [...groups, group] : groups;
}

/** What would be sent for each refusal of the group; reports those for which nothing can be sent. */
async function resendsOf(
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
    const sendable = resendable(rejection, payload, referenced, edits);
    if (sendable.kind === 'unsendable') onKept({ id: formatRejectionId(rejection), why: sendable.why });
    else resends.push({ rejection, sendable });
  }
  return resends;
}

/**
 * Where the data of this refusal is; undefined for one whose payload is its data. Of a job that was too large to be read, the
 * refusal holds the beginning, and rejected_payloads all of it.
 */
function dataElsewhere(rejection: OpenRejection, payload: string): RejectedPayload | undefined {
  if (rejection.reason !== 'job_oversized') return undefined;
  const kept = parseOversizedPayload(payload);
  return kept && { receivedAt: rejection.receivedAt, jobId: rejection.jobId, sha256: kept.sha256 };
}

/** The data as the producer sent it, a part at a time. */
export async function* readData(
  warehouse: Warehouse,
  rejection: OpenRejection,
  payload: string,
): AsyncGenerator<Uint8Array> {
  const elsewhere = dataElsewhere(rejection, payload);
  if (elsewhere) yield* readPayloadParts(warehouse, elsewhere);
  else yield Buffer.from(payload);
}

/** Before the refusals are settled: they alone say where it is. */
async function deleteDataElsewhere(shards: Shards, rejections: readonly OpenRejection[]): Promise<void> {
  const oversized = rejections.filter(({ reason }) => reason === 'job_oversized');
  const payloads = await readRejectionPayloads(shards.whole, oversized);
  for (const [index, rejection] of oversized.entries()) {
    const elsewhere = dataElsewhere(rejection, payloads[index] ?? '');
    if (elsewhere) await deleteRejectedPayload(shards.of(elsewhere.jobId), elsewhere);
  }
}
