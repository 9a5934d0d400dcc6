/** Reads a receipt, which is the collector's response to a request with events, and lists the rejected events. */
import { isRecord } from '../record.js';

/** The reason for rejecting an event of an account that the API key may not send for. Another key, or this key later, may be allowed to send it. */
export const NOT_ALLOWED = 'account_not_allowed';

export interface RejectedEvent {
  readonly index: number;
  /** A code such as `invalid_usage`. It is one of REJECTION_REASONS, or a code that a newer service added. */
  readonly reason: string;
  readonly message: string;
}

/**
 * Returns the rejected events. All other events were accepted.
 * @param events the number of events that were sent
 * @returns undefined if the receipt covers another number of events, because it is then unknown which events were accepted
 */
export function rejectedIn(receipt: unknown, events: number): RejectedEvent[] | undefined {
  if (!isRecord(receipt) || !Array.isArray(receipt['results'])) return undefined;
  const results: readonly unknown[] = receipt['results'];
  const rejected = new Map<number, RejectedEvent>();
  for (const result of results) {
    const { status, index, reason = 'rejected', message = '' } = isRecord(result) ? result : {};
    const isSent = typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < events;
    if (status === 'rejected' && isSent) rejected.set(index, { index, reason: `${reason}`, message: `${message}` });
  }
  const isComplete = receipt['rejected'] === rejected.size && receipt['accepted'] === events - rejected.size;
  return isComplete ? [...rejected.values()] : undefined;
}
