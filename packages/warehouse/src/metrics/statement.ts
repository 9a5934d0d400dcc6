/**
 * Builds the SQL of a metrics query. One statement reads each segment of the window once, so that groups, series and totals add up.
 *
 * Two rules keep the statement fast and correct (docs/decisions/0010). The statement avoids subqueries, because each level costs ClickHouse
 * about a millisecond of planning, nearly as long as computing a summary. SELECT never gives a parameter an alias, because in WHERE the
 * alias would hide the column with the same name.
 */
import {
  billingDimensions,
  bucketStart,
  enrichedDimensions,
  type MetricsDimension,
  MS_PER_DAY,
  MS_PER_HOUR,
  type Resolution,
  resourceTypes,
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
  readonly groupBy: readonly MetricsDimension[];
  /** Hides the workspace of groups that are not grouped by workspace, because a member may not see which workspaces exist. */
  readonly hidesWorkspace?: boolean;
}

export interface MetricsQuery extends Selection, Grouping {
  readonly resolution: Resolution;
  /** The rollup rows that the query may read, determined before the query. Undefined: the query reads only events. */
  readonly rollups?: ReadableRollups;
  /** The number of the newest inserted block of events to read, from the {@link SnapshotMark} of an earlier page. */
  readonly asOf?: string;
  readonly limit: number;
}

/** Selects the groups with the highest cost. If there may be more pages, each row also has the columns that describe the whole result. */
export function metricsStatement(request: MetricsQuery): Statement {
  const { columns, wholeResponse, from, order, query_params, isSmall } = rankedGroups(request);
  return {
    name: 'read_metrics',
    query: `
SELECT
  ${selectList({ ...columns, ...(!hasOnePage(request) && wholeResponse) })}${from}
ORDER BY ${order}
LIMIT {limit: UInt32}`,
    query_params: { ...query_params, limit: request.limit },
    // Starting more threads would take longer than the statement itself.
    ...(isSmall && { settings: { max_threads: 1 } }),
  };
}

function maxGroups(dimension: MetricsDimension): number {
  if (dimension === 'resource_type') return resourceTypes().length;
  return dimension === 'billing_dimension' ? billingDimensions().length : Number.POSITIVE_INFINITY;
}

/**
 * Returns true if all groups certainly fit on the first page. The statement then omits the columns for later pages. A billing dimension has
 * one resource type, so grouping by both yields no more groups than grouping by the one with more values.
 */
export function hasOnePage({ groupBy, limit }: Pick<MetricsQuery, 'groupBy' | 'limit'>): boolean {
  return Math.max(1, ...groupBy.map(maxGroups)) <= limit;
}

export function selectList(columns: Readonly<Record<string, string>>): string {
  return Object.entries(columns)
    .map(([name, value]) => `${value} AS ${name}`)
    .join(',\n  ');
}

export interface RankedGroups {
  /** Expressions of the columns that differ by group, in computed and in stored results. An expression may use the columns before it. */
  readonly columns: Readonly<Record<'values' | 'cost' | 'usage' | 'series', string>>;
  readonly wholeResponse: Readonly<Record<'total_groups' | 'total_cost' | 'total_usage' | keyof SnapshotMark, string>>;
  readonly from: string;
  readonly order: string;
  readonly query_params: StatementParameters;
  /** True if the statement reads only rollup rows of one account, and of these only the summary arrays. */
  readonly isSmall: boolean;
}

/** Identifies the data of a result. A later page uses the mark to detect whether the result has changed since the first page. */
export interface SnapshotMark {
  /** A hash of all groups, independent of their order: UInt64 in decimal digits. */
  readonly digest: string;
  /** The newest block that the result read: UInt64 in decimal digits. Inserts that become visible later have higher block numbers. */
  readonly newest_block: string;
}

export function rankedGroups(request: MetricsQuery): RankedGroups {
  const { accounts, groupBy, window, resolution, rollups = NO_ROLLUPS, asOf } = request;
  const keys = groupBy.map(columnOf);
  const segments = planSegments(withEvents(window), resolution, rollups);
  const shown = shownDimensions(request);
  const columns = shown.filter((dimension) => !isKnown(dimension, groupBy));
  const isOneBucket = bucketStart(window.startTime, resolution) === bucketStart(window.endTime - 1, resolution);
  const requested = { accounts, resolution, columns, filters: filtersOf(request), isOneBucket, asOf };
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
      ...selectionParameters(request, segments),
      axis_start: axisStart(window, resolution),
      ...(asOf !== undefined && { as_of: asOf }),
    },
    isSmall:
      onlyAccount(accounts) !== undefined &&
      segments.every(({ source }) => source !== 'events') &&
      smallestArrays([...columns, ...requested.filters.map(({ dimension }) => dimension)]) === 'summary',
  };
}

export function shownDimensions({ groupBy, hidesWorkspace }: Grouping): MetricsDimension[] {
  const enriched = enrichedDimensions(groupBy);
  return [...groupBy, ...enriched.filter((dimension) => dimension !== 'workspace' || !hidesWorkspace)];
}

/** Returns an SQL expression: the dimension's value if all usage of the group has the same value, otherwise NO_VALUE. */
function shownValue(dimension: MetricsDimension, groupBy: readonly MetricsDimension[]): string {
  const column = columnOf(dimension);
  if (groupBy.includes(dimension)) return column;
  return isKnown(dimension, groupBy)
    ? `'${NO_VALUE}'`
    : `if(min(${column}) = max(${column}), min(${column}), '${NO_VALUE}')`;
}

