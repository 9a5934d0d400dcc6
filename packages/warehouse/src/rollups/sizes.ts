/** How much there is to read for rollup rows, so that no statement takes too long or too much memory. */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { GRAIN_MS, type Grain } from './rollup-rows.js';
import { type RollupSelection, type Slice, SOURCES, selectHours, selectRollups } from './sources.js';

const sourceRows = z
  .object({ accountId: z.string(), started: z.number(), rows: z.coerce.number() })
  .transform(({ started, ...row }) => ({ ...row, bucket: started * 1000 }));

/** A rollup row and how many rows it is computed from, unmerged duplicates included. */
type SourceRows = z.output<typeof sourceRows>;

/** @returns those of the selection that have any */
export async function readSourceRows(
  warehouse: Warehouse,
  grain: Grain,
  selection: RollupSelection,
): Promise<SourceRows[]> {
  return warehouse.read(sourceRowsStatement(grain, selection), sourceRows);
}

function sourceRowsStatement(grain: Grain, selection: RollupSelection): Statement {
  const { table, bucket, rows } = SOURCES[grain];
  const { condition, query_params } = selectRollups(grain, selection);
  return {
    name: 'read_source_rows',
    query: `
SELECT
  account_id AS accountId,
  toUnixTimestamp(${bucket}) AS started,
  ${rows} AS rows
FROM ${table}
WHERE ${condition}
GROUP BY account_id, started`,
    query_params,
  };
}

const stepRow = z.object({ last_bucket: z.number() });

/**
 * The end of a step that begins at `from` and reads about so many rows, the bucket included in which it reaches them; the
 * limit when there are fewer. Buckets that hold nothing cost nothing.
 */
export async function readStepEnd(
  warehouse: Warehouse,
  grain: Grain,
  { from, limit, stepRows }: { readonly from: EpochMs; readonly limit: EpochMs; readonly stepRows: number },
): Promise<EpochMs> {
  const { table, bucket, rows } = SOURCES[grain];
  const { condition, query_params } = selectHours(grain, from, limit);
  const statement = {
    name: 'read_sealing_step',
    query: `
SELECT toUnixTimestamp(step_bucket) AS last_bucket
FROM
(
  SELECT
    ${bucket} AS step_bucket,
    sum(${rows}) OVER (ORDER BY step_bucket) AS rows_until
  FROM ${table}
  WHERE ${condition}
  GROUP BY step_bucket
)
WHERE rows_until >= {step_rows: UInt64}
ORDER BY step_bucket
LIMIT 1`,
    query_params: { ...query_params, step_rows: stepRows },
  };
  const [last] = await warehouse.read(statement, stepRow);
  return last ? last.last_bucket * 1000 + GRAIN_MS[grain] : limit;
}

/** A place in the order of rollup rows. */
const place = z
  .tuple([z.string(), z.number()])
  .transform(([accountId, started]) => [accountId, started * 1000] as const);

const slice = z.object({ first: place, last: place, rows: z.coerce.number() });

/** A slice and how many rows it is computed from, unmerged duplicates included. */
export interface SizedSlice extends Slice {
  readonly rows: number;
}

/**
 * All rollup rows of a step in slices of about so many rows each: fewer than twice as many. A rollup row is never
 * divided: one with so many rows or more is a slice of its own. Groups are never more than rows, so this bounds a statement's
 * memory, too.
 */
export async function readSlices(
  warehouse: Warehouse,
  grain: Grain,
  { from, to, sliceRows }: { readonly from: EpochMs; readonly to: EpochMs; readonly sliceRows: number },
): Promise<SizedSlice[]> {
  const { table, bucket, rows } = SOURCES[grain];
  const { condition, query_params } = selectHours(grain, from, to);
  const statement = {
    name: 'read_sealing_slices',
    query: `
SELECT
  min((account_id, toUnixTimestamp(rollup_bucket))) AS first,
  max((account_id, toUnixTimestamp(rollup_bucket))) AS last,
  sum(rollup_rows) AS rows
FROM
(
  SELECT
    account_id,
    ${bucket} AS rollup_bucket,
    ${rows} AS rollup_rows,
    intDiv(sum(rollup_rows) OVER (ORDER BY account_id, rollup_bucket) - rollup_rows, {slice_rows: UInt64}) AS slice
  FROM ${table}
  WHERE ${condition}
  GROUP BY account_id, rollup_bucket
)
GROUP BY slice, rollup_rows >= {slice_rows: UInt64}
ORDER BY first`,
    query_params: { ...query_params, slice_rows: sliceRows },
  };
  const slices = await warehouse.read(statement, slice);
  return slices.map((found) => ({ from, to, ...found }));
}
