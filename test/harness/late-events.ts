/** For tests: stores events as an ingest process does, also late ones. */
import {
  EventRows,
  insertUsageEvents,
  markDirtyHours,
  Names,
  type PricedEvent,
  recomputeDirtyHours,
  type Warehouse,
} from '@meterline/warehouse';

/** Resolves when the events may be acknowledged. */
export async function storeEvents(warehouse: Warehouse, events: readonly PricedEvent[]): Promise<void> {
  await insertUsageEvents(warehouse, events);
  await markDirtyHours(warehouse, [EventRows.of(events, new Names())]);
}

/** Recomputes all dirty hours of a shard that are due. */
export async function recomputeAll(shard: Warehouse): Promise<void> {
  while ((await recomputeDirtyHours(shard)).marks > 0);
}
