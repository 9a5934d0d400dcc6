/** The months that have events, and dropping those of one. */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';

/** A partition of usage_events. */
export interface EventMonth {
  readonly startTime: EpochMs;
  readonly endTime: EpochMs;
  /** Unmerged duplicates count. */
  readonly rows: number;
}

const MONTHS: Statement = {
  name: 'read_event_months',
  query: `
SELECT _partition_id AS partition, count() AS rows
FROM usage_events
GROUP BY partition
ORDER BY partition`,
  query_params: {},
};

const monthRow = z.object({ partition: z.string().regex(/^\d{6}$/), rows: z.coerce.number() });

/** Ascending. */
export async function readEventMonths(warehouse: Warehouse): Promise<EventMonth[]> {
  const months = await warehouse.read(MONTHS, monthRow);
  return months.map(({ partition, rows }) => {
    const [year, month] = [Number(partition.slice(0, 4)), Number(partition.slice(4)) - 1];
    return { startTime: Date.UTC(year, month), endTime: Date.UTC(year, month + 1), rows };
  });
}

/**
 * Drops all events of a month at one instant: a statement sees all of them or none. Resolves when they are gone from every
 * replica; ClickHouse removes the files some minutes later. Whether they may be dropped is its caller's to know.
 */
export async function dropEvents(warehouse: Warehouse, { startTime }: EventMonth): Promise<void> {
  await warehouse.run({
    name: 'drop_event_month',
    query: 'ALTER TABLE usage_events DROP PARTITION ID {partition: String}',
    query_params: { partition: new Date(startTime).toISOString().slice(0, 'YYYY-MM'.length).replace('-', '') },
    // A month may be larger than what the server lets people drop by mistake, 50 GB by default.
    settings: { alter_sync: '2', max_partition_size_to_drop: '0' },
  });
}
