/**
 * What the short ways of events that are as producers write them have in common: in the ingest worker (docs/decisions/0031) and in the
 * collector. Each says yes, or leaves an event to `parseUsageEvent`; both are held to its verdict by property tests.
 */
import { MAX_REVISION, type UsageEventField } from './event-schema.js';

const REQUIRED_FIELDS = 8;

/** @param event whose required fields are there. JSON has no undefined, so an optional field is there when it has a value. */
export function hasMoreFields(event: Partial<Record<UsageEventField, unknown>>): boolean {
  let fields = REQUIRED_FIELDS;
  if (event.resourceUuid !== undefined) fields += 1;
  if (event.revision !== undefined) fields += 1;
  if (event.void !== undefined) fields += 1;
  for (const _ in event) fields -= 1;
  return fields !== 0;
}

export function isRevision(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_REVISION && Number.isInteger(value);
}
