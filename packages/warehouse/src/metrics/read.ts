/** Usage and cost of one account, from the rows of {@link metricsStatement}. */
import {
  type DecimalText,
  DIMENSIONS,
  type GroupByDimension,
  isBillingDimension,
  isDecimalText,
  sumDecimals,
} from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../clickhouse/connection.js';
import { type MetricsQuestion, metricsStatement, NOT_READ, shownDimensions } from './statement.js';

/** Amounts of some buckets, each named by its index on the axis; buckets that are not named hold zero. */
export interface SparseSeries {
  readonly buckets: readonly number[];
  /** One for each bucket named; so is usage. */
  readonly costs: readonly DecimalText[];
  readonly usages: readonly DecimalText[];
}

export interface MetricsTotals {
  readonly cost: DecimalText;
  readonly usage: DecimalText;
}

export interface MetricsGroup extends MetricsTotals {
  /** Values of the groupBy dimensions and of those they enrich. */
  readonly values: Readonly<Partial<Record<GroupByDimension, string>>>;
  readonly series: SparseSeries;
}

export interface MetricsAnswer {
  /** The first of the ranking: cost descending, then the dimensions' values ascending, bytewise. */
  readonly groups: readonly MetricsGroup[];
  /** Over all groups; undefined where the limit left some out. */
  readonly totals: MetricsTotals | undefined;
  readonly totalGroups: number;
}

/**
 * @returns the groups in rank order. Without groupBy there is exactly one, zeros if nothing was used; with groupBy and
 * nothing used there is none.
 */
export async function readMetrics(warehouse: Warehouse, question: MetricsQuestion): Promise<MetricsAnswer> {
  const rows = await warehouse.read(metricsStatement(question), groupRow);
  const groups = toGroups(rows, question.groupBy);
  const totalGroups = rows[0]?.total_groups ?? 0;
  return { groups, totals: totalGroups === groups.length ? totalsOf(groups) : undefined, totalGroups };
}

/** Added up here, because ClickHouse takes longer for so few groups. */
function totalsOf(groups: readonly MetricsGroup[]): MetricsTotals {
  return { cost: sumDecimals(groups.map(({ cost }) => cost)), usage: sumDecimals(groups.map(({ usage }) => usage)) };
}

export const decimal = z.string().refine(isDecimalText, 'must be a decimal in its shortest form');
/** Checked as a whole: an answer holds thousands, and a check of its own for each takes longer than all the rest. */
const decimals = z.custom<DecimalText[]>(areDecimalTexts, 'must be decimals in their shortest form');
const series = z
  .tuple([z.array(z.number()), decimals, decimals])
  .refine(
    ([buckets, costs, usages]) => buckets.length === costs.length && buckets.length === usages.length,
    'must have a cost and a usage for each bucket',
  )
  .transform(([buckets, costs, usages]): SparseSeries => ({ buckets, costs, usages }));

function areDecimalTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((text) => typeof text === 'string' && isDecimalText(text));
}

/** The columns that describe a group, in a live answer and in a stored one. */
export const groupRow = z.object({
  values: z.array(z.string()),
  cost: decimal,
  usage: decimal,
  series,
  total_groups: z.number(),
});

export function toGroups(
  rows: readonly z.output<typeof groupRow>[],
  groupBy: readonly GroupByDimension[],
): MetricsGroup[] {
  const shown = shownDimensions(groupBy);
  return rows.map(({ values, cost, usage, series }) => ({ values: shownValues(shown, values), cost, usage, series }));
}

function shownValues(shown: readonly GroupByDimension[], values: readonly string[]): MetricsGroup['values'] {
  const named: Partial<Record<GroupByDimension, string>> = {};
  shown.forEach((dimension, index) => {
    named[dimension] = values[index] ?? '';
  });
  const { billing_dimension = '', resource_type } = named;
  if (resource_type === NOT_READ && isBillingDimension(billing_dimension)) {
    named.resource_type = DIMENSIONS[billing_dimension].resourceType;
  }
  return named;
}
