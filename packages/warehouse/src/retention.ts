/**
 * Drops old events to save space. Rollup rows (the sums per account and hour or day) are kept forever. The events of a month may be dropped
 * once the month's rollup rows are final, which means that they are never computed from events again.
 *
 * Claim 1: every event either counts exactly once in the rollup rows that stay, or is stored as rejected. The protocol:
 *
 * - A worker rejects events before the `closedBefore` that it last read, even if the bound has moved since. It stores the other events, and
 *   *then* reads `droppingBefore`. It also rejects stored events before that bound; the other events count as always. Only then does the
 *   worker acknowledge the job.
 * - The dropping process publishes `droppingBefore`, compares the month's rollup rows with its events, makes the rollup rows final,
 *   publishes `droppedBefore`, and then drops the events.
 *
 * Proof: take an event of a dropped month that was acknowledged as accepted. The event's worker read a `droppingBefore` that was not later
 * than the event, and had stored the event before that read. So the event was stored before the bound was published. The comparison came
 * later and saw the event, so the rollup row contained the event when the row was made final. Every other event of that month was stored
 * after the bound was published, or was not stored. So its worker read the bound, and stored the event as rejected. Such a rejected event
 * may still count, either because it was stored in time for the comparison or because it repeats an event that was accepted before. The
 * message of the rejection says that it may count.
 *
 * Claim 2: nothing changes a final rollup row. Its version is higher than any version computed from events. So a worker, sealer or operator
 * that was suspended for long and recomputes the row from fewer events never replaces it. Making a final row final again copies the row
 * unchanged.
 *
 * Claim 3: no result lacks dropped events. A query first reads `droppedBefore`, and reads everything before that bound from rollup rows. If
 * the bound has risen by the time the result is there, the query runs again: see `retryIfEventsDropped` in services/query.
 *
 * A crash of the dropping process before it publishes `droppingBefore` leaves nothing behind. A crash before it publishes `droppedBefore`
 * leaves months whose new events are rejected, whose rollup rows may be final, and whose events are all there. A later crash leaves events
 * that nothing reads. Running the process again completes the rest.
 */
import type { EpochMs, Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Bound } from './bounds.js';
import { insertRows, onEachShard, type Statement, type Warehouse } from './clickhouse/connection.js';
import { ForeignResponseError } from './clickhouse/errors.js';
import { FINAL_VERSION, ROLLUP_COLUMNS, ROLLUP_SETTINGS, recomputeRollups } from './rollups/recompute.js';
import { ROLLUP_TABLE } from './rollups/rollup-rows.js';
import { readSlices } from './rollups/sources.js';

/** Sets a bound on every shard. The bound is durable when the promise resolves. Of the three bounds, only `closed` may be lowered again. */
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

export async function readEventMonths(warehouse: Warehouse): Promise<EventMonth[]> {
  const months = await warehouse.read(MONTHS, monthRow);
  return months.map(({ partition, rows }) => {
    const [year, month] = [Number(partition.slice(0, 4)), Number(partition.slice(4)) - 1];
    return { startTime: Date.UTC(year, month), endTime: Date.UTC(year, month + 1), rows };
  });
}

/** Approximate maximum number of entries of hourly rollup rows that one statement adds up to daily rows. */
const SLICE_ROWS = 250_000;

/**
 * Makes one day's rollup rows final: the hourly rows as they are, then the daily rows, computed from the hourly rows. The rows are durable
 * when the promise resolves. Running this function again changes nothing.
 */
export async function makeDayFinal(warehouse: Warehouse, { startTime: from, endTime: to }: Window): Promise<void> {
  await makeHoursFinal(warehouse, from, to);
  for (const slice of await readSlices(warehouse, 'daily', { from, to, sliceRows: SLICE_ROWS })) {
    await recomputeRollups(warehouse, 'daily', slice, 'final');
  }
}

/** Copies the rows with a final version, because a version cannot be changed in place. A later merge in ClickHouse drops the original rows. */
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
    throw new ForeignResponseError(`${written} rows of ${table} were made final, of ${present?.hours}`);
  }
}

/**
 * Drops the events of a month atomically: a statement sees all of them or none. Resolves when they are gone from every replica; ClickHouse
 * removes the files some minutes later. The caller must ensure that the month may be dropped.
 */
export async function dropEvents(warehouse: Warehouse, { startTime }: EventMonth): Promise<void> {
  await warehouse.run({
    name: 'drop_event_month',
    query: 'ALTER TABLE usage_events DROP PARTITION ID {partition: String}',
    query_params: { partition: new Date(startTime).toISOString().slice(0, 'YYYY-MM'.length).replace('-', '') },
    // A month may exceed the size that ClickHouse protects from accidental drops, 50 GB by default.
    settings: { alter_sync: '2', max_partition_size_to_drop: '0' },
  });
}
