/** Reads the usage and cost of accounts. Also stores results that have more than one page, so that later pages can be read. */
import {
  type DecimalText,
  dimensionOf,
  isDecimalText,
  type MetricsDimension,
  type ResourceType,
  resourceTypes,
  sumDecimals,
} from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import type { Selection } from './plan.js';
import {
  type Grouping,
  hasOnePage,
  type MetricsQuery,
  metricsStatement,
  NO_VALUE,
  rankedGroups,
  type SnapshotMark,
  selectList,
  shownDimensions,
} from './statement.js';

/** Cost and usage by time bucket. `buckets` has the bucket's index on the time axis. A bucket that is missing has zero cost and usage. */
interface SparseSeries {
  readonly buckets: readonly number[];
  readonly costs: readonly DecimalText[];
  readonly usages: readonly DecimalText[];
}

interface MetricsTotals {
  readonly cost: DecimalText;
  readonly usage: DecimalText;
}

export interface MetricsGroup extends MetricsTotals {
  /** Values of the groupBy dimensions, and of other shown dimensions, such as the workspace, if all usage of the group has the same value. */
  readonly values: Readonly<Partial<Record<MetricsDimension, string>>>;
  readonly series: SparseSeries;
}

export interface MetricsResult {
  /** The first groups by rank. The order is by cost descending, then by the values of the dimensions ascending, compared as bytes. */
  readonly groups: readonly MetricsGroup[];
  /** Includes the groups beyond the limit. */
  readonly totals: MetricsTotals;
  readonly totalGroups: number;
  readonly mark: SnapshotMark;
}

/** Without groupBy there is exactly one group, whose amounts may be zero. With groupBy there are no groups without usage. */
export async function readMetrics(warehouse: Warehouse, request: MetricsQuery): Promise<MetricsResult> {
  const statement = metricsStatement(request);
  if (hasOnePage(request)) return onlyPage(toGroups(await warehouse.read(statement, groupRow), request));
  const rows = await warehouse.read(statement, responseRow);
  const [first] = rows;
  if (!first) return onlyPage([]);
  const { total_cost: cost, total_usage: usage, total_groups: totalGroups, digest, newest_block } = first;
  return { groups: toGroups(rows, request), totals: { cost, usage }, totalGroups, mark: { digest, newest_block } };
}

/** Returns the resource types that have at least one matching event, in the catalog's order. Voided events do not count. */
export async function readResourceTypes(
  warehouse: Warehouse,
  selection: Selection & Pick<MetricsQuery, 'rollups'>,
): Promise<ResourceType[]> {
  const types = resourceTypes();
  // A resolution other than hourly lets the query read daily rollup rows, of which there are fewer.
  const request = {
    ...selection,
    resolution: 'monthly',
    groupBy: ['resource_type'],
    limit: types.length,
  } as const;
  const { groups } = await readMetrics(warehouse, request);
  const found = new Set(groups.map(({ values }) => values.resource_type));
  return types.filter((type) => found.has(type));
}

/** Returns the result of a query whose groups all fit on one page. Its `mark` is a placeholder, because only later pages use it. */
function onlyPage(groups: readonly MetricsGroup[]): MetricsResult {
  const totals = {
    cost: sumDecimals(groups.map(({ cost }) => cost)),
    usage: sumDecimals(groups.map(({ usage }) => usage)),
  };
  return { groups, totals, totalGroups: groups.length, mark: { digest: '0', newest_block: '0' } };
}

export const decimal = z.string().refine(isDecimalText, 'must be a decimal in its shortest form');
/** Checks only for strings, because a page has thousands of values, and ClickHouse prints the shortest form. Totals are checked in full. */
const decimals = z.custom<DecimalText[]>(areTexts, 'must be decimals as texts');
const series = z
  .tuple([z.array(z.number()), decimals, decimals])
  .refine(
    ([buckets, costs, usages]) => buckets.length === costs.length && buckets.length === usages.length,
    'must have a cost and a usage for each bucket',
  )
  .transform(([buckets, costs, usages]): SparseSeries => ({ buckets, costs, usages }));

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}

