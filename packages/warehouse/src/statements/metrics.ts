/**
 * Usage and cost of one account, from events and cells, whichever know the parts of the window.
 * One statement reads each part once, so that groups, their series and the totals add up.
 */
import {
  bucketStart,
  type DecimalText,
  enrichedDimensions,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  isDecimalText,
  type Resolution,
} from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../client.js';
import { segmentRelation } from '../rollups/segment-relation.js';
import { NOTHING_SEALED, planSegments, type SealedUntil } from '../rollups/segments.js';
import { readRows, type Statement } from '../statement.js';
import { filteredDimensions, type Selection, selectionParameters } from './selection.js';

export interface MetricsQuestion extends Selection {
  readonly resolution: Resolution;
  /** Which cells may be read, as known before the question is asked; nothing: the truth alone answers. */
  readonly sealed?: SealedUntil;
  /** In canonical order; empty for the aggregate of everything. */
  readonly groupBy: readonly GroupByDimension[];
  /** The most groups to return. */
  readonly limit: number;
  /** Only groups that rank after this one. */
  readonly after?: GroupRank;
}

/** A group's place in the order: cost descending, then the dimensions' values ascending, bytewise. */
export interface GroupRank {
  readonly cost: DecimalText;
  /** Values of the groupBy dimensions, in canonical order. */
  readonly values: readonly string[];
}

/** Amounts by bucket, as [index into the axis, amount]; buckets that are not named hold zero. */
export type SparseSeries = readonly (readonly [bucket: number, amount: DecimalText])[];

export interface MetricsGroup {
  /** Values of the groupBy dimensions and of those they enrich. */
  readonly values: Readonly<Partial<Record<GroupByDimension, string>>>;
  readonly cost: DecimalText;
  readonly usage: DecimalText;
  readonly costSeries: SparseSeries;
  readonly usageSeries: SparseSeries;
}

export interface MetricsAnswer {
  readonly groups: readonly MetricsGroup[];
  /** Over all groups, whatever the limit. */
  readonly totals: { readonly cost: DecimalText; readonly usage: DecimalText };
}

/**
 * @returns the groups in rank order. Without groupBy there is exactly one, zeros if nothing was used; with groupBy and
 * nothing used there is none.
 */
export async function readMetrics(warehouse: Warehouse, question: MetricsQuestion): Promise<MetricsAnswer> {
  const rows = await readRows(warehouse, metricsStatement(question), metricsRow);
  const first = rows[0] ?? (question.after && (await readTotals(warehouse, question)));
  return {
    groups: rows.map(toGroup),
    totals: { cost: first?.total_cost ?? ZERO, usage: first?.total_usage ?? ZERO },
  };
}

/** Nothing may rank after the last page's cursor any more; the totals of the window are still wanted. */
async function readTotals(warehouse: Warehouse, { after, groupBy, ...question }: MetricsQuestion) {
  const [row] = await readRows(warehouse, metricsStatement({ ...question, groupBy: [] }), metricsRow);
  return row;
}

export function metricsStatement(question: MetricsQuestion): Statement {
  const { groupBy, after } = question;
  const enriched = enrichedDimensions(groupBy);
  const segments = planSegments(question.window, question.resolution, question.sealed ?? NOTHING_SEALED);
  const relation = { ...question, columns: [...groupBy, ...enriched], filters: filteredDimensions(question) };
  const groups = [
    ...groupBy,
    ...enriched.map(dominantValue),
    'sum(cell_cost) AS cost',
    'sum(cell_usage) AS usage',
    'sumMap([bucket], [cell_cost]) AS cost_series',
    'sumMap([bucket], [cell_usage]) AS usage_series',
  ];
  return {
    query: `
SELECT *
FROM
(
  SELECT
    *,
    sum(cost) OVER () AS total_cost,
    sum(usage) OVER () AS total_usage
  FROM
  (
    SELECT
      ${groups.join(',\n      ')}
    FROM
    (${segments.map((segment, index) => segmentRelation(segment, index, relation)).join('\n      UNION ALL')}
    )${groupBy.length > 0 ? `\n    GROUP BY ${groupBy.join(', ')}` : ''}
  )
)${after ? `\nWHERE ${ranksAfter(groupBy)}` : ''}
ORDER BY ${['cost DESC', ...groupBy].join(', ')}
LIMIT {limit: UInt32}`,
    query_params: {
      ...selectionParameters(question, segments),
      axis_start: Math.floor(bucketStart(question.window.startTime, question.resolution) / 1000),
      limit: question.limit,
      ...(after && { after_cost: after.cost }),
      ...Object.fromEntries(after?.values.map((value, index) => [`after_${index}`, value]) ?? []),
    },
  };
}

/**
 * The value that carries the most cost in the group; of several the smallest. sumMap gives the keys in ascending order
 * and leaves out those that sum to zero; where all do, every value ties.
 */
function dominantValue(column: GroupByDimension): string {
  const costs = `sumMap([${column}], [cell_cost])`;
  return `if(sum(cell_cost) = 0, min(${column}), ${costs}.1[indexOf(${costs}.2, arrayMax(${costs}.2))]) AS top_${column}`;
}

function ranksAfter(groupBy: readonly GroupByDimension[]): string {
  const own = groupBy.map((dimension) => `toString(${dimension})`).join(', ');
  const last = groupBy.map((_, index) => `{after_${index}: String}`).join(', ');
  const cost = '{after_cost: Decimal(38, 12)}';
  return `cost < ${cost} OR (cost = ${cost} AND tuple(${own}) > tuple(${last}))`;
}

const decimal = z.string().refine(isDecimalText, 'must be a decimal in its shortest form');
const ZERO = decimal.parse('0');
const series = z
  .tuple([z.array(z.number()), z.array(decimal)])
  .transform(([buckets, amounts]): SparseSeries => buckets.map((bucket, index) => [bucket, amounts[index] ?? ZERO]));

const metricsRow = z.object({
  workspace: z.string().optional(),
  resource_type: z.string().optional(),
  resource_name: z.string().optional(),
  resource_uuid: z.string().optional(),
  billing_dimension: z.string().optional(),
  // Enriched: the value that carries the most cost in the group
  top_workspace: z.string().optional(),
  top_resource_type: z.string().optional(),
  top_resource_name: z.string().optional(),
  top_resource_uuid: z.string().optional(),
  top_billing_dimension: z.string().optional(),
  cost: decimal,
  usage: decimal,
  cost_series: series,
  usage_series: series,
  total_cost: decimal,
  total_usage: decimal,
});
type MetricsRow = z.output<typeof metricsRow>;

function toGroup(row: MetricsRow): MetricsGroup {
  const values: Partial<Record<GroupByDimension, string>> = {};
  for (const dimension of GROUP_BY_DIMENSIONS) {
    const value = row[dimension] ?? row[`top_${dimension}`];
    if (value !== undefined) values[dimension] = value;
  }
  return { values, cost: row.cost, usage: row.usage, costSeries: row.cost_series, usageSeries: row.usage_series };
}
