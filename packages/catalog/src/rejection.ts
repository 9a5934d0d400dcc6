/**
 * Why an event or a job is rejected, and how it is written to rejected_events. The codes are stable: operators filter by
 * them and alerts name them.
 */

export const REJECTION_REASONS = [
  // A job as a whole; these begin with its name, and only these.
  'job_not_an_object',
  'job_invalid',
  'job_empty',
  'job_too_large',
  'job_oversized',
  'job_lost',
  // A single event.
  'event_not_an_object',
  'unknown_field',
  'missing_field',
  'invalid_event_id',
  'invalid_account_id',
  'invalid_workspace',
  'invalid_resource_type',
  'invalid_resource_name',
  'invalid_resource_uuid',
  'invalid_billing_dimension',
  'dimension_mismatch',
  'invalid_usage',
  'invalid_timestamp',
  'timestamp_in_future',
  'invalid_revision',
  'invalid_void',
  'no_price',
  'too_old',
  'rejected_by_storage',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

/** Whether the reason rejects a whole job, rather than one of its events. */
export function isJobRejection(reason: RejectionReason): boolean {
  return reason.startsWith('job_');
}

export interface Rejection {
  readonly reason: RejectionReason;
  /** One sentence that names the field, what was wrong and what is allowed. */
  readonly message: string;
}

/** The outcome of checking something a producer sent: the value, or why it is rejected. */
export type Checked<T> = { readonly ok: true; readonly value: T } | Rejected;
export type Rejected = { readonly ok: false } & Rejection;

export function rejected(reason: RejectionReason, message: string): Rejected {
  return { ok: false, reason, message };
}

/**
 * The event as JSON text. Undefined if it is nested too deeply: JSON.parse reads any depth, but JSON.stringify runs out of
 * stack.
 */
export function payloadOf(input: unknown): string | undefined {
  try {
    return JSON.stringify(input, nonFiniteAsText);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** JSON.parse reads 1e999 as Infinity, which JSON cannot write; null would hide what was sent. */
function nonFiniteAsText(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}

/** The value of a JSON text; undefined, which JSON cannot write, for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A reason of collectors alone, for an event that another key may send, or the same key later. */
export const NOT_ALLOWED = 'account_not_allowed';

/** Why an event that was sent to a collector is not accepted. */
export interface RejectedEvent {
  /** The event's place among those that were sent. */
  readonly index: number;
  /** A code such as `invalid_usage`: one of {@link REJECTION_REASONS}, or of a newer service. */
  readonly reason: string;
  readonly message: string;
}

/**
 * Reads which events a collector rejected. All other events are accepted.
 * @param events the number of events that were sent
 * @returns undefined unless the receipt covers exactly this number of events. Then it is unknown which events were accepted.
 */
export function rejectedIn(receipt: unknown, events: number): RejectedEvent[] | undefined {
  const { accepted, rejected: rejectedCount, results } = Object(receipt);
  if (!Array.isArray(results)) return undefined;
  const rejected = new Map<number, RejectedEvent>();
  for (const result of results) {
    const { status, index, reason = 'rejected', message = '' } = Object(result);
    const isSent = Number.isInteger(index) && index >= 0 && index < events;
    if (status === 'rejected' && isSent) rejected.set(index, { index, reason: `${reason}`, message: `${message}` });
  }
  return rejectedCount === rejected.size && accepted + rejectedCount === events ? [...rejected.values()] : undefined;
}

const REFERENCE = /^"see the payload of position (\d{1,10}) of this job"$/;

/**
 * The payload of an event that cannot be written alone. Its whole job is then kept as the payload of another rejected event
 * of that job, at a lower position.
 */
export function payloadReference(position: number): string {
  return JSON.stringify(`see the payload of position ${position} of this job`);
}

/** The position that such a reference names; undefined for any other payload. */
export function referencedPosition(payload: string): number | undefined {
  const [, position] = REFERENCE.exec(payload) ?? [];
  return position === undefined ? undefined : Number(position);
}
