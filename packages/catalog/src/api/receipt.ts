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
 * Returns the rejected events. All other events are accepted.
 * @param events the number of events that were sent
 * @returns undefined unless the receipt covers exactly this number of events. Then it is unknown which events were accepted.
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
