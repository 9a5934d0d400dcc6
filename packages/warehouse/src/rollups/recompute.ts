/**
 * Recomputing cells from what they are derived from: hours from the deduplicated events, days from hours. Computing one
 * again, late, twice or at the same time as someone else does no harm: the row with the higher version is the later
 * snapshot, and it is the one that readers see. Source: DESIGN section 4.
 */
import type { Relation, Warehouse } from '../clickhouse/connection.js';
import { CELL_ARRAYS, CELL_TABLE, type Grain } from './cells.js';
import { type CellSelection, SOURCES, selectCells } from './sources.js';

/** In the order of {@link cellsStatement}. */
export const CELL_COLUMNS = [
  'account_id',
  'bucket',
  'version',
  ...Object.entries(CELL_ARRAYS).flatMap(([arrays, dimensions]) =>
    [...dimensions, 'usage', 'cost', 'events'].map((column) => `\`${arrays}.${column}\``),
  ),
];

/**
 * The highest bit, of the version of a final cell. Versions that are computed from events do not reach it below 2^31 events in
 * a cell. A sum of hours' versions may have lost it, and is right in the other bits.
 */
export const FINAL_VERSION = 'bitShiftLeft(toUInt128(1), 127)';

/** A final cell replaces every other one: see retention/bounds.ts. */
export type Finality = 'replaceable' | 'final';

/**
 * The cells as they should be: a row of CELL_COLUMNS for each. Summary and detail come from one read of the source. Entries are
 * sorted because they then compress better. As texts they are compared in a seventh of the time that tuples take; names hold no
 * control characters, so the order is that of the tuples.
 */
function cellsStatement(grain: Grain, selection: CellSelection, finality: Finality): Relation {
  const { condition, query_params } = selectCells(grain, selection);
  const version = finality === 'final' ? `bitOr(sum(group_version), ${FINAL_VERSION})` : 'sum(group_version)';
  const spread = (column: string) => `groupArrayArray(arrayWithConstant(length(groups), ${column}))`;
  return {
    query: `
SELECT
  account_id,
  bucket,
  ${version} AS version,
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
    arraySort(entry -> concat(entry.1, char(0), entry.2), groupArrayIf(
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
 * takes processors from queries. Measured: docs/performance.md. Nobody waits for these statements, so inserts and
 * questions go first.
 */
export const CELL_SETTINGS = 'SETTINGS max_threads = 1, os_threads_nice_value_query = 10';

/**
 * A statement of fewer rows that meets a limit of the server is not at fault: with the longest names that many take a few
 * megabytes.
 */
export const LARGE_CELL_ROWS = 1_000;

/** Resolves when the recomputed cells are durable. */
export async function recomputeCells(
  warehouse: Warehouse,
  grain: Grain,
  selection: CellSelection,
  finality: Finality = 'replaceable',
): Promise<void> {
  const { query, query_params } = cellsStatement(grain, selection, finality);
  await warehouse.run({
    name: `recompute_${CELL_TABLE[grain]}`,
    query: `INSERT INTO ${CELL_TABLE[grain]} (${CELL_COLUMNS.join(', ')})${query}\n${CELL_SETTINGS}`,
    query_params,
  });
}
