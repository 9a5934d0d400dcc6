/** Settles rejected events and jobs that IDs or a filter select: sends them to the queue again (replays them), or discards them. */
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

/** Returns the ID of a rejection: its time of receipt and its fingerprint, in base 36. IDs sort by time of receipt. */
export function formatRejectionId({ receivedAt, fingerprint }: RejectionId): string {
  return `${receivedAt.toString(36)}-${fingerprint.toString(36)}`;
}

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
      /** The IDs that matched the filter when `selectNow` fixed the selection. If undefined, all rejections that match are selected. */
      readonly seen?: ReadonlySet<string>;
    };

/**
 * Remembers which rejections a selection contains now, so that it excludes later rejections, which the operator has not seen. Their time of
 * receipt does not show that they are later, because it is the time at which the job was queued, by the clock of the producer.
 * @throws CommandError if an ID does not exist
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

async function namedRejections(warehouse: Warehouse, ids: readonly RejectionId[]): Promise<OpenRejection[]> {
  const unique = new Map(ids.map((id) => [formatRejectionId(id), id]));
  return Promise.all([...unique.values()].map((id) => requireRejection(warehouse, id)));
}

export async function requireRejection(warehouse: Warehouse, id: RejectionId): Promise<OpenRejection> {
  const { receivedAt, fingerprint } = id;
  const filter = { from: receivedAt, to: receivedAt + 1, fingerprint };
  const [found] = await readOpenRejections(warehouse, filter, { limit: 1 });
  if (found) return found;
  throw new CommandError(
    `there is no open rejection ${formatRejectionId(id)}; run "meterline rejected list" to see open rejections`,
  );
}

export interface KeptRejection {
  readonly id: string;
  readonly why: string;
}

export interface SettlementOptions {
  readonly shards: Shards;
  readonly selection: RejectionSelection;
  readonly signal: AbortSignal;
  readonly onKept: (kept: KeptRejection) => void;
}

export interface ReplayOptions extends SettlementOptions {
  readonly edits: Edits;
}

export interface Resend {
  readonly rejection: OpenRejection;
  readonly sendable: Exclude<Resendable, { readonly kind: 'unsendable' }>;
}

/**
 * Sends the selected rejections to the queue, one group after the other. For each settled group, yields the IDs of the new jobs and the
 * number of rejections.
 * Crash order of a group: send, wait for the disk of Redis, settle. A crash leaves open rejections whose events are already in the queue.
 * The next run sends them again, which is safe because events with the same ID count once. In the opposite order, a crash would lose
 * events.
 * @throws CommandError if an ID does not exist, or the disk of Redis takes too long
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

/** Yields the data that `replayRejections` would send, group by group. Settles nothing. */
export async function* sendableRejections(options: ReplayOptions): AsyncGenerator<Resend[]> {
  for await (const group of selectedGroups(options)) yield await resendsOf(group, options);
}

/**
 * Deletes the selected rejections permanently, group by group. Yields the size of each group. One insert settles a group before its rows
 * are deleted, so a crash leaves each group either discarded or open.
 * @throws CommandError if an ID does not exist
 */
export async function* discardRejections(options: SettlementOptions): AsyncGenerator<number> {
  for await (const group of selectedGroups(options)) {
    await settleRejections(options.shards, group, 'discarded');
    yield group.length;
  }
}

/** Describes whether a worker would accept the events. Does not check prices. @param closedBefore events before this time are too old */
export function outcome({ rejection, sendable }: Resend, now: EpochMs, closedBefore: EpochMs): string {
  if (sendable.kind === 'event') return eventOutcome(sendable.event, rejection, now, closedBefore);
  const outcomes: string[] = [];
  for (const job of sendable.jobs.map(eventsOfJob)) {
    if (!job.ok) return `still ${job.reason}: ${job.message}`;
    outcomes.push(...job.value.map((event) => eventOutcome(event, rejection, now, closedBefore)));
  }
  const bad = outcomes.filter((each) => each.startsWith('still'));
  const all = `${counted(sendable.jobs.length, 'job')} of ${counted(outcomes.length, 'event')}`;
  return bad[0] === undefined ? `${all}, valid` : `${all}, ${outcomes.length - bad.length} valid; ${bad[0]}`;
}

function eventOutcome(event: unknown, { reason }: OpenRejection, now: EpochMs, closedBefore: EpochMs): string {
  const checked = parseUsageEvent(event, now);
  if (!checked.ok) return `still ${checked.reason}: ${checked.message}`;
  if (checked.value.timestamp < closedBefore)
    return `still too_old: months before ${formatTimestamp(closedBefore)} are closed`;
  return reason === 'no_price' ? 'valid if the price book of the workers now has a price' : 'valid';
}

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

async function resendsOf(
  group: readonly OpenRejection[],
  { shards: { whole: warehouse }, edits, onKept }: ReplayOptions,
): Promise<Resend[]> {
  const keep = (rejection: OpenRejection, why: string) => onKept({ id: formatRejectionId(rejection), why });
  const isOversized = ({ reason }: OpenRejection) => reason === 'job_oversized';
  // Oversized jobs are never sent, so do not read their payloads, which could exhaust the memory.
  for (const oversized of group.filter(isOversized)) keep(oversized, OVERSIZED);
  const readable = group.filter((rejection) => !isOversized(rejection));
  const payloads = await readRejectionPayloads(warehouse, readable);
  const resends: Resend[] = [];
  for (const [index, rejection] of readable.entries()) {
    const payload = payloads[index];
    // The payload is missing if another operator has settled the rejection meanwhile.
    if (payload === undefined) continue;
    const sendable = resendable(rejection, payload, edits);
    if (sendable.kind === 'unsendable') keep(rejection, sendable.why);
    else resends.push({ rejection, sendable });
  }
  return resends;
}
