/** Turns what a caller records into an event: it gets its id and its time now, and keeps both however often it is sent. */
import {
  type Checked,
  type EpochMs,
  isEventField,
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
  const sent = completeEvent(input, now);
  // The copy has no unknown field; its original may have.
  const hasOthers = !Object.keys(input).every(isEventField);
  const read = parseUsageEvent(hasOthers ? { ...input, ...sent } : sent, now);
  return read.ok ? { ok: true, value: { sent, read: read.value } } : read;
}

/** JSON leaves out the fields that are undefined. */
function completeEvent(input: EventToRecord, now: EpochMs): UsageEventInput {
  return {
    eventId: input.eventId ?? uuidV7(),
    accountId: input.accountId,
    workspace: input.workspace,
    resourceType: input.resourceType,
    resourceName: input.resourceName,
    resourceUuid: input.resourceUuid,
    billingDimension: input.billingDimension,
    usage: input.usage,
    timestamp: input.timestamp ?? new Date(now).toISOString(),
    revision: input.revision,
    void: input.void,
  };
}
