/**
 * What a run sends: good events with duplicates, resends under higher revisions and voids, and bad ones whose reason
 * for rejection is known. Each identity has a unique name in resourceUuid, so that a lost or doubled event can be named.
 */
import { crc32 } from 'node:zlib';
import { BILLING_DIMENSIONS, DIMENSIONS, type RejectionReason, type UsageEventInput } from '@meterline/catalog';

export interface UsageStream {
  readonly window: { readonly startTime: string; readonly endTime: string };
  readonly accountId: string;
  /** The data of each job, in the order in which they are sent. */
  readonly jobs: readonly unknown[];
  /** Every good payload once, including those that a higher revision replaces. */
  readonly good: readonly UsageEventInput[];
  /** The number of good events; a revised or voided event counts once. */
  readonly identities: number;
  readonly rejected: readonly RejectedItem[];
}

interface RejectedItem {
  /** A text that only this payload contains. */
  readonly mark: string;
  readonly reason: RejectionReason;
  /** The index of its job. */
  readonly job: number;
}

export const STREAM_HOURS = 30;
const MS_PER_HOUR = 3_600_000;
const HOURS_BEFORE = 26;

/** When a stream's events begin; they lie on both sides of the end of a month. */
export function firstHour(newMonth: number): number {
  return newMonth - HOURS_BEFORE * MS_PER_HOUR;
}

/** Three whole days with all events of a stream. */
export function streamWindow(newMonth: number) {
  return {
    startTime: new Date(newMonth - 48 * MS_PER_HOUR).toISOString(),
    endTime: new Date(newMonth + 24 * MS_PER_HOUR).toISOString(),
  };
}
const MAX_JOB_EVENTS = 25;

interface BadItem {
  readonly mark: string;
  readonly reason: RejectionReason;
  readonly payload: unknown;
}

type Spoil = (good: UsageEventInput, mark: string) => unknown;

/** Ways to be rejected as a single event. */
export const BAD_EVENTS: readonly (readonly [RejectionReason, Spoil])[] = [
  ['invalid_usage', (good) => ({ ...good, usage: -1 })],
  ['invalid_usage', (good) => ({ ...good, usage: '1e3' })],
  ['unknown_field', (good) => ({ ...good, label: 'blue' })],
  ['missing_field', ({ workspace: _, ...others }) => others],
  ['invalid_event_id', (good) => ({ ...good, eventId: 'not-a-uuid' })],
  ['dimension_mismatch', (good) => ({ ...good, resourceType: 'volume', billingDimension: 'job_image_storage_gbs' })],
  ['invalid_billing_dimension', (good) => ({ ...good, billingDimension: 'coffee' })],
  ['invalid_timestamp', (good) => ({ ...good, timestamp: '2026-05-31 12:00' })],
  ['timestamp_in_future', (good) => ({ ...good, timestamp: '2099-01-01T00:00:00Z' })],
  ['invalid_revision', (good) => ({ ...good, revision: 65_536 })],
  ['invalid_void', (good) => ({ ...good, void: 'yes' })],
  ['event_not_an_object', (_, mark) => mark],
];

/** Ways to be rejected as a whole job. */
const BAD_JOBS: readonly (readonly [RejectionReason, Spoil])[] = [
  ['job_not_an_object', (_, mark) => mark],
  ['job_not_an_object', (good) => [good]],
  ['job_invalid', (good) => ({ events: [good], source: 'nowhere' })],
];

/**
 * @param identities the number of good events; one bad event is added for every twenty
 * @param newMonth the first instant of a month; the events lie around it
 */
export function buildStream(
  random: SeededRandom,
  accountId: string,
  identities: number,
  newMonth: number,
): UsageStream {
  const good: UsageEventInput[] = [];
  const sends: unknown[] = [];
  for (let n = 0; n < identities; n += 1) {
    const payloads = payloadsOf(random, usageEvent(random, accountId, `event-${n}`, newMonth));
    good.push(...payloads);
    for (const payload of payloads) sends.push(...copies(random, payload));
  }
  const bad = Array.from({ length: Math.ceil(identities / 20) }, (_, n) =>
    spoil(random, BAD_EVENTS, accountId, `rejected-${n}-`, newMonth),
  );
  const badJobs = BAD_JOBS.map((_, n) => spoil(random, BAD_JOBS, accountId, `rejected-job-${n}-`, newMonth));

  const marks = new Map(bad.map((item) => [item.payload, item]));
  const batches = intoJobs(random, random.shuffled([...sends, ...bad.map(({ payload }) => payload)]));
  const jobs = random.shuffled<Job>([...batches, ...badJobs]);
  const rejected = jobs.flatMap((job, index): RejectedItem[] => {
    const items = 'events' in job ? job.events.flatMap((payload) => marks.get(payload) ?? []) : [job];
    return items.map(({ mark, reason }) => ({ mark, reason, job: index }));
  });
  return {
    window: streamWindow(newMonth),
    accountId,
    jobs: jobs.map((job) => dataOf(random, job)),
    good,
    identities,
    rejected,
  };
}

