/**
 * Recomputing cells from what they are derived from: hours from the deduplicated events, days from hours. Computing one
 * again, late, twice or at the same time as someone else does no harm: the row with the higher version is the later
 * snapshot, and it is the one that readers see. Source: DESIGN section 4.
 */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Relation, Statement, Warehouse } from '../clickhouse/connection.js';
import { Tuple } from '../clickhouse/warehouse.js';
import { CELL_ARRAYS, CELL_TABLE, type Cell, type Grain } from './cells.js';

/** The cells with from <= bucket < to, of one account or of all; or those named. */
export type CellSelection =
  | { readonly from: EpochMs; readonly to: EpochMs; readonly accountId?: string | undefined }
  | { readonly cells: readonly Cell[] };

const CELL_COLUMNS = [
  'account_id',
  'bucket',
  'version',
  ...Object.entries(CELL_ARRAYS).flatMap(([arrays, dimensions]) =>
    [...dimensions, 'usage', 'cost', 'events'].map((column) => `\`${arrays}.${column}\``),
  ),
];

interface Source {
  /** The column that its table is ordered by. */
  readonly hour: string;
  /** The bucket that a row of it belongs to. */
  readonly bucket: string;
  readonly table: string;
  /** How many rows of the relation a row of the table is, unmerged duplicates included. */
  readonly rows: string;
  readonly relation: (condition: string) => string;
}

/**
 * What a cell is computed from, a row for each event or for each group of an hour's cell. Voided events have no amounts
 * and no place in the arrays, but they have a version: without it a cell would not change when its event is voided.
 */
const SOURCES = {
  hourly: {
    hour: 'event_hour',
    bucket: 'event_hour',
    table: 'usage_events',
    rows: '1',
    relation: (condition: string) => `
        SELECT
          account_id,
          event_hour AS bucket,
          workspace,
          resource_type,
          resource_name,
          resource_uuid,
          billing_dimension,
          if(voided, 0, usage_events.usage) AS usage,
          if(voided, 0, usage_events.cost) AS cost,
          toUInt64(NOT voided) AS events,
          1 + row_version AS version
        FROM usage_events FINAL
        WHERE ${condition}`,
  },
  daily: {
    hour: 'usage_hourly.bucket',
    bucket: 'toStartOfDay(usage_hourly.bucket)',
    table: 'usage_hourly',
    rows: 'greatest(1, length(detail.events))',
    relation: (condition: string) => `
        SELECT
          account_id,
          toStartOfDay(usage_hourly.bucket) AS bucket,
          workspace,
          resource_type,
          resource_name,
          resource_uuid,
          billing_dimension,
          usage,
          cost,
          events,
          -- Once for an hour, and also for an hour of voided events alone, which has no groups
          if(position <= 1, usage_hourly.version, 0) AS version
        FROM usage_hourly FINAL
        LEFT ARRAY JOIN
          detail.workspace AS workspace,
          detail.resource_type AS resource_type,
          detail.resource_name AS resource_name,
          detail.resource_uuid AS resource_uuid,
          detail.billing_dimension AS billing_dimension,
          detail.usage AS usage,
          detail.cost AS cost,
          detail.events AS events,
          arrayEnumerate(detail.events) AS position
        WHERE ${condition}`,
  },
} as const satisfies Record<Grain, Source>;

