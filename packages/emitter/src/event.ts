/** Validates recorded events, and assigns missing IDs and timestamps. Retries send the same ID and timestamp. */
import {
  assumedDimension,
  type Checked,
  type EpochMs,
  parseUsageEvent,
  type UsageEvent,
  type UsageEventInput,
} from '@meterline/catalog/plain';
import { v7 as uuidV7 } from 'uuid';

export type EventToRecord = Omit<UsageEventInput, 'eventId' | 'timestamp'> &
  Partial<Pick<UsageEventInput, 'eventId' | 'timestamp'>>;

export interface CheckedEvent {
  /** The event to send. It is a copy, so later changes to the caller's object have no effect. */
  readonly sent: UsageEventInput;
  readonly read: UsageEvent;
}

/**
 * Validates an event by the rules of the collector, but accepts unknown billing dimensions, because only the collector knows all of them.
 * @throws if a getter of the event throws
 */
export function checkEvent(input: EventToRecord, now: EpochMs): Checked<CheckedEvent> {
  const eventId = input.eventId ?? uuidV7();
  const sent: UsageEventInput = { ...input, eventId, timestamp: input.timestamp ?? new Date(now).toISOString() };
  const read = parseUsageEvent(sent, now, assumedDimension);
  return read.ok ? { ok: true, value: { sent, read: read.value } } : read;
}