/** The value of a dimension that has several values in a group or is not read (see {@link isKnown}). Names are never empty. */
export const NO_VALUE = '';

/** Returns true if the query need not read the resource type, because the billing dimension determines it. */
function isKnown(dimension: MetricsDimension, groupBy: readonly MetricsDimension[]): boolean {
  return dimension === 'resource_type' && !groupBy.includes(dimension) && groupBy.includes('billing_dimension');
}

interface EntriesQuery extends Pick<MetricsQuery, 'accounts' | 'resolution'> {
  readonly columns: readonly MetricsDimension[];
  readonly filters: readonly Filter[];
  /** True if the window is a single bucket. The series of a group is then just the group's cost and usage. */
  readonly isOneBucket: boolean;
  readonly asOf: string | undefined;
}

/** A FROM clause, and the expressions to sum over its rows. A group may have any number of rows per time bucket. */
interface Entries {
  readonly from: string;
  /** Expression of the bucket's index on the time axis, which begins at the parameter `axis_start`. */
  readonly bucket: string;
  readonly cost: string;
  readonly usage: string;
  /** Expression of the newest block that the row was computed from; 0 for rollup rows. */
  readonly block: string;
}

/**
 * Combines the entries of all segments. A single segment is read without a subquery, unless it has events of several buckets. Such events
 * are first summed by group and bucket, which takes less time per event than `sumMap` (docs/decisions/0022).
 */
function entriesOf(segments: readonly Segment[], request: EntriesQuery): Entries {
  const parts = segments.map((segment, index) => ({ segment, entries: segmentEntries(segment, index, request) }));
  const [only, ...others] = parts;
  if (only && others.length === 0 && (only.segment.source !== 'events' || request.isOneBucket)) return only.entries;
  // Events, and single hours of days with dirty hours, have many rows per group and bucket. Summing them first is faster than `sumMap`.
  const selects = parts.map(({ segment: { source, days }, entries }) =>
    source === 'events' || days ? sumsSelect(entries, request) : entriesSelect(entries, request),
  );
  const from = `
FROM
(${selects.join('\n  UNION ALL')}
)`;
  return { from, bucket: 'entry_bucket', cost: 'entry_cost', usage: 'entry_usage', block: 'entry_block' };
}

function segmentEntries({ source, ...span }: Segment, index: number, request: EntriesQuery): Entries {
  return source === 'events' ? eventEntries(span, index, request) : rollupEntries(source, span, index, request);
}

function sumsSelect({ from, bucket, cost, usage, block }: Entries, request: EntriesQuery): string {
  const sums = { bucket, cost: `sum(${cost})`, usage: `sum(${usage})`, block: `max(${block})` };
  const keys = [...request.columns.map(columnOf), 'entry_bucket'].join(', ');
  return `${entriesSelect({ ...sums, from }, request)}\n  GROUP BY ${keys}`;
}

function entriesSelect({ from, bucket, cost, usage, block }: Entries, request: EntriesQuery): string {
  const columns = [
    ...request.columns.map(columnOf),
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
 * PREWHERE drops rows inserted after block `as_of` before FINAL picks a row for each event. Otherwise a later revision would hide the
 * revision that was current at that block.
 */
function eventEntries(span: TimeSpan, index: number, request: EntriesQuery): Entries {
  const { accounts, resolution, filters, asOf } = request;
  const upTo = asOf === undefined ? '' : '\nPREWHERE _block_number <= {as_of: UInt64}';
  const conditions = [...eventsCondition(accounts, span, index), ...filters.map(({ condition }) => condition)];
  const from = `\nFROM usage_events FINAL${upTo}\nWHERE ${conditions.join('\n  AND ')}`;
  const bucket = BUCKETS[resolution]('event_hour');
  return { from, bucket, cost: 'usage_events.cost', usage: 'usage_events.usage', block: '_block_number' };
}

/**
 * Reads rollup rows. Each has an array with the sums of its groups, so this reads one row per entry of the array. A query without dimensions
 * needs only the sum of the whole rollup row.
 */
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
    // Skip rollup rows whose events are all voided. Such a row has no entries, and its account must not become a group.
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

/** Rollup rows do not store the block numbers of their events. */
const NO_BLOCK = 'toUInt64(0)';

function smallestArrays(dimensions: readonly MetricsDimension[]): RollupArrays {
  const inSummary: readonly MetricsDimension[] = ROLLUP_ARRAYS.summary;
  return dimensions.every((dimension) => dimension === 'account' || inSummary.includes(dimension))
    ? 'summary'
    : 'detail';
}

/** All buckets except months have a fixed length, because UTC has no daylight saving time. */
function fixedBucket(milliseconds: number): (hour: string) => string {
  return (hour) => `toInt32(intDiv(toUInt32(${hour}) - {axis_start: Int64}, ${milliseconds / 1000}))`;
}

const BUCKETS = {
  hourly: fixedBucket(MS_PER_HOUR),
  daily: fixedBucket(MS_PER_DAY),
  weekly: fixedBucket(7 * MS_PER_DAY),
  monthly: (hour) => `toInt32(dateDiff('month', toDateTime(0, 'UTC'), ${hour}) - {axis_start: Int64})`,
} as const satisfies Record<Resolution, (hour: string) => string>;

/** Returns the start of the axis in seconds since 1970, or in months since 1970 for monthly buckets. */
function axisStart({ startTime }: Window, resolution: Resolution): number {
  const start = bucketStart(startTime, resolution);
  if (resolution !== 'monthly') return start / 1000;
  const first = new Date(start);
  return (first.getUTCFullYear() - 1970) * 12 + first.getUTCMonth();
}
