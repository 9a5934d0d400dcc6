/**
 * How far back events are kept. Cells are kept for ever; the events of a month may be dropped once its cells are final.
 *
 * Why every event either counts once in the cells that stay, or is kept as refused:
 *
 * - A worker refuses events before the `closedBefore` that it knows, however old that knowledge is. It stores the others, and
 *   *then* reads `droppingBefore`. Those before it are refused as well; the others count, as always. Only then does it
 *   acknowledge.
 * - Who drops a month publishes `droppingBefore`, then compares its cells with its events, then makes the cells final, then
 *   publishes `droppedBefore`, then drops the events.
 *
 * Take an event of a dropped month that was acknowledged as accepted. Its worker had read a `droppingBefore` that was not
 * after it, and had stored it before that. So it was stored before the bound was published, and the comparison, which came
 * later, has seen it: the cell held it when it was made final. Any other event of that month was stored after the bound was
 * published or not at all, so its worker has read the bound and has kept it as refused. It may count all the same, if it was
 * there in time for the comparison, or if it is an event that was accepted before and is sent again; its refusal says so.
 *
 * Why nothing changes a final cell. Its version is higher than any that is computed from events, so a recomputation of
 * a worker, sealer or operator that was frozen long ago never replaces it, from however few events. Making it final again
 * starts from the cell as it is, and changes nothing.
 *
 * Why no answer lacks what was dropped. A question reads `droppedBefore` first and has everything before it from cells. If the
 * bound has risen when the answer is there, the question is asked again: see `whileEventsLast` in services/query.
 *
 * A crash of who drops leaves, before `droppingBefore`, nothing; before `droppedBefore`, months of which events are refused,
 * whose cells may be final and whose events are all there; after it, events that nobody reads. Doing it again does the rest.
 */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { insertRows } from '../clickhouse/insert.js';

/** Starts of months in UTC, each at most as late as the one before it; 1970 where nothing was closed. */
export interface RetentionBounds {
  /** Events before are refused. An operator may lower it again, down to `droppingBefore`. */
  readonly closedBefore: EpochMs;
  /** Cells before are being made final: an event that is stored there now may come too late for them. Only rises. */
  readonly droppingBefore: EpochMs;
  /** Cells before are final, and the events may be gone: nobody may read them. Only rises. */
  readonly droppedBefore: EpochMs;
}

const BOUNDS = ['closed', 'dropping', 'dropped'] as const;
type Bound = (typeof BOUNDS)[number];

/** @param shard through the table that leads to all shards, which alone has the column; undefined: all rows */
function boundsStatement(shard: number | undefined): Statement {
  return {
    name: 'read_retention_bounds',
    query: `
SELECT
  bound,
  toUnixTimestamp(if(bound = 'closed', argMax(before, set_at), max(before))) AS second
FROM retention_bounds
WHERE ${shard === undefined ? 'true' : 'shard = {shard: UInt32}'}
GROUP BY bound`,
    query_params: shard === undefined ? {} : { shard },
    isShort: true,
  };
}

const boundRow = z.object({ bound: z.enum(BOUNDS), second: z.number() });

/**
 * Each shard has its own.
 * @param shard its number, for a warehouse of all shards of a cluster; undefined for one server or a shard's own warehouse
 */
export async function readRetentionBounds(warehouse: Warehouse, shard?: number): Promise<RetentionBounds> {
  const rows = await warehouse.read(boundsStatement(shard), boundRow);
  const of = (bound: Bound) => (rows.find((row) => row.bound === bound)?.second ?? 0) * 1000;
  const droppedBefore = of('dropped');
  const droppingBefore = Math.max(of('dropping'), droppedBefore);
  return { closedBefore: Math.max(of('closed'), droppingBefore), droppingBefore, droppedBefore };
}

/** Durable when the promise resolves. `closed` may also fall; the others stay where they are higher already. */
export async function setRetentionBound(warehouse: Warehouse, bound: Bound, before: EpochMs): Promise<void> {
  await insertRows(warehouse, 'retention_bounds', [{ bound, before: before / 1000 }], `set_${bound}_before`);
}
