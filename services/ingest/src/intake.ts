/** From the data of a job to the rows that are stored for it: priced events and refused ones. Pure. */
import {
  type Checked,
  costOf,
  type EpochMs,
  eventsOfJob,
  formatTimestamp,
  type PriceBook,
  parseJson,
  parsePricedEvent,
  payloadOf,
  payloadReference,
  type Rejection,
  toUsageEventInput,
} from '@meterline/catalog';
import { EventRows, Names, type PricedEvent, type RejectedEvent } from '@meterline/warehouse';
import type { SpanContext } from '@opentelemetry/api';
import { JobScanner } from './job-scanner.js';
import { NameBytes } from './name-bytes.js';
import { addUsualEvent } from './usual-event.js';

/** What is known of a job when it is taken from the queue. */
export interface QueuedJob {
  readonly id: string;
  /** When the queue took the job; a redelivery does not change it. */
  readonly receivedAt: EpochMs;
  /** Undefined when it is not traced. */
  readonly span?: SpanContext | undefined;
  /** Its data as JSON text. */
  readonly data: string;
}

export interface Intake {
  readonly job: Omit<QueuedJob, 'data'>;
  readonly accepted: EventRows;
  readonly rejected: readonly RejectedEvent[];
}

/** Checks and prices events, and keeps their names from job to job, so that each is checked once. */
export class Pricer {
  readonly #book: PriceBook;
  readonly #scanner: JobScanner;
  #names = new NameBytes(new Names());

  constructor(book: PriceBook) {
    this.#book = book;
    this.#scanner = new JobScanner(book, this.#names);
  }

  /**
   * The short way of a job.
   * @param data in UTF-8
   * @param closedBefore events before are too old
   * @returns undefined for one that is not as producers write it, which may be a good one for all that, and for one with an event that
   *   is too old
   */
  priceUsualJob(job: Intake['job'], data: Buffer, now: EpochMs, closedBefore: EpochMs): Intake | undefined {
    const accepted = this.#scanner.rowsOf(data, now, this.#currentNames());
    if (!accepted || accepted.earliest < closedBefore) return undefined;
    return { job, accepted, rejected: [] };
  }

