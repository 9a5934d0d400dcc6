/**
 * Answers that are kept, so that their pages are slices of one ranking. Nothing is kept for a first page: an answer is
 * stored when its second page is asked for, and only if it is still, group by group, the answer that the first page was part
 * of. Source: DESIGN section 6, "Paging"; docs/decisions/0022.
 */
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { groupRow, type MetricsResult, toGroups } from './read.js';
import { type Grouping, type MetricsQuery, rankedGroups, selectList } from './statement.js';

export type StoredPage = Pick<MetricsResult, 'groups' | 'totals' | 'totalGroups'>;

export interface StoredResult {
  /** Whose it is: of a result about several accounts, a name that no account can have. */
  readonly owner: string;
  readonly resultId: string;
}

/**
 * Computes the answer and keeps all its groups for a day; none of them if its digest is another one. Storing the same answer
 * twice changes nothing.
 */
export async function storeMetrics(
  warehouse: Warehouse,
  { owner, resultId }: StoredResult,
  wanted: MetricsQuery,
  digest: string,
): Promise<void> {
  const { name, query, query_params } = storeMetricsStatement(wanted);
  await warehouse.run({ name, query, query_params: { ...query_params, owner, result_id: resultId, digest } });
}

export function storeMetricsStatement(wanted: MetricsQuery): Statement {
  const { columns, wholeAnswer, from, order, query_params } = rankedGroups(wanted);
  const { series, ...described } = columns;
  const { total_groups, total_cost, total_usage, digest } = wholeAnswer;
  const others = { ...described, total_groups, total_cost, total_usage };
  return {
    name: 'store_metrics',
    query: `
INSERT INTO result_pages (account_id, result_id, rank, ${Object.keys(others).join(', ')}, series)
SELECT
  {owner: String},
  {result_id: UUID},
  toUInt32(row_number() OVER (ORDER BY ${order})),
  ${selectList(others)},
  ${series}${from}
QUALIFY ${digest} = {digest: UInt64}`,
    query_params,
  };
}

/**
 * The groups that rank after number `after`, at most `limit` of them; undefined when the answer is not stored or no longer
 * kept, also when only some of its groups are: a server that lost its power may have lost what it had not written yet.
 */
export async function readStoredMetrics(
  warehouse: Warehouse,
  { owner, resultId }: StoredResult,
  page: Grouping & { readonly after: number; readonly limit: number },
): Promise<StoredPage | undefined> {
  const statement = {
    name: 'read_stored_metrics',
    query: STORED_METRICS,
    query_params: { owner, result_id: resultId, after: page.after, last: page.after + page.limit },
  };
  const rows = await warehouse.read(statement, groupRow);
  const [first] = rows;
  if (!first || rows.length !== Math.min(page.limit, first.total_groups - page.after)) return undefined;
  return {
    groups: toGroups(rows, page),
    totals: { cost: first.total_cost, usage: first.total_usage },
    totalGroups: first.total_groups,
  };
}

/** Two pages that were asked for at once may have stored the same answer twice. */
export const STORED_METRICS = `
SELECT values, cost, usage, series, total_cost, total_usage, total_groups
FROM result_pages
WHERE account_id = {owner: String} AND result_id = {result_id: UUID} AND rank > {after: UInt32} AND rank <= {last: UInt32}
ORDER BY rank
LIMIT 1 BY rank`;
