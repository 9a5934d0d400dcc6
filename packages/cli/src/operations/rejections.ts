/** Settling rejections: those that are meant, by their ids or a filter, are sent through the queue again, or discarded. */
import { counted, type EpochMs, formatTimestamp, parseUsageEvent } from '@meterline/catalog';
import { eventsOfJob } from '@meterline/service/job';
import {
  type OpenRejection,
  type RejectionFilter,
  type RejectionId,
  readOpenRejections,
  readRejectionPayloads,
  type Shards,
  settleRejections,
  type Warehouse,
} from '@meterline/warehouse';
import type { UsageQueue } from '../connections/servers.js';
import { CommandError } from '../failure.js';
import { type Edits, jobsOfEvents, OVERSIZED, type Resendable, resendable } from './resendable.js';

const PAGE_SIZE = 2_000;
const ID = /^([0-9a-z]{1,9})-([0-9a-z]{1,13})$/;
const MAX_FINGERPRINT = 2n ** 64n;
const MAX_GROUP = 500;
const MAX_GROUP_BYTES = 4 * 1024 * 1024;

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

export type RejectionSelection =
  | { readonly ids: readonly RejectionId[] }
  | {
      readonly filter: RejectionFilter;
      /** The ids of those that passed the filter once, and no others are selected; undefined: all that pass it. */
      readonly seen?: ReadonlySet<string>;
    };

/**
 * The selection as it is now, and its size: what is rejected later is left out, because nobody has seen it. It may have been
 * received earlier: the time of receipt is when the queue took the job, by the producer's clock.
 * @throws CommandError when one that is named is not there
 */
export async function selectNow(
  warehouse: Warehouse,
  selection: RejectionSelection,
): Promise<{ readonly selection: RejectionSelection; readonly found: number }> {
  const seen = new Set<string>();
  for await (const page of selectedPages(warehouse, selection)) {
    for (const rejection of page) seen.add(formatRejectionId(rejection));
  }
  return { selection: 'ids' in selection ? selection : { ...selection, seen }, found: seen.size };
}

/**
 * Reads the selected rejections a page at a time.
 * @throws CommandError when one that is named is not there
 */
export async function* selectedPages(
  warehouse: Warehouse,
  selection: RejectionSelection,
): AsyncGenerator<OpenRejection[]> {
  if ('ids' in selection) {
    yield await namedRejections(warehouse, selection.ids);
    return;
  }
  let after: OpenRejection | undefined;
  do {
    const page = await readOpenRejections(warehouse, selection.filter, { limit: PAGE_SIZE, after });
    yield page.filter((rejection) => selection.seen?.has(formatRejectionId(rejection)) ?? true);
    after = page.length === PAGE_SIZE ? page.at(-1) : undefined;
  } while (after);
}

/** The rejections of these ids, each once however often it is named. */
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

/** A rejection that stays as it is, and why. */
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
  readonly edits: Edits;
}

/** A rejection and what would be sent for it. */
export interface Resend {
  readonly rejection: OpenRejection;
  readonly sendable: Exclude<Resendable, { readonly kind: 'unsendable' }>;
}

/**
 * Sends the selected rejections through the queue again, group by group.
 *
 * Crash order of a group: sent, on Redis' disk, settled. A crash before the end leaves rejections open that are in the queue
 * already; running it again sends them again, which is harmless, because the ids of events make them the same events.
 * Never the other way round: a rejection that is settled and not in the queue would be lost.
 * @returns the ids of the jobs of each group, and how many rejections they were, when the group is settled
 * @throws CommandError when one that is named is not there, or Redis' disk takes too long
 */
export async function* replayRejections(options: ReplayOptions, queue: UsageQueue) {
  const { shards } = options;
  for await (const group of selectedGroups(options)) {
    const resends = await resendsOf(group, options);
    const events = resends.flatMap(({ sendable }) => (sendable.kind === 'event' ? [sendable.event] : []));
    const jobs = resends.flatMap(({ sendable }) => (sendable.kind === 'jobs' ? sendable.jobs : []));
    const jobIds = await queue.send([...jobsOfEvents(events), ...jobs]);
    const rejections = resends.map(({ rejection }) => rejection);
    await settleRejections(shards, rejections, 'replayed');
    yield { jobIds, count: resends.length };
  }
}

