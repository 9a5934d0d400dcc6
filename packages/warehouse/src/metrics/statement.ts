/**
 * The SQL of an answer, from the outermost SELECT down to the conditions on its tables. One statement reads each segment
 * of the window once, so that groups, their series and the totals add up.
 *
 * Two rules keep it fast (docs/decisions/0010). It is flat: each level of subqueries costs ClickHouse a millisecond to
 * plan, and a summary costs not many more to compute. And parameters never get a name in SELECT, because such a name
 * hides the column of that name in WHERE.
 */
import {
  bucketStart,
  type EpochMs,
  enrichedDimensions,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  MS_PER_DAY,
  MS_PER_HOUR,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import type { Relation, Statement } from '../clickhouse/connection.js';
import { bucketOf, CELL_ARRAYS, CELL_TABLE, type CellArrays, type Grain } from '../rollups/cells.js';
import { NOTHING_SEALED, type SealedUntil } from '../rollups/watermarks.js';
import { planSegments, type Segment } from './plan.js';

/** Which events a question is about: one account, a window, and values that dimensions must have. */
export interface Selection {
  readonly accountId: string;
  readonly window: Window;
  readonly filters: Readonly<Partial<Record<GroupByDimension, string>>>;
}

export interface MetricsQuestion extends Selection {
  readonly resolution: Resolution;
  /** Which cells may be read, as known before the question is asked; nothing: the events alone answer. */
  readonly sealed?: SealedUntil;
  /** In canonical order; empty for the aggregate of everything. */
  readonly groupBy: readonly GroupByDimension[];
  /** The most groups to return. */
  readonly limit: number;
}

/** The first groups of the ranking. */
export function metricsStatement(question: MetricsQuestion): Statement {
  const { columns, from, order, query_params } = rankedGroups(question);
  // Without groupBy there is one row. Sorting it would still take time.
  const first = question.groupBy.length > 0 ? `\nORDER BY ${order}\nLIMIT {limit: UInt32}` : '';
  return {
    name: 'read_metrics',
    query: `
SELECT
  ${selectList(columns)}${from}${first}`,
    query_params: { ...query_params, limit: question.limit },
  };
}

export function selectList(columns: Readonly<Record<string, string>>): string {
  return Object.entries(columns)
    .map(([name, value]) => `${value} AS ${name}`)
    .join(',\n  ');
}

/** All groups that answer a question, as parts of one SELECT. */
export interface RankedGroups {
  /** How each column that describes a group is computed, in a live answer and in a stored one; each may use those before it. */
  readonly columns: Readonly<Record<'values' | 'cost' | 'usage' | 'series' | 'total_groups', string>>;
  /** From FROM to GROUP BY. */
  readonly from: string;
  /** Of the ranking: cost descending, then the dimensions' values ascending, bytewise. */
  readonly order: string;
  readonly query_params: Relation['query_params'];
}

export function rankedGroups(question: MetricsQuestion): RankedGroups {
  const { groupBy, window, resolution, sealed = NOTHING_SEALED } = question;
  const segments = planSegments(window, resolution, sealed);
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
export function shownDimensions(groupBy: readonly GroupByDimension[]): GroupByDimension[] {
  return [...groupBy, ...enrichedDimensions(groupBy)];
}

/** What the groups have in common, or what stands for it where they enrich. */
function shownValue(column: GroupByDimension, groupBy: readonly GroupByDimension[], cost: string): string {
  if (groupBy.includes(column)) return column;
  return isKnown(column, groupBy) ? `'${NOT_READ}'` : dominantValue(column, cost);
}

/** In place of a value that is known without reading it; no dimension but the uuid may be empty. */
export const NOT_READ = '';

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

/** What is asked of every segment. */
interface EntriesQuestion {
  readonly resolution: Resolution;
  /** The dimensions that the entries show. */
  readonly columns: readonly GroupByDimension[];
  /** The dimensions that must have one value, a parameter of the same name. */
  readonly filters: readonly GroupByDimension[];
}

/** Rows of partial sums: any number of them for a group and bucket. */
interface Entries {
  /** FROM and WHERE. Its columns are the question's, and those that the expressions below are made of. */
  readonly from: string;
  /** Index of the bucket on the axis that begins at the parameter `axis_start`. */
  readonly bucket: string;
  readonly cost: string;
  readonly usage: string;
}

/** Cells that answer alone are read without a subquery. */
function entriesOf(segments: readonly Segment[], question: EntriesQuestion): Entries {
  const [only, ...others] = segments;
  if (only && others.length === 0 && only.source !== 'events') return cellEntries(only.source, 0, question);
  const selects = segments.map((segment, index) =>
    segment.source === 'events' ? eventsSelect(segment, index, question) : cellsSelect(segment.source, index, question),
  );
  const from = `
FROM
(${selects.join('\n  UNION ALL')}
)`;
  return { from, bucket: 'entry_bucket', cost: 'entry_cost', usage: 'entry_usage' };
}

/** Added up here already: of events there are many to a group and bucket. */
function eventsSelect(segment: TimeSpan, index: number, { resolution, columns, filters }: EntriesQuestion): string {
  return `
  SELECT
    ${[...columns, `${BUCKETS[resolution]('event_hour')} AS entry_bucket`].join(',\n    ')},
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage
  FROM usage_events FINAL
  WHERE ${[...eventsCondition(segment, index), ...filters.map(filterCondition)].join('\n    AND ')}
  GROUP BY ${[...columns, 'entry_bucket'].join(', ')}`;
}

function cellsSelect(grain: Grain, index: number, question: EntriesQuestion): string {
  const { from, bucket, cost, usage } = cellEntries(grain, index, question);
  const columns = [
    ...question.columns,
    `${bucket} AS entry_bucket`,
    `${cost} AS entry_cost`,
    `${usage} AS entry_usage`,
  ];
  return `
  SELECT
    ${columns.join(',\n    ')}${from.replaceAll('\n', '\n  ')}`;
}

/** A row for each entry of the arrays, or for each cell when its entries need not be told apart. */
function cellEntries(grain: Grain, index: number, { resolution, columns, filters }: EntriesQuestion): Entries {
  const table = CELL_TABLE[grain];
  const read = [...new Set([...columns, ...filters])];
  const arrays = smallestArrays(read);
  const condition = [
    'account_id = {account_id: String}',
    ...bucketsCondition(`${table}.bucket`, index),
    ...filters.map(filterCondition),
  ].join('\n  AND ');
  const bucket = BUCKETS[resolution](`${table}.bucket`);
  if (read.length === 0) {
    const from = `\nFROM ${table} FINAL\nWHERE ${condition}`;
    return { from, bucket, cost: `arraySum(${arrays}.cost)`, usage: `arraySum(${arrays}.usage)` };
  }
  const joined = [
    ...read.map((column) => `${arrays}.${column} AS ${column}`),
    `${arrays}.cost AS cell_cost`,
    `${arrays}.usage AS cell_usage`,
  ];
  const from = `\nFROM ${table} FINAL\nARRAY JOIN\n  ${joined.join(',\n  ')}\nWHERE ${condition}`;
  return { from, bucket, cost: 'cell_cost', usage: 'cell_usage' };
}

/** The smaller set of a cell's arrays that has all these dimensions. */
function smallestArrays(dimensions: readonly GroupByDimension[]): CellArrays {
  const inSummary: readonly GroupByDimension[] = CELL_ARRAYS.summary;
  return dimensions.every((dimension) => inSummary.includes(dimension)) ? 'summary' : 'detail';
}

/** UTC has no daylight saving, so all buckets but months have one length. The axis may start before 1970. */
function fixedBucket(milliseconds: number): (hour: string) => string {
  return (hour) => `toInt32(intDiv(toUInt32(${hour}) - {axis_start: Int64}, ${milliseconds / 1000}))`;
}

/** The index of a time's bucket on the axis. */
const BUCKETS = {
  hourly: fixedBucket(MS_PER_HOUR),
  daily: fixedBucket(MS_PER_DAY),
  weekly: fixedBucket(7 * MS_PER_DAY),
  monthly: (hour) => `toInt32(dateDiff('month', toDateTime({axis_start: Int64}, 'UTC'), ${hour}))`,
} as const satisfies Record<Resolution, (hour: string) => string>;

/** In canonical order. */
export function filteredDimensions({ filters }: Selection): GroupByDimension[] {
  return GROUP_BY_DIMENSIONS.filter((dimension) => filters[dimension] !== undefined);
}

/** The dimension must have one value, a parameter of the same name. */
function filterCondition(dimension: GroupByDimension): string {
  return `${dimension} = {${dimension}: String}`;
}

export type TimeSpan = Pick<Segment, 'from' | 'to'>;

/**
 * The events that count: voided ones do not. A revision may move an event within its hour, so the exact window is a
 * condition on the surviving row, and the hours only narrow what is read.
 */
export function eventsCondition(span: TimeSpan, index: number): string[] {
  const times = isOfWholeHours(span)
    ? bucketsCondition('event_hour', index)
    : [
        `event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC'))`,
        `event_hour <= toDateTime(intDiv({to_${index}: Int64} - 1, 1000), 'UTC')`,
        `timestamp >= fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC')`,
        `timestamp < fromUnixTimestamp64Milli({to_${index}: Int64}, 'UTC')`,
      ];
  return ['account_id = {account_id: String}', ...times, 'NOT voided'];
}

/** @param column a DateTime at the start of an hour or day, of a segment that begins and ends with one */
export function bucketsCondition(column: string, index: number): string[] {
  return [`${column} >= {from_${index}: UInt32}`, `${column} < {to_${index}: UInt32}`];
}

export function selectionParameters(
  { accountId, filters }: Pick<Selection, 'accountId' | 'filters'>,
  segments: readonly TimeSpan[],
): Relation['query_params'] {
  const times = segments.map((segment, index) => timeParameters(segment, index));
  return { account_id: accountId, ...Object.assign({}, ...times), ...filters };
}

/**
 * Of segment number `index`: seconds for whole hours, milliseconds for anything else. With seconds a DateTime is compared
 * as the number that it is, and planning a short statement takes a tenth less.
 */
function timeParameters(span: TimeSpan, index: number): Record<string, number> {
  const unit = isOfWholeHours(span) ? 1000 : 1;
  return { [`from_${index}`]: span.from / unit, [`to_${index}`]: span.to / unit };
}

/** ClickHouse's DateTime ends here. */
const DATE_TIME_END: EpochMs = 2 ** 32 * 1000;

function isOfWholeHours({ from, to }: TimeSpan): boolean {
  return from >= 0 && to < DATE_TIME_END && bucketOf(from, 'hourly') === from && bucketOf(to, 'hourly') === to;
}
