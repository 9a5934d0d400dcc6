/**
 * Usage and cost of one account, from events and cells, whichever know the parts of the window.
 * One statement reads each part once, so that groups, their series and the totals add up.
 */
import {
  bucketStart,
  type DecimalText,
  enrichedDimensions,
  type GroupByDimension,
  isDecimalText,
  type Resolution,
} from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../client.js';
import { segmentRelation } from '../rollups/segment-relation.js';
import { NOTHING_SEALED, planSegments, type SealedUntil } from '../rollups/segments.js';
import { type Relation, readRows, type Statement } from '../statement.js';
import { filteredDimensions, type Selection, selectionParameters } from './selection.js';

export interface MetricsQuestion extends Selection {
  readonly resolution: Resolution;
  /** Which cells may be read, as known before the question is asked; nothing: the truth alone answers. */
  readonly sealed?: SealedUntil;
  /** In canonical order; empty for the aggregate of everything. */
  readonly groupBy: readonly GroupByDimension[];
  /** The most groups to return. */
  readonly limit: number;
}

/** Amounts of some buckets, each named by its index on the axis; buckets that are not named hold zero. */
export interface SparseSeries {
  readonly buckets: readonly number[];
  /** One for each bucket named. */
  readonly amounts: readonly DecimalText[];
}

export interface MetricsGroup {
  /** Values of the groupBy dimensions and of those they enrich. */
  readonly values: Readonly<Partial<Record<GroupByDimension, string>>>;
  readonly cost: DecimalText;
  readonly usage: DecimalText;
  readonly costSeries: SparseSeries;
  readonly usageSeries: SparseSeries;
}

export interface MetricsAnswer {
  /** The first of the ranking: cost descending, then the dimensions' values ascending, bytewise. */
  readonly groups: readonly MetricsGroup[];
  /** Over all groups, whatever the limit. */
  readonly totals: { readonly cost: DecimalText; readonly usage: DecimalText };
  readonly totalGroups: number;
}

/**
 * @returns the groups in rank order. Without groupBy there is exactly one, zeros if nothing was used; with groupBy and
 * nothing used there is none.
 */
export async function readMetrics(warehouse: Warehouse, question: MetricsQuestion): Promise<MetricsAnswer> {
  return toAnswer(await readRows(warehouse, metricsStatement(question), metricsRow), question.groupBy);
}

export function metricsStatement(question: MetricsQuestion): Statement {
  const { query, query_params } = allGroups(question);
  return {
    name: 'read_metrics',
    query: `
SELECT
  ${GROUP_COLUMNS.join(',\n  ')}
FROM
(${query}
)
ORDER BY ${rankOrder(question)}
LIMIT {limit: UInt32}`,
    query_params: { ...query_params, limit: question.limit },
  };
}

/** What a group is described by, in a live answer and in a stored one. */
export const GROUP_COLUMNS = [
  'values',
  'cost',
  'usage',
  'cost_series',
  'usage_series',
  'total_cost',
  'total_usage',
  'total_groups',
] as const;

/** All groups, unordered, with {@link GROUP_COLUMNS} and the dimensions grouped by. */
export function allGroups({ limit, ...question }: MetricsQuestion): Relation {
  const { groupBy } = question;
  const segments = planSegments(question.window, question.resolution, question.sealed ?? NOTHING_SEALED);
  const shown = shownDimensions(groupBy);
  const relation = { ...question, columns: shown, filters: filteredDimensions(question) };
  const enriched = shown.filter((dimension) => !groupBy.includes(dimension));
  const values = [...groupBy, ...enriched.map((dimension) => `top_${dimension}`)];
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
  SELECT
    ${values.length > 0 ? `[${values.join(', ')}]` : "CAST([], 'Array(String)')"} AS values,
    *,
    sum(cost) OVER () AS total_cost,
    sum(usage) OVER () AS total_usage,
    toUInt32(count() OVER ()) AS total_groups
  FROM
  (
    SELECT
      ${groups.join(',\n      ')}
    FROM
    (${segments.map((segment, index) => segmentRelation(segment, index, relation)).join('\n      UNION ALL')}
    )${groupBy.length > 0 ? `\n    GROUP BY ${groupBy.join(', ')}` : ''}
  )`,
    query_params: {
      ...selectionParameters(question, segments),
      axis_start: Math.floor(bucketStart(question.window.startTime, question.resolution) / 1000),
    },
  };
}

export function rankOrder({ groupBy }: Pick<MetricsQuestion, 'groupBy'>): string {
  return ['cost DESC', ...groupBy].join(', ');
}

/** The dimensions whose values a group shows: those it is grouped by, then those that enrich it. */
function shownDimensions(groupBy: readonly GroupByDimension[]): GroupByDimension[] {
  return [...groupBy, ...enrichedDimensions(groupBy)];
}

/**
 * The value that carries the most cost in the group; of several the smallest. sumMap gives the keys in ascending order
 * and leaves out those that sum to zero; where all do, every value ties.
 */
function dominantValue(column: GroupByDimension): string {
  const costs = `sumMap([CAST(${column}, 'String')], [cell_cost])`;
  return `if(sum(cell_cost) = 0, min(${column}), ${costs}.1[indexOf(${costs}.2, arrayMax(${costs}.2))]) AS top_${column}`;
}

const decimal = z.string().refine(isDecimalText, 'must be a decimal in its shortest form');
const ZERO = decimal.parse('0');
/** Checked as a whole: an answer holds thousands, and a check of its own for each takes longer than all the rest. */
const decimals = z.array(z.string()).refine(areDecimalTexts, 'must be decimals in their shortest form');
const series = z
  .tuple([z.array(z.number()), decimals])
  .transform(([buckets, amounts]): SparseSeries => ({ buckets, amounts }));

function areDecimalTexts(texts: string[]): texts is DecimalText[] {
  return texts.every(isDecimalText);
}

/** A row of {@link GROUP_COLUMNS}. */
export const metricsRow = z.object({
  values: z.array(z.string()),
  cost: decimal,
  usage: decimal,
  cost_series: series,
  usage_series: series,
  total_cost: decimal,
  total_usage: decimal,
  total_groups: z.number(),
});
type MetricsRow = z.output<typeof metricsRow>;

/** @param rows in rank order, as {@link GROUP_COLUMNS} */
export function toAnswer(rows: readonly MetricsRow[], groupBy: readonly GroupByDimension[]): MetricsAnswer {
  const [first] = rows;
  const shown = shownDimensions(groupBy);
  return {
    groups: rows.map((row) => ({
      values: Object.fromEntries(shown.map((dimension, index) => [dimension, row.values[index]])),
      cost: row.cost,
      usage: row.usage,
      costSeries: row.cost_series,
      usageSeries: row.usage_series,
    })),
    totals: { cost: first?.total_cost ?? ZERO, usage: first?.total_usage ?? ZERO },
    totalGroups: first?.total_groups ?? 0,
  };
}
