/**
 * The SQL of a response, from the outermost SELECT down to the conditions on its tables. One statement reads each segment
 * of the window once, so that groups, their series and the totals add up.
 *
 * Two rules keep it fast (docs/decisions/0010). It is flat: each level of subqueries costs ClickHouse a millisecond to
 * plan, and a summary costs not many more to compute. And parameters never get a name in SELECT, because such a name
 * hides the column of that name in WHERE.
 */
import {
  BILLING_DIMENSIONS,
  bucketStart,
  enrichedDimensions,
  type MetricsDimension,
  MS_PER_DAY,
  MS_PER_HOUR,
  RESOURCE_TYPES,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import { accountsCondition, onlyAccount } from '../accounts.js';
import type { Statement, StatementParameters } from '../clickhouse/connection.js';
import { type Grain, ROLLUP_ARRAYS, ROLLUP_TABLE, type RollupArrays } from '../rollups/rollup-rows.js';
import { NO_ROLLUPS, type ReadableRollups } from '../rollups/watermarks.js';
import {
  bucketsCondition,
  columnOf,
  eventsCondition,
  type Filter,
  filtersOf,
  planSegments,
  type Segment,
  type Selection,
  selectionParameters,
  type TimeSpan,
  withEvents,
} from './plan.js';

export interface Grouping {
  /** In canonical order; empty for the aggregate of everything. */
  readonly groupBy: readonly MetricsDimension[];
  /** Groups do not show their workspace, unless they are grouped by it: a member may not see which there are. */
  readonly hidesWorkspace?: boolean;
}

export interface MetricsQuery extends Selection, Grouping {
  readonly resolution: Resolution;
  /** Which rollup rows may be read, as known before the query; nothing: the events alone answer. */
  readonly rollups?: ReadableRollups;
  /** Only events up to this block answer, as they did for an earlier page; see {@link SnapshotMark}. */
  readonly asOf?: string;
  /** The most groups to return. */
  readonly limit: number;
}

/** The first groups of the ranking; unless these are all, each with the columns that describe the whole response. */
export function metricsStatement(wanted: MetricsQuery): Statement {
  const { columns, wholeResponse, from, order, query_params, isSmall } = rankedGroups(wanted);
  return {
    name: 'read_metrics',
    query: `
SELECT
  ${selectList({ ...columns, ...(!hasOnePage(wanted) && wholeResponse) })}${from}
ORDER BY ${order}
LIMIT {limit: UInt32}`,
    query_params: { ...query_params, limit: wanted.limit },
    // Starting more threads takes longer than their work.
    ...(isSmall && { settings: { max_threads: 1 } }),
  };
}

/** How many groups there can be by dimensions of few values: one by none. */
const MOST_GROUPS: Readonly<Partial<Record<MetricsDimension, number>>> = {
  resource_type: RESOURCE_TYPES.length,
  billing_dimension: BILLING_DIMENSIONS.length,
};

/** Whether all groups are on the first page, so that it needs no columns for later ones. A dimension belongs to one type. */
export function hasOnePage({ groupBy, limit }: Pick<MetricsQuery, 'groupBy' | 'limit'>): boolean {
  const groups = groupBy.map((dimension) => MOST_GROUPS[dimension] ?? Number.POSITIVE_INFINITY);
  return Math.max(1, ...groups) <= limit;
}

export function selectList(columns: Readonly<Record<string, string>>): string {
  return Object.entries(columns)
    .map(([name, value]) => `${value} AS ${name}`)
    .join(',\n  ');
}

/** All groups that answer a wanted, as parts of one SELECT. */
export interface RankedGroups {
  /** How each column that describes a group is computed, in a live answer and in a stored one; each may use those before it. */
  readonly columns: Readonly<Record<'values' | 'cost' | 'usage' | 'series', string>>;
  /** How each column that is the same for every group is computed. */
  readonly wholeResponse: Readonly<Record<'total_groups' | 'total_cost' | 'total_usage' | keyof SnapshotMark, string>>;
  /** From FROM to GROUP BY. */
  readonly from: string;
  /** The order of the ranking: cost descending, then the dimensions' values ascending, bytewise. */
  readonly order: string;
  readonly query_params: StatementParameters;
  /** Whether it reads no more than the summaries of one account's rollup rows. */
  readonly isSmall: boolean;
}

/** By which a later page can tell whether what it computes is the response that the first page was part of. */
export interface SnapshotMark {
  /** A hash of all groups with everything that they show, in no order: UInt64 as decimal digits. */
  readonly digest: string;
  /**
   * The newest block of `usage_events` that an event of the response was read from: UInt64 as decimal digits. Blocks are
   * numbered in the order in which inserts become visible, so later inserts have higher numbers.
   */
  readonly newest_block: string;
}

export function rankedGroups(wanted: MetricsQuery): RankedGroups {
  const { accounts, groupBy, window, resolution, rollups = NO_ROLLUPS, asOf } = wanted;
  const keys = groupBy.map(columnOf);
  const segments = planSegments(withEvents(window), resolution, rollups);
  const shown = shownDimensions(wanted);
  const columns = shown.filter((dimension) => !isKnown(dimension, groupBy));
  const isOneBucket = bucketStart(window.startTime, resolution) === bucketStart(window.endTime - 1, resolution);
  const requested = { accounts, resolution, columns, filters: filtersOf(wanted), isOneBucket, asOf };
  const { bucket, cost, usage, block, from } = entriesOf(segments, requested);
  return {
    columns: {
      values: `[${shown.map((dimension) => shownValue(dimension, groupBy)).join(', ')}]`,
      cost: `sum(${cost})`,
      usage: `sum(${usage})`,
      series: isOneBucket ? '([toInt32(0)], [cost], [usage])' : `sumMap([${bucket}], [${cost}], [${usage}])`,
    },
    wholeResponse: {
      total_groups: 'toUInt32(count() OVER ())',
      total_cost: 'sum(cost) OVER ()',
      total_usage: 'sum(usage) OVER ()',
      digest: `sum(sipHash64(${[...keys, 'values', 'cost', 'usage', 'series'].join(', ')})) OVER ()`,
      newest_block: `max(max(${block})) OVER ()`,
    },
    from: keys.length > 0 ? `${from}\nGROUP BY ${keys.join(', ')}` : from,
    order: ['cost DESC', ...keys].join(', '),
    query_params: {
      ...selectionParameters(wanted, segments),
      axis_start: axisStart(window, resolution),
      ...(asOf !== undefined && { as_of: asOf }),
    },
    isSmall:
      onlyAccount(accounts) !== undefined &&
      segments.every(({ source }) => source !== 'events') &&
      smallestArrays([...columns, ...requested.filters.map(({ dimension }) => dimension)]) === 'summary',
  };
}

/** The dimensions whose values a group shows: those it is grouped by, then those that enrich it. */
export function shownDimensions({ groupBy, hidesWorkspace }: Grouping): MetricsDimension[] {
  const enriched = enrichedDimensions(groupBy);
  return [...groupBy, ...enriched.filter((dimension) => dimension !== 'workspace' || !hidesWorkspace)];
}

/** What all usage of the group has in common, or what stands for it. */
function shownValue(dimension: MetricsDimension, groupBy: readonly MetricsDimension[]): string {
  const column = columnOf(dimension);
  if (groupBy.includes(dimension)) return column;
  return isKnown(dimension, groupBy)
    ? `'${NO_VALUE}'`
    : `if(min(${column}) = max(${column}), min(${column}), '${NO_VALUE}')`;
}

/** Where a group has several values, and where its value is known without reading it. A name is never empty. */
export const NO_VALUE = '';

/** A billing dimension belongs to one type, which need not be read. */
function isKnown(dimension: MetricsDimension, groupBy: readonly MetricsDimension[]): boolean {
  return dimension === 'resource_type' && !groupBy.includes(dimension) && groupBy.includes('billing_dimension');
}

/** What is asked of every segment. */
interface EntriesQuery extends Pick<MetricsQuery, 'accounts' | 'resolution'> {
  /** The dimensions that the entries show. */
  readonly columns: readonly MetricsDimension[];
  /** A condition for each filtered dimension. */
  readonly filters: readonly Filter[];
  /** Whether the whole window is one bucket, so that a group's series is its cost and usage. */
  readonly isOneBucket: boolean;
  readonly asOf: string | undefined;
}

/** Rows of partial sums: any number of them for a group and bucket. */
interface Entries {
  /** FROM and WHERE. Its columns are the query's, and those that the expressions below are made of. */
  readonly from: string;
  /** Index of the bucket on the axis that begins at the parameter `axis_start`. */
  readonly bucket: string;
  readonly cost: string;
  readonly usage: string;
  /** The newest block of events in the row; 0 for a rollup row. */
  readonly block: string;
}

/**
 * A segment that answers alone is read without a subquery. Events of several buckets are the exception: `sumMap` takes
 * longer for each event than adding them up by group and bucket before it (docs/decisions/0022).
 */
function entriesOf(segments: readonly Segment[], wanted: EntriesQuery): Entries {
  const parts = segments.map((segment, index) => ({ segment, entries: segmentEntries(segment, index, wanted) }));
  const [only, ...others] = parts;
  if (only && others.length === 0 && (only.segment.source !== 'events' || wanted.isOneBucket)) return only.entries;
  // A group and bucket has many events, or some twenty hours of days: `sumMap` takes longer for each of them.
  const selects = parts.map(({ segment: { source, days }, entries }) =>
    source === 'events' || days ? sumsSelect(entries, wanted) : entriesSelect(entries, wanted),
  );
  const from = `
FROM
(${selects.join('\n  UNION ALL')}
)`;
  return { from, bucket: 'entry_bucket', cost: 'entry_cost', usage: 'entry_usage', block: 'entry_block' };
}

function segmentEntries({ source, ...span }: Segment, index: number, wanted: EntriesQuery): Entries {
  return source === 'events' ? eventEntries(span, index, wanted) : rollupEntries(source, span, index, wanted);
}

function sumsSelect({ from, bucket, cost, usage, block }: Entries, wanted: EntriesQuery): string {
  const sums = { bucket, cost: `sum(${cost})`, usage: `sum(${usage})`, block: `max(${block})` };
  const keys = [...wanted.columns.map(columnOf), 'entry_bucket'].join(', ');
  return `${entriesSelect({ ...sums, from }, wanted)}\n  GROUP BY ${keys}`;
}

/** Part of a UNION: the columns of all its parts have the same names. */
function entriesSelect({ from, bucket, cost, usage, block }: Entries, wanted: EntriesQuery): string {
  const columns = [
    ...wanted.columns.map(columnOf),
    `${bucket} AS entry_bucket`,
    `${cost} AS entry_cost`,
    `${usage} AS entry_usage`,
    `${block} AS entry_block`,
  ];
  return `
  SELECT
    ${columns.join(',\n    ')}${from.replaceAll('\n', '\n  ')}`;
}

/**
 * A row for each event. What was inserted after block `as_of` is left out before FINAL chooses a row of each event, so that
 * a revision does not hide what it revises.
 */
function eventEntries(span: TimeSpan, index: number, wanted: EntriesQuery): Entries {
  const { accounts, resolution, filters, asOf } = wanted;
  const upTo = asOf === undefined ? '' : '\nPREWHERE _block_number <= {as_of: UInt64}';
  const conditions = [...eventsCondition(accounts, span, index), ...filters.map(({ condition }) => condition)];
  const from = `\nFROM usage_events FINAL${upTo}\nWHERE ${conditions.join('\n  AND ')}`;
  const bucket = BUCKETS[resolution]('event_hour');
  return { from, bucket, cost: 'usage_events.cost', usage: 'usage_events.usage', block: '_block_number' };
}

/** A row for each entry of the arrays, or for each rollup row when its entries need not be told apart. */
function rollupEntries(
  grain: Grain,
  span: TimeSpan,
  index: number,
  { accounts, resolution, columns, filters }: EntriesQuery,
): Entries {
  const table = ROLLUP_TABLE[grain];
  const named = new Set([...columns, ...filters.map(({ dimension }) => dimension)]);
  const read = [...named].filter((dimension) => dimension !== 'account');
  const arrays = smallestArrays(read);
  const condition = [
    ...accountsCondition(accounts),
    ...bucketsCondition(`${table}.bucket`, span, index),
    ...filters.map(({ condition }) => condition),
  ].join('\n  AND ');
  const bucket = BUCKETS[resolution](`${table}.bucket`);
  if (read.length === 0) {
    // The row of an hour in which all events are void has no entries, and its account is no group.
    const from = `\nFROM ${table} FINAL\nWHERE ${condition}\n  AND notEmpty(${arrays}.cost)`;
    return { from, bucket, cost: `arraySum(${arrays}.cost)`, usage: `arraySum(${arrays}.usage)`, block: NO_BLOCK };
  }
  const joined = [
    ...read.map((column) => `${arrays}.${column} AS ${column}`),
    `${arrays}.cost AS rollup_cost`,
    `${arrays}.usage AS rollup_usage`,
  ];
  const from = `\nFROM ${table} FINAL\nARRAY JOIN\n  ${joined.join(',\n  ')}\nWHERE ${condition}`;
  return { from, bucket, cost: 'rollup_cost', usage: 'rollup_usage', block: NO_BLOCK };
}

/** The block of a rollup row, which says nothing about the blocks of its events. */
const NO_BLOCK = 'toUInt64(0)';

/** The smaller set of a rollup row's arrays that has all these dimensions. */
function smallestArrays(dimensions: readonly MetricsDimension[]): RollupArrays {
  const inSummary: readonly MetricsDimension[] = ROLLUP_ARRAYS.summary;
  return dimensions.every((dimension) => dimension === 'account' || inSummary.includes(dimension))
    ? 'summary'
    : 'detail';
}

/** UTC has no daylight saving, so all buckets but months have one length. */
function fixedBucket(milliseconds: number): (hour: string) => string {
  return (hour) => `toInt32(intDiv(toUInt32(${hour}) - {axis_start: Int64}, ${milliseconds / 1000}))`;
}

/** The index of a time's bucket on the axis. */
const BUCKETS = {
  hourly: fixedBucket(MS_PER_HOUR),
  daily: fixedBucket(MS_PER_DAY),
  weekly: fixedBucket(7 * MS_PER_DAY),
  monthly: (hour) => `toInt32(dateDiff('month', toDateTime(0, 'UTC'), ${hour}) - {axis_start: Int64})`,
} as const satisfies Record<Resolution, (hour: string) => string>;

/** Where the axis begins, counted from 1970 on: seconds, or months. An axis may begin long before the first event. */
function axisStart({ startTime }: Window, resolution: Resolution): number {
  const start = bucketStart(startTime, resolution);
  if (resolution !== 'monthly') return start / 1000;
  const first = new Date(start);
  return (first.getUTCFullYear() - 1970) * 12 + first.getUTCMonth();
}
