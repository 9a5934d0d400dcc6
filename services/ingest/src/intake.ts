/** From the data of a job to the rows that are stored for it: priced events and refused ones. Pure. */
import {
  type Checked,
  costOf,
  type EpochMs,
  eventsOfJob,
  type PriceBook,
  parseJson,
  parsePricedEvent,
  payloadOf,
  payloadReference,
  type Rejection,
  toUsageEventInput,
} from '@meterline/catalog';
import type { PricedEvent, RejectedEvent } from '@meterline/warehouse';
import type { SpanContext } from '@opentelemetry/api';

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

/** A priced event together with where it came from, so that storage can still refuse it. */
export interface AcceptedEvent {
  readonly priced: PricedEvent;
  readonly position: number;
}

export interface Intake {
  readonly job: Omit<QueuedJob, 'data'>;
  readonly accepted: readonly AcceptedEvent[];
  readonly rejected: readonly RejectedEvent[];
}

/** Checks and prices every event of a job. The others are accepted even if one is refused. */
export function priceJob({ data, ...job }: QueuedJob, book: PriceBook, now: EpochMs): Intake {
  // Undefined for a text that is not JSON, which is not a job either.
  const content = parseJson(data);
  const events = eventsOfJob(content);
  if (!events.ok) return refusedJob(job, data, events);

  const accepted: AcceptedEvent[] = [];
  const refused: RejectedEvent[] = [];
  const payloadOf = payloads(data, content);
  for (const [position, input] of events.value.entries()) {
    const outcome = priced(input, book, now);
    if (outcome.ok) accepted.push({ priced: outcome.value, position });
    else refused.push(rejectedEvent(job, position, input, payloadOf(input, position), outcome));
  }
  return { job, accepted, rejected: refused };
}

/** A job that is refused whole. It belongs to no account. */
export function refusedJob(job: Intake['job'], payload: string, rejection: Rejection): Intake {
  return { job, accepted: [], rejected: [rejectedEvent(job, 0, undefined, payload, rejection)] };
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

function priced(input: unknown, book: PriceBook, now: EpochMs): Checked<PricedEvent> {
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

/** Storage refused an event that had passed every check. The payload is the event in the form a producer may send. */
export function refusedByStorage(job: Intake['job'], event: AcceptedEvent, message: string): RejectedEvent {
  const input = toUsageEventInput(event.priced);
  return rejectedEvent(job, event.position, input, JSON.stringify(input), { reason: 'refused_by_storage', message });
}

function claimedAccount(input: unknown): string {
  const claimed = typeof input === 'object' && input !== null && 'accountId' in input ? input.accountId : undefined;
  return typeof claimed === 'string' ? claimed : '';
}
