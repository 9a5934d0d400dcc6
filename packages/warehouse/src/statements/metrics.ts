/**
 * Usage and cost of one account, from events and cells, whichever know the parts of the window.
 * One statement reads each part once, so that groups, their series and the totals add up.
 */
import {
  bucketStart,
  type DecimalText,
  DIMENSIONS,
  enrichedDimensions,
  type GroupByDimension,
  isBillingDimension,
  isDecimalText,
  type Resolution,
  sumDecimals,
} from '@meterline/catalog';
import { z } from 'zod';
import type { Relation, Statement, Warehouse } from '../clickhouse/connection.js';
import { entriesOf } from '../rollups/segment-relation.js';
import { NOTHING_SEALED, planSegments, type SealedUntil } from '../rollups/segments.js';
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
  /** One for each bucket named; so is usage. */
  readonly costs: readonly DecimalText[];
  readonly usages: readonly DecimalText[];
}

export interface MetricsGroup {
  /** Values of the groupBy dimensions and of those they enrich. */
  readonly values: Readonly<Partial<Record<GroupByDimension, string>>>;
  readonly cost: DecimalText;
  readonly usage: DecimalText;
  readonly series: SparseSeries;
}

export interface MetricsTotals {
  readonly cost: DecimalText;
  readonly usage: DecimalText;
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

/** Added up here: to have ClickHouse do it takes longer, for so few. */
function totalsOf(groups: readonly MetricsGroup[]): MetricsTotals {
  return { cost: sumDecimals(groups.map(({ cost }) => cost)), usage: sumDecimals(groups.map(({ usage }) => usage)) };
}

export function metricsStatement(question: MetricsQuestion): Statement {
  const { columns, from, order, query_params } = rankedGroups(question);
  // What is not grouped is one row; to sort it takes time all the same.
  const first = question.groupBy.length > 0 ? `\nORDER BY ${order}\nLIMIT {limit: UInt32}` : '';
  return {
    name: 'read_metrics',
    query: `
SELECT
  ${selectList(columns)}${from}${first}`,
    query_params: { ...query_params, limit: question.limit },
  };
}

/** How each column that describes a group is computed, in a live answer and in a stored one; it may name those before it. */
export type GroupColumns = {
  readonly values: string;
  readonly cost: string;
  readonly usage: string;
  readonly series: string;
  readonly total_groups: string;
};

export function selectList(columns: Readonly<Record<string, string>>): string {
  return Object.entries(columns)
    .map(([name, value]) => `${value} AS ${name}`)
    .join(',\n  ');
}

/** All groups that answer a question, as parts of one SELECT. */
export interface RankedGroups {
  readonly columns: GroupColumns;
  /** From FROM to GROUP BY. */
  readonly from: string;
  /** Of the ranking. */
  readonly order: string;
  readonly query_params: Relation['query_params'];
}

/** Flat: each level of subqueries costs ClickHouse a millisecond to plan, and a summary not many more to compute. */
export function rankedGroups({ limit, ...question }: MetricsQuestion): RankedGroups {
  const { groupBy, window, resolution } = question;
  const segments = planSegments(window, resolution, question.sealed ?? NOTHING_SEALED);
  const shown = shownDimensions(groupBy);
  const columns = shown.filter((dimension) => !isKnown(dimension, groupBy));
  const entries = entriesOf(segments, { resolution, columns, filters: filteredDimensions(question) });
  const { bucket, cost, usage, from } = entries;
  const isGrouped = groupBy.length > 0;
  return {
    columns: {
      values: `[${shown.map((dimension) => shownValue(dimension, groupBy, cost)).join(', ')}]`,
      cost: `sum(${cost})`,
      usage: `sum(${usage})`,
      series: `sumMap([${bucket}], [${cost}], [${usage}])`,
      total_groups: isGrouped ? 'toUInt32(count() OVER ())' : 'toUInt32(1)',
    },
    from: isGrouped ? `${from}\nGROUP BY ${groupBy.join(', ')}` : from,
    order: ['cost DESC', ...groupBy].join(', '),
    query_params: {
      ...selectionParameters(question, segments),
      axis_start: Math.floor(bucketStart(window.startTime, resolution) / 1000),
    },
  };
}

/** The dimensions whose values a group shows: those it is grouped by, then those that enrich it. */
function shownDimensions(groupBy: readonly GroupByDimension[]): GroupByDimension[] {
  return [...groupBy, ...enrichedDimensions(groupBy)];
}

/** What the groups have in common, or what stands for it where they enrich. */
function shownValue(column: GroupByDimension, groupBy: readonly GroupByDimension[], cost: string): string {
  if (groupBy.includes(column)) return column;
  return isKnown(column, groupBy) ? `'${NOT_READ}'` : dominantValue(column, cost);
}

/** In place of a value that is known without reading it; no dimension but the uuid may be empty. */
const NOT_READ = '';

/** A billing dimension belongs to one type, which need not be read. */
function isKnown(column: GroupByDimension, groupBy: readonly GroupByDimension[]): boolean {
  return column === 'resource_type' && !groupBy.includes(column) && groupBy.includes('billing_dimension');
}

/**
 * The value that carries the most cost in the group; of several the smallest. sumMap gives the keys in ascending order
 * and leaves out those that sum to zero; where all do, every value ties.
 */
function dominantValue(column: GroupByDimension, cost: string): string {
  const costs = `sumMap([CAST(${column}, 'String')], [${cost}])`;
  return `if(sum(${cost}) = 0, min(${column}), ${costs}.1[indexOf(${costs}.2, arrayMax(${costs}.2))])`;
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

/** A row of {@link GroupColumns}. */
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
  return rows.map(({ values, cost, usage, series }) => ({
    values: shownValues(shown, values),
    cost,
    usage,
    series,
  }));
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
