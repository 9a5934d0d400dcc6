/** For tests: stores events as an ingest process does, also late ones. */
import {
  EventRows,
  insertUsageEvents,
  markStaleHours,
  Names,
  type PricedEvent,
  repairNext,
  type Warehouse,
} from '@meterline/warehouse';
import { select } from './stack.js';

/** The process that marks what is late, unless another is named. */
export const WRITER = '0190c5e4-0000-7000-8000-000000000001';

/** Resolves when the events may be acknowledged. */
export async function storeEvents(
  warehouse: Warehouse,
  events: readonly PricedEvent[],
  writer = WRITER,
): Promise<void> {
  await insertUsageEvents(warehouse, events);
  await markStaleHours(warehouse, writer, [EventRows.of(events, new Names())]);
}

/** The processes with marks that are open, in order. */
export async function openWriters(warehouse: Warehouse): Promise<string[]> {
  const open = `SELECT any(writer) AS id FROM stale_hours GROUP BY account_id, mark_id HAVING min(sign) > 0`;
  const rows = await select<{ id: string }>(warehouse, `SELECT DISTINCT id FROM (${open}) ORDER BY id`);
  return rows.map(({ id }) => id);
}

/** Repairs all that this process has marked. */
export async function repairAll(warehouse: Warehouse, writer = WRITER): Promise<void> {
  while ((await repairNext(warehouse, writer)).marks > 0);
}
