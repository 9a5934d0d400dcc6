/** Turns what a caller records into an event: it gets its id and its time now, and keeps both however often it is sent. */
import {
  type Checked,
  type EpochMs,
  parseUsageEvent,
  type UsageEvent,
  type UsageEventInput,
} from '@meterline/catalog/plain';
import { v7 as uuidV7 } from 'uuid';

/** A usage event whose id and time may be left out. */
export type EventToRecord = Omit<UsageEventInput, 'eventId' | 'timestamp'> &
  Partial<Pick<UsageEventInput, 'eventId' | 'timestamp'>>;

export interface CheckedEvent {
  /** As it is sent. A copy, so that the caller may use its object again. */
  readonly sent: UsageEventInput;
  /** As the worker reads it. */
  readonly read: UsageEvent;
}

/** Checks by the rules of the catalog, which are the worker's. @throws whatever a getter of the event throws */
export function checkEvent(input: EventToRecord, now: EpochMs): Checked<CheckedEvent> {
  const eventId = input.eventId ?? uuidV7();
  const sent: UsageEventInput = { ...input, eventId, timestamp: input.timestamp ?? new Date(now).toISOString() };
  const read = parseUsageEvent(sent, now);
  return read.ok ? { ok: true, value: { sent, read: read.value } } : read;
}
