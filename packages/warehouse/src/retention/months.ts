/** The months that have events, making their rollup rows final, and dropping the events of one. Why that is safe: bounds.ts. */
import type { EpochMs, Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { FINAL_VERSION, ROLLUP_COLUMNS, ROLLUP_SETTINGS, recomputeRollups } from '../rollups/recompute.js';
import { ROLLUP_TABLE } from '../rollups/rollup-rows.js';
import { readSlices } from '../rollups/sizes.js';

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

/** About how many groups of hours one statement makes days of. */
const SLICE_ROWS = 250_000;

/**
 * Makes the rollup rows of a day of every account final: its hours as they are, then the day, computed from them.
 * @param day its start. Resolves when the rollup rows are durable; doing it again changes nothing.
 */
export async function makeDayFinal(warehouse: Warehouse, { startTime: from, endTime: to }: Window): Promise<void> {
  await makeHoursFinal(warehouse, from, to);
  for (const slice of await readSlices(warehouse, 'daily', { from, to, sliceRows: SLICE_ROWS })) {
    await recomputeRollups(warehouse, 'daily', slice, 'final');
  }
}

/** Copies, because a version cannot be changed in place. A merge drops the rollup rows that were copied. */
async function makeHoursFinal(warehouse: Warehouse, from: EpochMs, to: EpochMs): Promise<void> {
  const table = ROLLUP_TABLE.hourly;
  const copied = ROLLUP_COLUMNS.map((column) =>
    column === 'version' ? `bitOr(${table}.version, ${FINAL_VERSION})` : column,
  );
  await warehouse.run({
    name: 'make_hours_final',
    query: `
INSERT INTO ${table} (${ROLLUP_COLUMNS.join(', ')})
SELECT ${copied.join(', ')}
FROM ${table} FINAL
WHERE bucket >= toDateTime({from: UInt32}, 'UTC') AND bucket < toDateTime({to: UInt32}, 'UTC')
  AND ${table}.version < ${FINAL_VERSION}
${ROLLUP_SETTINGS}`,
    query_params: { from: from / 1000, to: to / 1000 },
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