  /**
   * Checks and prices every event of a job. The others are accepted even if one is refused.
   * @param closedBefore events before are too old
   */
  priceJob({ data, ...job }: QueuedJob, now: EpochMs, closedBefore: EpochMs): Intake {
    // Undefined for a text that is not JSON, which is not a job either.
    const content = parseJson(data);
    const events = eventsOfJob(content);
    if (!events.ok) return refusedJob(job, data, events);

    const desk = { book: this.#book, now, rows: new EventRows(events.value.length, this.#currentNames().names) };
    const refused: RejectedEvent[] = [];
    const payloadOf = payloads(data, content);
    for (const [position, input] of events.value.entries()) {
      if (addUsualEvent(input, position, desk)) continue;
      const priced = priceEvent(input, this.#book, now);
      if (priced.ok) desk.rows.add(priced.value, position);
      else refused.push(rejectedEvent(job, position, input, payloadOf(input, position), priced));
    }
    const { accepted, tooOld } = divideByAge(desk.rows, closedBefore);
    for (const position of positionsOf(tooOld)) {
      const input = events.value[position];
      refused.push(rejectedEvent(job, position, input, payloadOf(input, position), tooOldBefore(closedBefore)));
    }
    return { job, accepted, rejected: refused };
  }

  #currentNames(): NameBytes {
    if (this.#names.names.isLarge) this.#names = new NameBytes(new Names());
    return this.#names;
  }
}

/** Most often all are accepted, and nothing is copied. */
export function divideByAge(rows: EventRows, closedBefore: EpochMs): { accepted: EventRows; tooOld: EventRows } {
  if (rows.earliest >= closedBefore) return { accepted: rows, tooOld: rows.pick([]) };
  const all = Array.from({ length: rows.length }, (_, row) => row);
  const isTooOld = (row: number) => rows.timestampOf(row) < closedBefore;
  return { accepted: rows.pick(all.filter((row) => !isTooOld(row))), tooOld: rows.pick(all.filter(isTooOld)) };
}

function positionsOf(rows: EventRows): number[] {
  return Array.from({ length: rows.length }, (_, row) => rows.positionOf(row));
}

/** Also for an event that is stored already, and for one that is sent again. */
function tooOldBefore(closedBefore: EpochMs): Rejection {
  const message =
    `events before ${formatTimestamp(closedBefore)} are not accepted any more, because their months are closed; ` +
    'if this one was stored before, it still counts as it was';
  return { reason: 'too_old', message };
}

/** A job that is refused whole. It belongs to no account. */
export function refusedJob(job: Intake['job'], payload: string, rejection: Rejection): Intake {
  const rejected = [rejectedEvent(job, 0, undefined, payload, rejection)];
  return { job, accepted: new EventRows(0, new Names()), rejected };
}

/**
 * What is kept of a refused event. A job of one event is kept as it came. What is nested too deeply to be written alone
 * is kept with its whole job, and the job once: it may be large and hold many such events.
 */
function payloads(data: string, content: unknown): (input: unknown, position: number) => string {
  let keptWhole: number | undefined;
  return (input, position) => {
    const payload = input === content ? data : payloadOf(input);
    if (payload !== undefined) return payload;
    if (keptWhole !== undefined) return payloadReference(keptWhole);
    keptWhole = position;
    return data;
  };
}

/** The way of any event, usual or not: what it says decides. */
export function priceEvent(input: unknown, book: PriceBook, now: EpochMs): Checked<PricedEvent> {
  const checked = parsePricedEvent(input, book, now);
  if (!checked.ok) return checked;
  const { event, price } = checked.value;
  return {
    ok: true,
    // Listed, because spreading the event costs more than all its checks together (docs/decisions/0003).
    value: {
      eventId: event.eventId,
      accountId: event.accountId,
      workspace: event.workspace,
      resourceType: event.resourceType,
      resourceName: event.resourceName,
      resourceUuid: event.resourceUuid,
      billingDimension: event.billingDimension,
      usage: event.usage,
      timestamp: event.timestamp,
      revision: event.revision,
      voided: event.voided,
      cost: costOf(event.usage, price),
      priceRevision: 0,
      priceBook: book.version,
    },
  };
}

function rejectedEvent(
  job: Intake['job'],
  position: number,
  input: unknown,
  payload: string,
  { reason, message }: Rejection,
): RejectedEvent {
  return {
    receivedAt: job.receivedAt,
    jobId: job.id,
    position,
    accountId: claimedAccount(input),
    reason,
    message,
    payload,
  };
}

/** Storage refused the only one of these events, which had passed every check. */
export function refusedByStorage(job: Intake['job'], only: EventRows, message: string): RejectedEvent {
  return refusedLater(job, only, 0, { reason: 'refused_by_storage', message });
}

/** These events had passed every check, and their months are being dropped. */
export function refusedAsTooOld(job: Intake['job'], rows: EventRows, closedBefore: EpochMs): RejectedEvent[] {
  return positionsOf(rows).map((_, row) => refusedLater(job, rows, row, tooOldBefore(closedBefore)));
}

/** Its payload is in the form a producer may send. */
function refusedLater(job: Intake['job'], rows: EventRows, row: number, rejection: Rejection): RejectedEvent {
  const input = toUsageEventInput(rows.eventOf(row));
  return rejectedEvent(job, rows.positionOf(row), input, JSON.stringify(input), rejection);
}

function claimedAccount(input: unknown): string {
  const claimed = typeof input === 'object' && input !== null && 'accountId' in input ? input.accountId : undefined;
  return typeof claimed === 'string' ? claimed : '';
}