function usageEvent(random: SeededRandom, accountId: string, mark: string, newMonth: number): UsageEventInput {
  return {
    eventId: random.uuid(),
    accountId,
    ...content(random),
    resourceUuid: mark,
    timestamp: timestamp(random, firstHour(newMonth) + random.integer(0, STREAM_HOURS - 1) * MS_PER_HOUR),
  };
}

/** The fields that a revision may change. */
export function content(random: SeededRandom) {
  const billingDimension = random.pick(BILLING_DIMENSIONS);
  const { resourceType, unit } = DIMENSIONS[billingDimension];
  const fraction = unit === 'count' ? '' : `.${random.integer(0, 999_999_999).toString().padStart(9, '0')}`;
  return {
    workspace: random.pick(['production', 'staging']),
    resourceType,
    resourceName: `resource-${random.integer(1, 40)}`,
    billingDimension,
    usage: `${random.integer(1, 100_000)}${fraction}`,
  };
}

function timestamp(random: SeededRandom, hour: number): string {
  return new Date(hour + random.integer(0, MS_PER_HOUR - 1)).toISOString();
}

/** The event and, for one in five, later revisions in the same UTC hour, some of them voids. */
function payloadsOf(random: SeededRandom, first: UsageEventInput): UsageEventInput[] {
  const payloads = [first];
  if (!random.chance(0.2)) return payloads;
  const hour = Math.floor(Date.parse(first.timestamp) / MS_PER_HOUR) * MS_PER_HOUR;
  let revision = 0;
  for (let more = random.integer(1, 3); more > 0; more -= 1) {
    revision += random.integer(1, 5);
    payloads.push({
      ...first,
      ...content(random),
      timestamp: timestamp(random, hour),
      revision,
      void: random.chance(0.35),
    });
  }
  return payloads;
}

/** One in six payloads is sent more than once. */
function copies(random: SeededRandom, payload: UsageEventInput): UsageEventInput[] {
  return Array.from({ length: random.chance(1 / 6) ? random.integer(2, 3) : 1 }, () => ({ ...payload }));
}

function spoil(
  random: SeededRandom,
  ways: readonly (readonly [RejectionReason, Spoil])[],
  accountId: string,
  name: string,
  newMonth: number,
): BadItem {
  const mark = `${accountId}/${name}`;
  const [reason, spoiled] = random.pick(ways);
  return { mark, reason, payload: spoiled(usageEvent(random, accountId, mark, newMonth), mark) };
}

/** The data of a job: good and bad events, or data that is rejected as a whole. */
type Job = { readonly events: readonly unknown[] } | BadItem;

function intoJobs(random: SeededRandom, sends: readonly unknown[]): Job[] {
  const jobs: Job[] = [];
  for (let taken = 0; taken < sends.length; ) {
    const size = random.chance(0.3) ? 1 : random.integer(2, MAX_JOB_EVENTS);
    jobs.push({ events: sends.slice(taken, taken + size) });
    taken += size;
  }
  return jobs;
}

/** A single event is sent alone or as a list of one; a non-object always in a list, or the reason would differ. */
function dataOf(random: SeededRandom, job: Job): unknown {
  if ('payload' in job) return job.payload;
  const [only, ...others] = job.events;
  const mayBeBare = others.length === 0 && typeof only === 'object';
  return mayBeBare && random.chance(0.5) ? only : job;
}

/** Repeatable random numbers: the same seed gives the same stream of events and the same moments of failure. */
export class SeededRandom {
  #state: number;

  constructor(seed: number | string) {
    this.#state = crc32(String(seed));
  }

  /** A number in [0, 1), by the generator mulberry32, whose state is one 32-bit number. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer between both ends, inclusive. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly [T, ...T[]] | readonly T[]): T {
    const picked = from[this.integer(0, from.length - 1)];
    if (picked === undefined) throw new RangeError('there is nothing to pick from');
    return picked;
  }

  /** A new list in random order. */
  shuffled<T>(list: readonly T[]): T[] {
    return list
      .map((item) => ({ item, key: this.next() }))
      .sort((a, b) => a.key - b.key)
      .map(({ item }) => item);
  }

  uuid(): string {
    const hex = Array.from({ length: 4 }, () =>
      Math.floor(this.next() * 2 ** 32)
        .toString(16)
        .padStart(8, '0'),
    ).join('');
    return [hex.slice(0, 8), hex.slice(8, 12), `7${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join(
      '-',
    );
  }
}
