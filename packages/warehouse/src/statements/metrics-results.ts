/** Answers that are kept, so that their pages are slices of one ranking. Source: DESIGN section 6, "Paging". */
import type { GroupByDimension } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../client.js';
import { execute, readRows, type Statement } from '../statement.js';
import {
  allGroups,
  GROUP_COLUMNS,
  type MetricsAnswer,
  type MetricsQuestion,
  metricsRow,
  rankOrder,
  toAnswer,
} from './metrics.js';

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
  await execute(warehouse, { name, query, query_params: { ...query_params, caller, result_id: resultId, most } });
}

export function storeMetricsStatement(question: MetricsQuestion): Statement {
  const { query, query_params } = allGroups(question);
  return {
    name: 'store_metrics',
    query: `
INSERT INTO metrics_results (caller, result_id, account_id, rank, ${GROUP_COLUMNS.join(', ')})
SELECT
  {caller: String},
  {result_id: UUID},
  {account_id: String},
  toUInt32(row_number() OVER (ORDER BY ${rankOrder(question)})),
  ${GROUP_COLUMNS.join(',\n  ')}
FROM
(${query}
)
WHERE total_groups <= {most: UInt64}`,
    query_params,
  };
}

/**
 * The groups that rank after number `after`, at most `limit` of them; none when the result is no longer kept, not even
 * when some of them still are: a server that lost its power may have lost a part of what it had not written yet.
 */
export async function readStoredMetrics(
  warehouse: Warehouse,
  { caller, resultId }: StoredResult,
  page: { readonly after: number; readonly limit: number; readonly groupBy: readonly GroupByDimension[] },
): Promise<MetricsAnswer> {
  const statement = {
    name: 'read_stored_metrics',
    query: STORED_METRICS,
    query_params: { caller, result_id: resultId, after: page.after, last: page.after + page.limit },
  };
  const rows = await readRows(warehouse, statement, metricsRow);
  const expected = Math.min(page.limit, (rows[0]?.total_groups ?? 0) - page.after);
  return toAnswer(rows.length === expected ? rows : [], page.groupBy);
}

export const STORED_METRICS = `
SELECT
  ${GROUP_COLUMNS.join(',\n  ')}
FROM metrics_results
WHERE caller = {caller: String} AND result_id = {result_id: UUID} AND rank > {after: UInt32} AND rank <= {last: UInt32}
ORDER BY rank`;

/** How many groups of this caller's answers were stored in the last 24 hours. */
export async function countStoredGroups(warehouse: Warehouse, caller: string): Promise<number> {
  const statement = { name: 'count_stored_groups', query: STORED_GROUPS, query_params: { caller } };
  const [row] = await readRows(warehouse, statement, z.object({ stored_groups: z.number() }));
  return row?.stored_groups ?? 0;
}

export const STORED_GROUPS = `
SELECT toUInt32(count()) AS stored_groups
FROM metrics_results
WHERE caller = {caller: String} AND created_at > now() - INTERVAL 24 HOUR`;
