/** Answers that are kept, so that their pages are slices of one ranking. Source: DESIGN section 6, "Paging". */
import { type GroupByDimension, ZERO } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { decimal, groupRow, type MetricsAnswer, type MetricsTotals, toGroups } from './read.js';
import { type MetricsQuestion, rankedGroups, selectList } from './statement.js';

export interface StoredResult {
  readonly caller: string;
  readonly resultId: string;
}

/** Ranks all groups that answer the question and keeps them for a day; none of them when they are more than `most`. */
export async function storeMetrics(
  warehouse: Warehouse,
  { caller, resultId }: StoredResult,
  question: MetricsQuestion,
  most: number,
): Promise<void> {
  const { name, query, query_params } = storeMetricsStatement(question);
  await warehouse.run({ name, query, query_params: { ...query_params, caller, result_id: resultId, most } });
}

export function storeMetricsStatement(question: MetricsQuestion): Statement {
  const { columns, from, order, query_params } = rankedGroups(question);
  const { series, ...described } = columns;
  const others = { ...described, total_cost: 'sum(cost) OVER ()', total_usage: 'sum(usage) OVER ()' };
  return {
    name: 'store_metrics',
    query: `
INSERT INTO metrics_results (caller, result_id, account_id, rank, ${Object.keys(others).join(', ')}, cost_series, usage_series)
SELECT
  {caller: String},
  {result_id: UUID},
  {account_id: String},
  toUInt32(row_number() OVER (ORDER BY ${order})),
  ${selectList(others)},
  ((${series} AS series).1, series.2),
  (series.1, series.3)${from}
QUALIFY total_groups <= {most: UInt64}`,
    query_params,
  };
}

export interface StoredMetrics extends MetricsAnswer {
  readonly totals: MetricsTotals;
}

/**
 * The groups that rank after number `after`, at most `limit` of them; none when the result is no longer kept, not even
 * when some of them still are: a server that lost its power may have lost a part of what it had not written yet.
 */
export async function readStoredMetrics(
  warehouse: Warehouse,
  { caller, resultId }: StoredResult,
  page: { readonly after: number; readonly limit: number; readonly groupBy: readonly GroupByDimension[] },
): Promise<StoredMetrics> {
  const statement = {
    name: 'read_stored_metrics',
    query: STORED_METRICS,
    query_params: { caller, result_id: resultId, after: page.after, last: page.after + page.limit },
  };
  const rows = await warehouse.read(statement, storedRow);
  const [first] = rows;
  if (!first || rows.length !== Math.min(page.limit, first.total_groups - page.after)) return NOTHING_STORED;
  return {
    groups: toGroups(rows, page.groupBy),
    totals: { cost: first.total_cost, usage: first.total_usage },
    totalGroups: first.total_groups,
  };
}

const storedRow = groupRow.extend({ total_cost: decimal, total_usage: decimal });
const NOTHING_STORED: StoredMetrics = { groups: [], totals: { cost: ZERO, usage: ZERO }, totalGroups: 0 };

/** An earlier version stored costs for fewer buckets than usages; those that are missing are zero. */
export const STORED_METRICS = `
SELECT
  values,
  cost,
  usage,
  (usage_series.1,
   arrayMap(bucket -> cost_series.2[indexOf(cost_series.1, bucket)], usage_series.1),
   usage_series.2) AS series,
  total_cost,
  total_usage,
  total_groups
FROM metrics_results
WHERE caller = {caller: String} AND result_id = {result_id: UUID} AND rank > {after: UInt32} AND rank <= {last: UInt32}
ORDER BY rank`;

/** How many groups of this caller's answers were stored in the last 24 hours. */
export async function countStoredGroups(warehouse: Warehouse, caller: string): Promise<number> {
  const statement = { name: 'count_stored_groups', query: STORED_GROUPS, query_params: { caller } };
  const [row] = await warehouse.read(statement, z.object({ stored_groups: z.number() }));
  return row?.stored_groups ?? 0;
}

const STORED_GROUPS = `
SELECT toUInt32(count()) AS stored_groups
FROM metrics_results
WHERE caller = {caller: String} AND created_at > now() - INTERVAL 24 HOUR`;
