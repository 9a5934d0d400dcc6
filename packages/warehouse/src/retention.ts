/**
 * How far back events are kept. Rollup rows are kept for ever; the events of a month may be dropped once its rollup rows are
 * final.
 *
 * Why every event either counts once in the rollup rows that stay, or is kept as rejected:
 *
 * - A worker rejects events before the `closedBefore` that it knows, however old that knowledge is. It stores the others, and
 *   *then* reads `droppingBefore`. Those before it are rejected as well; the others count, as always. Only then does it
 *   acknowledge.
 * - Who drops a month publishes `droppingBefore`, then compares its rollup rows with its events, then makes the rollup rows
 *   final, then publishes `droppedBefore`, then drops the events.
 *
 * Take an event of a dropped month that was acknowledged as accepted. Its worker had read a `droppingBefore` that was not
 * after it, and had stored it before that. So it was stored before the bound was published, and the comparison, which came
 * later, has seen it: the rollup row held it when it was made final. Any other event of that month was stored after the bound was
 * published or not at all, so its worker has read the bound and has kept it as rejected. It may count all the same, if it was
 * there in time for the comparison, or if it is an event that was accepted before and is sent again; its rejection says so.
 *
 * Why nothing changes a final rollup row. Its version is higher than any that is computed from events, so a recomputation of
 * a worker, sealer or operator that was frozen long ago never replaces it, from however few events. Making it final again
 * starts from the rollup row as it is, and changes nothing.
 *
 * Why no result lacks what was dropped. A query reads `droppedBefore` first and has everything before it from rollup rows.
 * If the bound has risen when the result is there, the query is made again: see `whileEventsLast` in services/query.
 *
 * A crash of who drops leaves, before `droppingBefore`, nothing; before `droppedBefore`, months of which events are rejected,
 * whose rollup rows may be final and whose events are all there; after it, events that nobody reads. Doing it again does the
 * rest.
 */
import type { EpochMs, Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Bound } from './bounds.js';
import { insertRows, onEachShard, type Statement, type Warehouse } from './clickhouse/connection.js';
import { ForeignResponse } from './clickhouse/errors.js';
import { FINAL_VERSION, ROLLUP_COLUMNS, ROLLUP_SETTINGS, recomputeRollups } from './rollups/recompute.js';
import { ROLLUP_TABLE } from './rollups/rollup-rows.js';
import { readSlices } from './rollups/sources.js';

/** On every shard; durable when the promise resolves. `closed` may also fall; the others stay where they are higher already. */
export async function setRetentionBound(shards: readonly Warehouse[], bound: Bound, before: EpochMs): Promise<void> {
  const row = { bound, before: before / 1000 };
  await onEachShard(shards, (shard) => insertRows(shard, 'retention_bounds', [row], `set_${bound}_before`));
}

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
 * @param day the window of the day. Resolves when the rollup rows are durable; doing it again changes nothing.
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
