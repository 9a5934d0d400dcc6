/**
 * Recomputes rollup rows: hourly rows from the deduplicated events, daily rows from hourly rows. Recomputing a row again, late, twice or
 * concurrently does no harm, because readers see the row with the highest version, which comes from the latest snapshot. Source:
 * docs/decisions/0006.
 */
import type { Warehouse } from '../clickhouse/connection.js';
import { ForeignResponseError, isStatementLimit } from '../clickhouse/errors.js';
import { inParts, listedBytes } from '../clickhouse/list-size.js';
import { allConflicts, type Conflicts, readConflicts } from './conflicts.js';
import { type Grain, ROLLUP_ARRAYS, ROLLUP_TABLE, type RollupKey } from './rollup-rows.js';
import { type RollupSelection, readSourceRows, SOURCES, selectRollups } from './sources.js';

/** In the same order as the columns of {@link rollupsSelect}. */
export const ROLLUP_COLUMNS = [
  'account_id',
  'bucket',
  'version',
  ...Object.entries(ROLLUP_ARRAYS).flatMap(([arrays, dimensions]) =>
    [...dimensions, 'usage', 'cost', 'events'].map((column) => `\`${arrays}.${column}\``),
  ),
];

/**
 * SQL: the highest bit of a version, which marks a rollup row as final. Other versions reach this bit only with more than 2^31 events in
 * one row. Adding up the final versions of hours may overflow this bit, but leaves the other bits correct.
 */
export const FINAL_VERSION = 'bitShiftLeft(toUInt128(1), 127)';

/** A final rollup row replaces every other row with its key: see retention.ts. */
export type Finality = 'replaceable' | 'final';

/**
 * Computes rollup rows, with the columns of ROLLUP_COLUMNS. The source is read only once for both summary and detail. Entries are sorted,
 * because sorted entries compress better. They are sorted as strings, which takes a seventh of the time of sorting tuples. The order is the
 * same, because names contain no control characters.
 */
function rollupsSelect(grain: Grain, condition: string, finality: Finality): string {
  const version = finality === 'final' ? `bitOr(sum(group_version), ${FINAL_VERSION})` : 'sum(group_version)';
  const spread = (column: string) => `groupArrayArray(arrayWithConstant(length(groups), ${column}))`;
  return `
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
GROUP BY account_id, bucket`;
}

/**
 * Use one thread. Several threads would each build arrays for every rollup row and then merge them. This is more work than they save, and
 * takes processors from queries. Use low priority, so that inserts and queries go first, because no caller waits for these statements.
 */
export const ROLLUP_SETTINGS = 'SETTINGS max_threads = 1, os_threads_nice_value_query = 10';

/**
 * The rows are durable when the promise resolves.
 * @throws ForeignResponseError if ClickHouse reports that it wrote fewer rows than the selection has
 */
export async function recomputeRollups(
  warehouse: Warehouse,
  grain: Grain,
  selection: RollupSelection,
  finality: Finality = 'replaceable',
): Promise<void> {
  const { condition, query_params } = selectRollups(grain, selection);
  const written =
    (await warehouse.run({
      name: `recompute_${ROLLUP_TABLE[grain]}`,
      query: `INSERT INTO ${ROLLUP_TABLE[grain]} (${ROLLUP_COLUMNS.join(', ')})${rollupsSelect(grain, condition, finality)}\n${ROLLUP_SETTINGS}`,
      query_params,
    })) ?? Number.POSITIVE_INFINITY;
  if (written >= ('rollups' in selection ? selection.rollups.length : selection.rollupRows)) return;
  // Fewer rows are correct if an account was erased in the meantime, because rollup rows without source rows need not be written.
  const present = await readSourceRows(warehouse, grain, selection);
  if (written < present.length) {
    throw new ForeignResponseError(`recomputing wrote ${written} rows of ${present.length} to ${ROLLUP_TABLE[grain]}`);
  }
}

export interface StatementLimits {
  /** Approximate maximum number of rows that one statement reads. Each row takes a few hundred bytes of the server's memory. */
  readonly statementRows: number;
  /** A statement of this size that exceeds a limit is too large. If a smaller one does, the server is overloaded and may recover. */
  readonly largeRows: number;
}

/** A thousand source rows take a few megabytes of memory, even with the longest names. */
export const LARGE_ROWS = 1_000;

export async function readConflictsOfRollups(warehouse: Warehouse, hours: readonly RollupKey[]): Promise<Conflicts> {
  const found: Conflicts[] = [];
  for (const rollups of inParts(hours, ({ accountId }) => listedBytes(accountId))) {
    found.push(await readConflicts(warehouse, selectRollups('hourly', { rollups })));
  }
  return allConflicts(found);
}

/** Recomputes rollup rows in statements of bounded size. Returns the rollup rows that exceed the server's limits. */
export async function recomputeEach(
  warehouse: Warehouse,
  grain: Grain,
  rollups: readonly RollupKey[],
  { statementRows, largeRows }: StatementLimits,
): Promise<RollupKey[]> {
  const tooLarge: RollupKey[] = [];
  for (const named of inParts(rollups, ({ accountId }) => listedBytes(accountId))) {
    // A single rollup row cannot be split, even if it has many source rows.
    const parts = named.length === 1 ? [named] : inParts(named, await sizesOf(warehouse, grain, named), statementRows);
    for (const part of parts) tooLarge.push(...(await recomputePart(warehouse, grain, part, largeRows)));
  }
  return tooLarge;
}

/** Splits a part that exceeds the server's limits until the large row is alone. So a large row does not block other accounts. */
async function recomputePart(
  warehouse: Warehouse,
  grain: Grain,
  part: readonly RollupKey[],
  largeRows: number,
): Promise<readonly RollupKey[]> {
  try {
    await recomputeRollups(warehouse, grain, { rollups: part });
    return [];
  } catch (error) {
    if (!isStatementLimit(error)) throw error;
    const sizes = await readSourceRows(warehouse, grain, { rollups: part });
    if (sizes.reduce((sum, { rows }) => sum + rows, 0) < largeRows) throw error;
  }
  if (part.length === 1) return part;
  const [left, right] = [part.slice(0, part.length >> 1), part.slice(part.length >> 1)];
  return [
    ...(await recomputePart(warehouse, grain, left, largeRows)),
    ...(await recomputePart(warehouse, grain, right, largeRows)),
  ];
}

async function sizesOf(
  warehouse: Warehouse,
  grain: Grain,
  rollups: readonly RollupKey[],
): Promise<(rollup: RollupKey) => number> {
  const found = await readSourceRows(warehouse, grain, { rollups });
  const rows = new Map(found.map((rollup) => [keyOf(rollup), rollup.rows]));
  return (rollup) => rows.get(keyOf(rollup)) ?? 0;
}

export function keyOf({ accountId, bucket }: RollupKey): string {
  return `${bucket} ${accountId}`;
}
