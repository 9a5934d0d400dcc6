/**
 * Drops old events. Rollup rows are kept forever; the events of a month may be dropped once its rollup rows are final.
 *
 * Why every event either counts exactly once in the rollup rows that stay, or is stored as rejected:
 *
 * - A worker rejects events before the `closedBefore` that it last read, even if the bound has moved since. It stores the other events, and
 *   *then* reads `droppingBefore`. It also rejects stored events before that bound; the rest count as always. Only then does it
 *   acknowledge.
 * - The dropping process publishes `droppingBefore`, then compares the month's rollup rows with its events, then makes the rollup rows
 *   final, then publishes `droppedBefore`, then drops the events.
 *
 * Take an event of a dropped month that was acknowledged as accepted. Its worker read a `droppingBefore` not later than the event, and had
 * stored the event before that read. So the event was stored before the bound was published, and the comparison, which came later, has seen
 * it: the rollup row contained the event when it was made final. Any other event of that month was stored after the bound was published, or
 * not at all, so its worker has read the bound and stored the event as rejected. Such an event may count all the same, if it was stored in
 * time for the comparison, or if it is a resent event that was accepted before; its rejection says so.
 *
 * Why nothing changes a final rollup row: its version is higher than any version computed from events. So even a worker, sealer or operator
 * that was suspended for long, and recomputes the row from fewer events, never replaces it. Making a final row final again copies it
 * unchanged.
 *
 * Why no result lacks dropped events: a query first reads `droppedBefore` and reads everything before it from rollup rows. If the bound has
 * risen by the time the result is there, the query runs again: see `whileEventsLast` in services/query.
 *
 * What a crash of the dropping process leaves behind: before `droppingBefore` is published, nothing. Before `droppedBefore` is published,
 * months whose new events are rejected, whose rollup rows may be final, and whose events are all there. After that, events that nothing
 * reads. Running it again completes the rest.
 */
import type { EpochMs, Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Bound } from './bounds.js';
import { insertRows, onEachShard, type Statement, type Warehouse } from './clickhouse/connection.js';
import { ForeignResponse } from './clickhouse/errors.js';
import { FINAL_VERSION, ROLLUP_COLUMNS, ROLLUP_SETTINGS, recomputeRollups } from './rollups/recompute.js';
import { ROLLUP_TABLE } from './rollups/rollup-rows.js';
import { readSlices } from './rollups/sources.js';

/** Sets a bound on every shard; durable when the promise resolves. `closed` may be lowered; the others only rise. */
export async function setRetentionBound(shards: readonly Warehouse[], bound: Bound, before: EpochMs): Promise<void> {
  const row = { bound, before: before / 1000 };
  await onEachShard(shards, (shard) => insertRows(shard, 'retention_bounds', [row], `set_${bound}_before`));
}

export interface EventMonth {
  readonly startTime: EpochMs;
  readonly endTime: EpochMs;
  /** Includes unmerged duplicates. */
  readonly rows: number;
}

const MONTHS: Statement = {
  name: 'read_event_months',
  query: `
SELECT _partition_id AS partition, count() AS rows
FROM usage_events
GROUP BY partition
ORDER BY partition`,
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

/** Approximate number of hourly groups that one statement combines into days. */
const SLICE_ROWS = 250_000;

/**
 * Makes the rollup rows of one day final, for every account: the hours as they are, then the day, computed from the hours. The rollup rows
 * are durable when the promise resolves. Running it again changes nothing.
 * @param day the window of the day
 */
export async function makeDayFinal(warehouse: Warehouse, { startTime: from, endTime: to }: Window): Promise<void> {
  await makeHoursFinal(warehouse, from, to);
  for (const slice of await readSlices(warehouse, 'daily', { from, to, sliceRows: SLICE_ROWS })) {
    await recomputeRollups(warehouse, 'daily', slice, 'final');
  }
}

/** Copies the rows with final versions, because a version cannot be changed in place. A merge drops the original rows. */
async function makeHoursFinal(warehouse: Warehouse, from: EpochMs, to: EpochMs): Promise<void> {
  const table = ROLLUP_TABLE.hourly;
  const copied = ROLLUP_COLUMNS.map((column) =>
    column === 'version' ? `bitOr(${table}.version, ${FINAL_VERSION})` : column,
  );
  const replaceable = `
FROM ${table} FINAL
WHERE bucket >= toDateTime({from: UInt32}, 'UTC') AND bucket < toDateTime({to: UInt32}, 'UTC')
  AND ${table}.version < ${FINAL_VERSION}`;
  const query_params = { from: from / 1000, to: to / 1000 };
  const count = { name: 'count_hours', query: `SELECT count() AS hours${replaceable}`, query_params };
  const [present] = await warehouse.read(count, z.object({ hours: z.coerce.number() }));
  const written = await warehouse.run({
    name: 'make_hours_final',
    query: `
INSERT INTO ${table} (${ROLLUP_COLUMNS.join(', ')})
SELECT ${copied.join(', ')}${replaceable}
${ROLLUP_SETTINGS}`,
    query_params,
  });
  if (!present || (written !== undefined && written < present.hours)) {
    throw new ForeignResponse(`${written} rows of ${table} were made final, of ${present?.hours}`);
  }
}

/**
 * Drops all events of a month atomically: a statement sees all of them or none. Resolves when they are gone from every replica; ClickHouse
 * removes the files some minutes later. The caller must ensure that the month may be dropped.
 */
export async function dropEvents(warehouse: Warehouse, { startTime }: EventMonth): Promise<void> {
  await warehouse.run({
    name: 'drop_event_month',
    query: 'ALTER TABLE usage_events DROP PARTITION ID {partition: String}',
    query_params: { partition: new Date(startTime).toISOString().slice(0, 'YYYY-MM'.length).replace('-', '') },
    // A month may exceed the server's protection against accidental drops, 50 GB by default.
    settings: { alter_sync: '2', max_partition_size_to_drop: '0' },
  });
}