const groupRow = z.object({
  values: z.array(z.string()),
  cost: decimal,
  usage: decimal,
  series,
});
const storedRow = groupRow.extend({ total_groups: z.number(), total_cost: decimal, total_usage: decimal });
const responseRow = storedRow.extend({ digest: z.string(), newest_block: z.string() });

function toGroups(rows: readonly z.output<typeof groupRow>[], grouping: Grouping): MetricsGroup[] {
  const shown = shownDimensions(grouping);
  return rows.map(({ values, cost, usage, series }) => ({
    values: shownValues(shown, values, grouping.groupBy),
    cost,
    usage,
    series,
  }));
}

function shownValues(
  shown: readonly MetricsDimension[],
  values: readonly string[],
  groupBy: readonly MetricsDimension[],
): MetricsGroup['values'] {
  const named: Partial<Record<MetricsDimension, string>> = {};
  shown.forEach((dimension, index) => {
    const value = values[index] ?? '';
    if (groupBy.includes(dimension) || value !== NO_VALUE) named[dimension] = value;
  });
  const dimension = dimensionOf(named.billing_dimension ?? '');
  if (dimension && shown.includes('resource_type')) named.resource_type = dimension.resourceType;
  return named;
}

export type StoredPage = Pick<MetricsResult, 'groups' | 'totals' | 'totalGroups'>;

export interface StoredResult {
  /** The account that owns the result. If the result is about several accounts, a text that no account ID can equal. */
  readonly owner: string;
  readonly resultId: string;
}

/**
 * Stores all groups of a result for a day, so that later pages can be read from it. For this, computes the result again, and stores nothing
 * if its digest differs, which means that a group has changed since the first page. Storing the same result twice changes nothing. Only a
 * request for the second page calls this function, so first pages cost no writes. Source: docs/decisions/0022.
 */
export async function storeMetrics(
  warehouse: Warehouse,
  { owner, resultId }: StoredResult,
  request: MetricsQuery,
  digest: string,
): Promise<void> {
  const { name, query, query_params } = storeMetricsStatement(request);
  await warehouse.run({ name, query, query_params: { ...query_params, owner, result_id: resultId, digest } });
}

export function storeMetricsStatement(request: MetricsQuery): Statement {
  const { columns, wholeResponse, from, order, query_params } = rankedGroups(request);
  const { total_groups, total_cost, total_usage, digest } = wholeResponse;
  const stored = { ...columns, total_groups, total_cost, total_usage };
  return {
    name: 'store_metrics',
    query: `
INSERT INTO result_pages (account_id, result_id, rank, ${Object.keys(stored).join(', ')})
SELECT
  {owner: String},
  {result_id: UUID},
  toUInt32(row_number() OVER (ORDER BY ${order})),
  ${selectList(stored)}${from}
QUALIFY ${digest} = {digest: UInt64}`,
    query_params,
  };
}

/**
 * Returns up to `limit` groups that rank after number `after`. Returns undefined if the result is not stored, has expired or lacks groups,
 * which a power loss can cause, because this table is not fsynced.
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
  const rows = await warehouse.read(statement, storedRow);
  const [first] = rows;
  if (!first || rows.length !== Math.min(page.limit, first.total_groups - page.after)) return undefined;
  return {
    groups: toGroups(rows, page),
    totals: { cost: first.total_cost, usage: first.total_usage },
    totalGroups: first.total_groups,
  };
}

/** Two concurrent page requests may store the same result twice, so LIMIT 1 BY rank removes duplicates. */
export const STORED_METRICS = `
SELECT values, cost, usage, series, total_cost, total_usage, total_groups
FROM result_pages
WHERE account_id = {owner: String} AND result_id = {result_id: UUID} AND rank > {after: UInt32} AND rank <= {last: UInt32}
ORDER BY rank
LIMIT 1 BY rank`;
