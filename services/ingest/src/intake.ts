/** Converts the data of a job into rows to store: priced events and rejected events. Does no I/O. */
import {
  type Checked,
  costOf,
  type EpochMs,
  formatScaled,
  formatTimestamp,
  type PriceBook,
  parseEventJson,
  parsePricedEvent,
  payloadOf,
  type Rejection,
  USAGE_SCALE,
  type UsageEvent,
  type UsageEventInput,
} from '@meterline/catalog';
import { eventsOfJob, tooManyBytes, tooManyValues } from '@meterline/service/job';
import type { RejectedEvent } from '@meterline/warehouse';
import { EventRows, Names } from '@meterline/warehouse/events/event-rows';
import type { SpanContext } from '@opentelemetry/api';

export interface QueuedJob {
  readonly id: string;
  /** When the job was added to the queue. A redelivery does not change this time. */
  readonly receivedAt: EpochMs;
  readonly span?: SpanContext | undefined;
  /** JSON. Empty if Redis has evicted or deleted the data. */
  readonly data: string;
}

/** The rows of a job, or of one of its slices, ready to be stored. */
export interface PreparedJob {
  readonly job: Omit<QueuedJob, 'data'>;
  readonly accepted: EventRows;
  readonly rejected: readonly RejectedEvent[];
}

/** Validates and prices the events of jobs. Jobs share one table of names, because most names repeat. */
export class JobPreparer {
  readonly #book: PriceBook;
  #names = new Names();

  constructor(book: PriceBook) {
    this.#book = book;
  }

  /** A rejected event does not affect the other events of the job. Events before `closedBefore` are too old, and are rejected. */
  prepare({ data, ...job }: QueuedJob, now: EpochMs, closedBefore: EpochMs): PreparedJob {
    const content = readable(data);
    if (!content.ok) return rejectedJob(job, data, content);
    const events = eventsOfJob(content.value);
    if (!events.ok) return rejectedJob(job, data, events);

    if (this.#names.isLarge) this.#names = new Names();
    const accepted = new EventRows(events.value.length, this.#names);
    const rejected: RejectedEvent[] = [];
    for (const [position, input] of events.value.entries()) {
      const rejection = this.#add(accepted, input, position, now, closedBefore);
      if (!rejection) continue;
      // If the job is a single event, keep its data unchanged.
      const payload = input === content.value ? data : payloadOf(input);
      if (payload === undefined) return rejectedJob(job, data, TOO_DEEP);
      rejected.push(rejectedEvent(job, position, input, payload, rejection));
    }
    return { job, accepted, rejected };
  }

  #add(rows: EventRows, input: unknown, position: number, now: EpochMs, closedBefore: EpochMs): Rejection | undefined {
    const checked = parsePricedEvent(input, this.#book, now);
    if (!checked.ok) return checked;
    const { event, price } = checked.value;
    if (event.timestamp < closedBefore) return tooOldBefore(closedBefore);
    const cost = costOf(event.usage, price);
    rows.add(event, { cost, priceRevision: 0, priceBook: this.#book.version }, position);
    return undefined;
  }
}

const LOST =
  'the data of this job was evicted or deleted in Redis; its events are lost unless their producer sends them again';

const TOO_DEEP: Rejection = {
  reason: 'job_invalid',
  message:
    'an event of this job is nested too deeply to be stored on its own; fix it, and send all events of the job again',
};

/** Does not parse data above the size limits. Data that is not JSON becomes undefined, which the caller rejects as an invalid job. */
function readable(data: string): Checked<unknown> {
  if (data === '') return { ok: false, reason: 'job_lost', message: LOST };
  const oversized = tooManyBytes(Buffer.byteLength(data)) ?? tooManyValues(data);
  return oversized ? { ok: false, ...oversized } : { ok: true, value: parseEventJson(data) };
}

/** Separates the events of closed months, which are not accepted any more. */
export function separateTooOld(rows: EventRows, closedBefore: EpochMs): { accepted: EventRows; tooOld: EventRows } {
  if (rows.earliest >= closedBefore) return { accepted: rows, tooOld: rows.pick([]) };
  const all = Array.from({ length: rows.length }, (_, row) => row);
  const isTooOld = (row: number) => rows.timestampOf(row) < closedBefore;
  return { accepted: rows.pick(all.filter((row) => !isTooOld(row))), tooOld: rows.pick(all.filter(isTooOld)) };
}

export function tooOldBefore(closedBefore: EpochMs): Rejection {
  const message =
    `events before ${formatTimestamp(closedBefore)} are not accepted any more, because their months are closed; ` +
    'if this one was stored before, it still counts as it was';
  return { reason: 'too_old', message };
}

function rejectedJob(job: PreparedJob['job'], payload: string, rejection: Rejection): PreparedJob {
  const rejected = [rejectedEvent(job, 0, undefined, payload, rejection)];
  return { job, accepted: new EventRows(0, new Names()), rejected };
}

function rejectedEvent(
  job: PreparedJob['job'],
  position: number,
  input: unknown,
  payload: string,
  { reason, message }: Rejection,
): RejectedEvent {
  return {
    receivedAt: job.receivedAt,
    jobId: job.id,
    position,
    // Shorten strings that producers choose and may make long. The payload stays complete.
    accountId: shortened(claimedAccount(input)),
    reason,
    message: shortened(message),
    payload,
  };
}

/** Rejects events that have already passed validation. Their payloads are rebuilt in the form that producers send. */
export function rejectedLater(job: PreparedJob['job'], rows: EventRows, rejection: Rejection): RejectedEvent[] {
  return Array.from({ length: rows.length }, (_, row) => {
    const input = toUsageEventInput(rows.eventOf(row));
    return rejectedEvent(job, rows.positionOf(row), input, JSON.stringify(input), rejection);
  });
}

/** Converts an event to the form that producers send. parseUsageEvent turns the result into the same event again. */
function toUsageEventInput(event: UsageEvent): UsageEventInput {
  return {
    eventId: event.eventId,
    accountId: event.accountId,
    workspace: event.workspace,
    resourceType: event.resourceType,
    resourceName: event.resourceName,
    ...(event.resourceUuid !== '' && { resourceUuid: event.resourceUuid }),
    billingDimension: event.billingDimension,
    usage: formatScaled(event.usage, USAGE_SCALE),
    timestamp: formatTimestamp(event.timestamp),
    revision: event.revision,
    void: event.voided,
  };
}

const LONGEST_TEXT = 2_000;

/** Shortens a string without splitting a surrogate pair. */
function shortened(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  return `${text.slice(0, LONGEST_TEXT).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

function claimedAccount(input: unknown): string {
  const claimed = typeof input === 'object' && input !== null && 'accountId' in input ? input.accountId : undefined;
  return typeof claimed === 'string' ? claimed : '';
}
