/** Defines the reasons for rejecting an event or a job. The codes are stable, because operators filter by them and alerts name them. */

export const REJECTION_REASONS = [
  // These reasons reject a whole job. They are the only reasons that begin with `job_`.
  'job_not_an_object',
  'job_invalid',
  'job_empty',
  'job_too_large',
  'job_oversized',
  'job_lost',
  // These reasons reject a single event.
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

export function isJobRejection(reason: RejectionReason): boolean {
  return reason.startsWith('job_');
}

export interface Rejection {
  readonly reason: RejectionReason;
  /** One sentence that names the field, the problem and the allowed values. */
  readonly message: string;
}

export type Checked<T> = { readonly ok: true; readonly value: T } | Rejected;
export type Rejected = { readonly ok: false } & Rejection;

export function rejected(reason: RejectionReason, message: string): Rejected {
  return { ok: false, reason, message };
}

/** Returns an event as JSON, or undefined if it is nested too deeply. JSON.parse accepts any depth, but JSON.stringify overflows the stack. */
export function payloadOf(input: unknown): string | undefined {
  try {
    return JSON.stringify(input, nonFiniteAsText);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** JSON.parse reads 1e999 as Infinity. JSON.stringify would write it as null, which would hide that a number was sent. */
function nonFiniteAsText(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
