/**
 * Why an event or a job cannot be accepted. The codes are stable: operators filter by them and alerts name them.
 */

/** The job as a whole */
const JOB_REJECTION_REASONS = ['job_not_an_object', 'job_invalid', 'job_empty', 'job_too_large'] as const;

export const REJECTION_REASONS = [
  ...JOB_REJECTION_REASONS,
  // One event
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
  'refused_by_storage',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

/** Whether a job was refused whole for it, rather than one of its events. */
export function isJobRejection(reason: RejectionReason): boolean {
  return JOB_REJECTION_REASONS.some((jobReason) => jobReason === reason);
}

export interface Rejection {
  readonly reason: RejectionReason;
  /** One sentence that names the field, what was wrong and what is allowed. */
  readonly message: string;
}

/** The outcome of checking something a producer sent: the value, or why it is refused. */
export type Checked<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & Rejection);

export function rejected(reason: RejectionReason, message: string): { readonly ok: false } & Rejection {
  return { ok: false, reason, message };
}
