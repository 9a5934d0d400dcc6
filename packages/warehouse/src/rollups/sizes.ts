/** How much there is to read for cells, so that no statement takes too long or too much memory. */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { type Cell, GRAIN_MS, type Grain } from './cells.js';
import { type CellKey, type Slice, SOURCES, selectCells, selectHours } from './sources.js';

/** A cell and how many rows it is computed from, unmerged duplicates included. */
export interface CellRows extends Cell {
  readonly rows: number;
}

const cellRow = z.object({ account_id: z.string(), started: z.number(), cell_rows: z.coerce.number() });

/** @returns those of the cells that have any */
export async function readCellRows(warehouse: Warehouse, grain: Grain, cells: readonly Cell[]): Promise<CellRows[]> {
  const rows = await warehouse.read(cellRowsStatement(grain, cells), cellRow);
  return rows.map((row) => ({ accountId: row.account_id, bucket: row.started * 1000, rows: row.cell_rows }));
}

function cellRowsStatement(grain: Grain, cells: readonly Cell[]): Statement {
  const { table, bucket, rows } = SOURCES[grain];
  const { condition, query_params } = selectCells(grain, { cells });
  return {
    name: 'read_cell_rows',
    query: `
SELECT
  account_id,
  toUnixTimestamp(${bucket}) AS started,
  ${rows} AS cell_rows
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

const sliceRow = z.object({
  first_account: z.string(),
  first_bucket: z.number(),
  last_account: z.string(),
  last_bucket: z.number(),
  rows_in_slice: z.coerce.number(),
});

/** A slice and how many rows it is computed from, unmerged duplicates included. */
export interface SizedSlice extends Slice {
  readonly rows: number;
}

interface Part {
  readonly from: EpochMs;
  readonly to: EpochMs;
  /** Of a slice, to be divided. */
  readonly first?: CellKey;
  readonly last?: CellKey;
  readonly sliceRows: number;
}

/**
 * All cells of a step, or of a slice, in slices of about so many rows each: fewer than twice as many. A cell is never
 * divided: one with so many rows or more is a slice of its own. Groups are never more than rows, so this bounds a statement's
 * memory, too.
 */
export async function readSlices(
  warehouse: Warehouse,
  grain: Grain,
  { from, to, first, last, sliceRows }: Part,
): Promise<SizedSlice[]> {
  const { table, bucket, rows } = SOURCES[grain];
  const { condition, query_params } =
    first && last ? selectCells(grain, { from, to, first, last }) : selectHours(grain, from, to);
  const statement = {
    name: 'read_sealing_slices',
    query: `
SELECT
  min((account_id, cell_bucket)) AS first_cell,
  max((account_id, cell_bucket)) AS last_cell,
  first_cell.1 AS first_account,
  toUnixTimestamp(first_cell.2) AS first_bucket,
  last_cell.1 AS last_account,
  toUnixTimestamp(last_cell.2) AS last_bucket,
  sum(cell_rows) AS rows_in_slice
FROM
(
  SELECT
    account_id,
    ${bucket} AS cell_bucket,
    ${rows} AS cell_rows,
    intDiv(sum(cell_rows) OVER (ORDER BY account_id, cell_bucket) - cell_rows, {slice_rows: UInt64}) AS slice
  FROM ${table}
  WHERE ${condition}
  GROUP BY account_id, cell_bucket
)
GROUP BY slice, cell_rows >= {slice_rows: UInt64}
ORDER BY first_cell`,
    query_params: { ...query_params, slice_rows: sliceRows },
  };
  const slices = await warehouse.read(statement, sliceRow);
  return slices.map(({ first_account, first_bucket, last_account, last_bucket, rows_in_slice }) => ({
    from,
    to,
    first: [first_account, first_bucket * 1000],
    last: [last_account, last_bucket * 1000],
    rows: rows_in_slice,
  }));
}