/** The cells as they should be: a row of CELL_COLUMNS for each. Summary and detail come from one read of the source. */
function cellsStatement(grain: Grain, selection: CellSelection): Relation {
  const { condition, query_params } = selectCells(SOURCES[grain], selection);
  const spread = (column: string) => `groupArrayArray(arrayWithConstant(length(groups), ${column}))`;
  return {
    query: `
SELECT
  account_id,
  bucket,
  sum(group_version) AS version,
  groupArrayIf(workspace, group_events > 0),
  groupArrayIf(resource_type, group_events > 0),
  groupArrayIf(billing_dimension, group_events > 0),
  groupArrayIf(group_usage, group_events > 0),
  groupArrayIf(group_cost, group_events > 0),
  groupArrayIf(group_events, group_events > 0),
  ${spread('workspace')},
  ${spread('resource_type')},
  groupArrayArray(groups.1),
  groupArrayArray(groups.2),
  ${spread('billing_dimension')},
  groupArrayArray(groups.3),
  groupArrayArray(groups.4),
  groupArrayArray(groups.5)
FROM
(
  SELECT
    account_id,
    bucket,
    workspace,
    resource_type,
    billing_dimension,
    sum(detail_usage) AS group_usage,
    sum(detail_cost) AS group_cost,
    sum(detail_events) AS group_events,
    sum(detail_version) AS group_version,
    arraySort(groupArrayIf(
      (resource_name, resource_uuid, detail_usage, detail_cost, detail_events), detail_events > 0)) AS groups
  FROM
  (
    SELECT
      account_id,
      bucket,
      workspace,
      resource_type,
      resource_name,
      resource_uuid,
      billing_dimension,
      sum(usage) AS detail_usage,
      sum(cost) AS detail_cost,
      sum(events) AS detail_events,
      sum(version) AS detail_version
    FROM
    (${SOURCES[grain].relation(condition)}
    )
    GROUP BY account_id, bucket, workspace, resource_type, resource_name, resource_uuid, billing_dimension
  )
  GROUP BY account_id, bucket, workspace, resource_type, billing_dimension
)
GROUP BY account_id, bucket`,
    query_params,
  };
}

/**
 * Several threads would each build arrays of every cell and then put them together, which is more work than they save, and
 * takes processors from queries. Measured: docs/performance.md.
 */
const ONE_THREAD = 'SETTINGS max_threads = 1';

/** Resolves when the recomputed cells are durable. */
export async function recomputeCells(warehouse: Warehouse, grain: Grain, selection: CellSelection): Promise<void> {
  const { query, query_params } = cellsStatement(grain, selection);
  await warehouse.run({
    name: `recompute_${CELL_TABLE[grain]}`,
    query: `INSERT INTO ${CELL_TABLE[grain]} (${CELL_COLUMNS.join(', ')})${query}\n${ONE_THREAD}`,
    query_params,
  });
}

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
  const { condition, query_params } = selectCells(SOURCES[grain], { cells });
  return {
    name: 'read_cell_rows',
    query: `
SELECT
  account_id,
  toUnixTimestamp(${bucket}) AS started,
  sum(${rows}) AS cell_rows
FROM ${table}
WHERE ${condition}
GROUP BY account_id, started`,
    query_params,
  };
}

/**
 * The last bucket of a step that begins at `from` and reads about so many rows; no row when there are fewer up to the
 * limit. Buckets that hold nothing cost nothing.
 */
export function stepStatement(grain: Grain, from: EpochMs, limit: EpochMs, stepRows: number): Statement {
  const { table, bucket, rows } = SOURCES[grain];
  const { condition, query_params } = selectCells(SOURCES[grain], { from, to: limit });
  return {
    name: 'read_sealing_step',
    query: `
SELECT toUnixTimestamp(step_bucket) AS last_bucket
FROM
(
  SELECT
    ${bucket} AS step_bucket,
    sum(sum(${rows})) OVER (ORDER BY step_bucket) AS rows_until
  FROM ${table}
  WHERE ${condition}
  GROUP BY step_bucket
)
WHERE rows_until >= {step_rows: UInt64}
ORDER BY step_bucket
LIMIT 1`,
    query_params: { ...query_params, step_rows: stepRows },
  };
}

function selectCells(
  { hour, bucket }: Source,
  selection: CellSelection,
): { readonly condition: string; readonly query_params: Relation['query_params'] } {
  if ('cells' in selection) {
    return {
      condition: `(account_id, ${bucket}) IN {cells: Array(Tuple(String, DateTime('UTC')))}`,
      query_params: { cells: selection.cells.map((cell) => new Tuple([cell.accountId, dateTime(cell.bucket)])) },
    };
  }
  const { from, to, accountId } = selection;
  const ofAccount = accountId === undefined ? '' : 'account_id = {account_id: String} AND ';
  return {
    condition: `${ofAccount}${hour} >= toDateTime({from: UInt32}, 'UTC') AND ${hour} < toDateTime({to: UInt32}, 'UTC')`,
    query_params: { from: from / 1000, to: to / 1000, ...(accountId !== undefined && { account_id: accountId }) },
  };
}

/** As text of type DateTime: inside a tuple a parameter has no other form that holds for all of 1970. */
export function dateTime(instant: EpochMs): string {
  return new Date(instant).toISOString().slice(0, 'YYYY-MM-DDThh:mm:ss'.length).replace('T', ' ');
}
