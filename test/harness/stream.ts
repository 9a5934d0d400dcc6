/**
 * Seeded usage events as producers send them: with duplicates, revisions and voids, and with bad events whose reason for rejection is
 * known. Each bad event contains a unique text, its mark, by which its rejection can be found.
 */
import {
  BUILT_IN_DIMENSION_NAMES,
  BUILT_IN_DIMENSIONS,
  type EpochMs,
  MS_PER_HOUR,
  type RejectionReason,
  type UsageEventInput,
} from '@meterline/catalog';
import type { SeededRandom } from './seeded-random.js';

/** An event of the time, with random content. */
export function randomEvent(
  random: SeededRandom,
  accountId: string,
  time: EpochMs,
  resourceUuid?: string,
): UsageEventInput {
  const timestamp = new Date(time).toISOString();
  return { eventId: random.uuid(time), accountId, ...content(random), resourceUuid, timestamp };
}

/** The fields that a revision may change, without the timestamp. */
function content(random: SeededRandom) {
  const billingDimension = random.pick(BUILT_IN_DIMENSION_NAMES);
  const { resourceType, unit } = BUILT_IN_DIMENSIONS[billingDimension];
  const fraction = unit === 'count' ? '' : `.${random.integer(0, 999_999_999).toString().padStart(9, '0')}`;
  return {
    workspace: random.pick(['production', 'staging']),
    resourceType,
    resourceName: `resource-${random.integer(1, 40)}`,
    billingDimension,
    usage: `${random.integer(1, 100_000)}${fraction}`,
  };
}

/** The event, perhaps with one to three revisions. All are of one hour, or they would be other events, and none is later than the first. */
function payloadsOf(random: SeededRandom, first: UsageEventInput, revised: number): UsageEventInput[] {
  const time = Date.parse(first.timestamp);
  const payloads = [first];
  let revision = 0;
  for (let more = random.chance(revised) ? random.integer(1, 3) : 0; more > 0; more -= 1) {
    revision += random.integer(1, 5);
    const timestamp = new Date(random.integer(time - (time % MS_PER_HOUR), time)).toISOString();
    payloads.push({ ...first, ...content(random), timestamp, revision, void: random.chance(0.35) });
  }
  return payloads;
}

type BadCase<T> = readonly [RejectionReason, (good: UsageEventInput, mark: string) => T];

/** Ways to be rejected as a single event, by a worker and by the collector. */
const BAD_EVENTS: readonly BadCase<object>[] = [
  ['invalid_usage', (good) => ({ ...good, usage: -1 })],
  ['invalid_usage', (good) => ({ ...good, usage: '1e3' })],
  ['unknown_field', (good) => ({ ...good, label: 'blue' })],
  ['missing_field', ({ workspace: _, ...others }) => others],
  ['dimension_mismatch', (good) => ({ ...good, resourceType: 'volume', billingDimension: 'job_image_storage_gbs' })],
  ['invalid_billing_dimension', (good) => ({ ...good, billingDimension: 'coffee' })],
  ['invalid_timestamp', (good) => ({ ...good, timestamp: '2026-05-31 12:00' })],
  ['timestamp_in_future', (good) => ({ ...good, timestamp: '2099-01-01T00:00:00Z' })],
  ['invalid_revision', (good) => ({ ...good, revision: 65_536 })],
  ['invalid_void', (good) => ({ ...good, void: 'yes' })],
  ['event_not_an_object', (_, mark) => [mark]],
];

/** Jobs of which a worker stores nothing. The collector would accept some of them: any name can be an id there. */
const BAD_JOBS: readonly BadCase<unknown>[] = [
  ['invalid_event_id', (good) => ({ ...good, eventId: 'not-a-uuid' })],
  ['job_not_an_object', (_, mark) => mark],
  ['job_not_an_object', (good) => [good]],
  ['job_invalid', (good) => ({ events: [good], source: 'nowhere' })],
];

export interface Rejection {
  readonly mark: string;
  readonly reason: RejectionReason;
}

export interface StreamOptions {
  readonly accountId: string;
  /** The number of good events; a revised or voided event counts once. */
  readonly events: number;
  /** The time of the next event. */
  readonly time: () => EpochMs;
  /** Different values of resourceUuid. */
  readonly resources: number;
  /** Shares from 0 to 1: events that are revised, payloads that are sent two or three times, and bad events for each good one. */
  readonly shares: { readonly revised: number; readonly copied: number; readonly bad: number };
  readonly maxJobEvents: number;
  /** The beginning of every mark. */
  readonly mark: string;
}

export interface UsageStream {
  /** In the order in which they are sent. */
  readonly jobs: readonly StreamJob[];
  /** The payloads of each good event, by ascending revision: the last one counts, unless it is a void. */
  readonly events: readonly (readonly UsageEventInput[])[];
}

export interface StreamJob {
  readonly data: unknown;
  /** What the collector may get instead of the job; undefined for a job that is only for the queue. */
  readonly events?: readonly object[];
  /** By the position of the event. */
  readonly rejections: ReadonlyMap<number, Rejection>;
}

export function buildStream(random: SeededRandom, options: StreamOptions): UsageStream {
  const { accountId, time, resources, shares, mark } = options;
  const events = Array.from({ length: options.events }, (_, n) =>
    payloadsOf(random, randomEvent(random, accountId, time(), `event-${n % resources}`), shares.revised),
  );
  const copies = () => Array.from({ length: random.chance(shares.copied) ? random.integer(2, 3) : 1 });
  const sent: object[] = events.flat().flatMap((payload) => copies().map(() => payload));
  const spoiled = <T>(cases: readonly BadCase<T>[], name: string) => {
    const [reason, spoil] = random.pick(cases);
    const own = { mark: `${mark}-${name}`, reason };
    return [spoil(randomEvent(random, accountId, time(), own.mark), own.mark), own] as const;
  };
  const bad = Array.from({ length: Math.ceil(options.events * shares.bad) }, (_, n) => spoiled(BAD_EVENTS, `${n}`));
  const rejections = new Map<object, Rejection>(bad);
  const payloads = random.shuffled([...sent, ...rejections.keys()]);
  const jobs: StreamJob[] = BAD_JOBS.map((_, n) => {
    const [data, rejection] = spoiled(BAD_JOBS, `job-${n}`);
    return { data, rejections: new Map([[0, rejection]]) };
  });
  while (payloads.length > 0) {
    const size = random.chance(0.3) ? 1 : random.integer(2, options.maxJobEvents);
    jobs.push(jobOf(random, payloads.splice(0, size), rejections));
  }
  return { jobs: random.shuffled(jobs), events };
}

/** An event may also be a job by itself. A payload that is an array may not: as a job it would have another reason. */
function jobOf(random: SeededRandom, events: readonly object[], rejected: ReadonlyMap<object, Rejection>): StreamJob {
  const [only] = events;
  const isAlone = events.length === 1 && !Array.isArray(only) && random.chance(0.5);
  const rejections = events.flatMap((payload, position) => {
    const rejection = rejected.get(payload);
    return rejection ? [[position, rejection] as const] : [];
  });
  return { data: isAlone ? only : { events }, events, rejections: new Map(rejections) };
}
