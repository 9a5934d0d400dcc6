/** Reads a collector's receipt: which of the sent events it rejected. */
import { isRecord } from '../event.js';

/** The reason of an event whose account the API key may not send for. Another key may send the event, or the same key later. */
export const NOT_ALLOWED = 'account_not_allowed';

export interface RejectedEvent {
  /** Index of the event among those that were sent. */
  readonly index: number;
  /** A code such as `invalid_usage`: one of REJECTION_REASONS, or one that a newer service added. */
  readonly reason: string;
  readonly message: string;
}

/**
 * Returns the rejected events; all others are accepted.
 * @param events number of events sent
 * @returns undefined if the receipt does not account for every event, so that nothing is known about them
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
  return receipt['accepted'] === events - rejected.size ? [...rejected.values()] : undefined;
}