/** Returns what `replayRejections` would send, a group at a time. It settles nothing. */
export async function* sendableRejections(options: ReplayOptions): AsyncGenerator<Resend[]> {
  for await (const group of selectedGroups(options)) yield await resendsOf(group, options);
}

/**
 * Deletes the selected rejections for good, group by group: one insert settles the group, then its rows are deleted. So a crash
 * leaves whole groups discarded and the others open.
 * @returns the size of each group, when it is settled
 * @throws CommandError when one that is named is not there
 */
export async function* discardRejections(options: SettlementOptions): AsyncGenerator<number> {
  for await (const group of selectedGroups(options)) {
    await settleRejections(options.shards, group, 'discarded');
    yield group.length;
  }
}

/** What the worker would say, except for the price and the storage, which only it knows. @param closedBefore events before are too old */
export function outcome({ rejection, sendable }: Resend, now: EpochMs, closedBefore: EpochMs): string {
  if (sendable.kind === 'event') return eventOutcome(sendable.event, rejection, now, closedBefore);
  const outcomes: string[] = [];
  for (const job of sendable.jobs.map(eventsOfJob)) {
    if (!job.ok) return `still ${job.reason}: ${job.message}`;
    outcomes.push(...job.value.map((event) => eventOutcome(event, rejection, now, closedBefore)));
  }
  const bad = outcomes.filter((found) => found.startsWith('still'));
  const all = `${counted(sendable.jobs.length, 'job')} of ${counted(outcomes.length, 'event')}`;
  return bad[0] === undefined ? `${all}, valid` : `${all}, ${outcomes.length - bad.length} valid; ${bad[0]}`;
}

function eventOutcome(event: unknown, { reason }: OpenRejection, now: EpochMs, closedBefore: EpochMs): string {
  const checked = parseUsageEvent(event, now);
  if (!checked.ok) return `still ${checked.reason}: ${checked.message}`;
  if (checked.value.timestamp < closedBefore)
    return `still too_old: months before ${formatTimestamp(closedBefore)} are closed`;
  return reason === 'no_price' ? 'valid, if the price book of the workers has a price now' : 'valid';
}

/** Until the signal is aborted. */
async function* selectedGroups({ shards, selection, signal }: SettlementOptions): AsyncGenerator<OpenRejection[]> {
  for await (const page of selectedPages(shards.whole, selection)) {
    for (const group of settlementGroups(page)) {
      if (signal.aborted) return;
      yield group;
    }
  }
}

/** Splits rejections into groups that are settled together and whose payloads fit in memory. */
export function settlementGroups(rejections: readonly OpenRejection[]): OpenRejection[][] {
  const groups: OpenRejection[][] = [];
  let group: OpenRejection[] = [];
  let bytes = 0;
  for (const rejection of rejections) {
    const isFull = group.length === MAX_GROUP || bytes + rejection.payloadBytes > MAX_GROUP_BYTES;
    if (group.length > 0 && isFull) {
      groups.push(group);
      group = [];
      bytes = 0;
    }
    group.push(rejection);
    bytes += rejection.payloadBytes;
  }
  return group.length > 0 ? [...groups, group] : groups;
}

/** What would be sent for each rejection of the group; reports those for which nothing can be sent. */
async function resendsOf(
  group: readonly OpenRejection[],
  { shards: { whole: warehouse }, edits, onKept }: ReplayOptions,
): Promise<Resend[]> {
  const keep = (rejection: OpenRejection, why: string) => onKept({ id: formatRejectionId(rejection), why });
  const isOversized = ({ reason }: OpenRejection) => reason === 'job_oversized';
  // The payloads of oversized jobs may fill the memory, and are not needed to say that they cannot be sent.
  for (const oversized of group.filter(isOversized)) keep(oversized, OVERSIZED);
  const wanted = group.filter((rejection) => !isOversized(rejection));
  const payloads = await readRejectionPayloads(warehouse, wanted);
  const resends: Resend[] = [];
  for (const [index, rejection] of wanted.entries()) {
    const payload = payloads[index];
    // Settled by somebody else since the page was read.
    if (payload === undefined) continue;
    const sendable = resendable(rejection, payload, edits);
    if (sendable.kind === 'unsendable') keep(rejection, sendable.why);
    else resends.push({ rejection, sendable });
  }
  return resends;
}
