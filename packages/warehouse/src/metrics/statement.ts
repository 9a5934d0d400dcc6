/**
 * The SQL of an answer, from the outermost SELECT down to the conditions on its tables. One statement reads each segment
 * of the window once, so that groups, their series and the totals add up.
 *
 * Two rules keep it fast (docs/decisions/0010). It is flat: each level of subqueries costs ClickHouse a millisecond to
 * plan, and a summary costs not many more to compute. And parameters never get a name in SELECT, because such a name
 * hides the column of that name in WHERE.
 */
import { bucketStart, enrichedDimensions, type GroupByDimension, type Resolution } from '@meterline/catalog';
import type { Relation, Statement } from '../clickhouse/connection.js';
import { CELL_ARRAYS, CELL_TABLE, type CellArrays, GRAIN_MS, type Grain } from '../rollups/cells.js';
import { NO_CELLS, type ReadableCells } from '../rollups/watermarks.js';
import { axisStart, BUCKETS } from './axis.js';
import {
  bucketsCondition,
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
  readonly groupBy: readonly GroupByDimension[];
  /** Groups do not show their workspace, unless they are grouped by it: a member may not see which there are. */
  readonly hidesWorkspace?: boolean;
}

export interface MetricsQuestion extends Selection, Grouping {
  readonly resolution: Resolution;
  /** Which cells may be read, as known before the question is asked; nothing: the events alone answer. */
  readonly cells?: ReadableCells;
  /** Only events up to this block answer, as they did for an earlier page; see {@link SnapshotMark}. */
  readonly asOf?: string;
  /** The most groups to return. */
  readonly limit: number;
}

/** The first groups of the ranking, each with the columns that describe the whole answer. */
export function metricsStatement(question: MetricsQuestion): Statement {
  const { columns, wholeAnswer, from, order, query_params, readsLittle } = rankedGroups(question);
  // Without groupBy there is one row. Sorting it would still take time.
  const first = question.groupBy.length > 0 ? `\nORDER BY ${order}\nLIMIT {limit: UInt32}` : '';
  return {
    name: 'read_metrics',
    query: `
SELECT
  ${selectList({ ...columns, ...wholeAnswer })}${from}${first}`,
    query_params: { ...query_params, limit: question.limit },
    // A tenth of the time of a short statement goes into pipelines for threads that find nothing to read.
    ...(readsLittle && { settings: { max_threads: 1 } }),
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
  readonly columns: Readonly<Record<'values' | 'cost' | 'usage' | 'series', string>>;
  /** How each column that is the same for every group is computed. */
  readonly wholeAnswer: Readonly<Record<'total_groups' | 'total_cost' | 'total_usage' | keyof SnapshotMark, string>>;
  /** From FROM to GROUP BY. */
  readonly from: string;
  /** Of the ranking: cost descending, then the dimensions' values ascending, bytewise. */
  readonly order: string;
  readonly query_params: Relation['query_params'];
  /** Whether all that is read is the small arrays of few cells, which lie together. */
  readonly readsLittle: boolean;
}

/** A month of days, or a day of hours: those of an account with thousands of workspaces are not small. */
const FEW_CELLS = 31;

/** By which a later page can tell whether what it computes is the answer that the first page was part of. */
export interface SnapshotMark {
  /** A hash of all groups with their cost and usage, in no order: UInt64 as decimal digits. */
  readonly digest: string;
  /**
   * The newest block of `usage_events` that an event of the answer was read from: UInt64 as decimal digits. Blocks are
   * numbered in the order in which inserts become visible, so later inserts have higher numbers.
   */
  readonly newest_block: string;
}

export function rankedGroups(question: MetricsQuestion): RankedGroups {
  const { groupBy, window, resolution, cells = NO_CELLS, asOf } = question;
  const segments = planSegments(withEvents(window), resolution, cells);
  const shown = shownDimensions(question);
  const columns = shown.filter((dimension) => !isKnown(dimension, groupBy));
  const isGrouped = groupBy.length > 0;
  const isOneBucket = bucketStart(window.startTime, resolution) === bucketStart(window.endTime - 1, resolution);
  const filters = filtersOf(question);
  const entries = entriesOf(segments, { resolution, columns, filters, isGrouped, isOneBucket, asOf });
  const { bucket, cost, usage, block, from } = entries;
  return {
    columns: {
      values: `[${shown.map((dimension) => shownValue(dimension, groupBy)).join(', ')}]`,
      cost: `sum(${cost})`,
      usage: `sum(${usage})`,
      series: isOneBucket ? '([toInt32(0)], [cost], [usage])' : `sumMap([${bucket}], [${cost}], [${usage}])`,
    },
    wholeAnswer: isGrouped ? ofAllGroups(groupBy, block) : OF_ONE_GROUP,
    from: isGrouped ? `${from}\nGROUP BY ${groupBy.join(', ')}` : from,
    order: ['cost DESC', ...groupBy].join(', '),
    query_params: {
      ...selectionParameters(question, segments),
      axis_start: axisStart(window, resolution),
      ...(asOf !== undefined && { as_of: asOf }),
    },
    readsLittle: segments.every(isOfFewCells) && smallestArrays(dimensionsRead({ columns, filters })) === 'summary',
  };
}

/** The cells of one account; there are three such segments at most. */
function isOfFewCells({ source, from, to }: Segment): boolean {
  return source !== 'events' && (to - from) / GRAIN_MS[source] <= FEW_CELLS;
}

function ofAllGroups(groupBy: readonly GroupByDimension[], block: string): RankedGroups['wholeAnswer'] {
  return {
    total_groups: 'toUInt32(count() OVER ())',
    total_cost: 'sum(cost) OVER ()',
    total_usage: 'sum(usage) OVER ()',
    digest: `sum(sipHash64(${groupBy.join(', ')}, cost, usage)) OVER ()`,
    newest_block: `max(max(${block})) OVER ()`,
  };
}

/** Without groupBy there is one page. */
const OF_ONE_GROUP: RankedGroups['wholeAnswer'] = {
  total_groups: 'toUInt32(1)',
  total_cost: 'cost',
  total_usage: 'usage',
  digest: 'toUInt64(0)',
  newest_block: 'toUInt64(0)',
};

/** The dimensions whose values a group shows: those it is grouped by, then those that enrich it. */
export function shownDimensions({ groupBy, hidesWorkspace }: Grouping): GroupByDimension[] {
  const enriched = enrichedDimensions(groupBy);
  return [...groupBy, ...enriched.filter((dimension) => dimension !== 'workspace' || !hidesWorkspace)];
}

/** What all usage of the group has in common, or what stands for it. */
function shownValue(column: GroupByDimension, groupBy: readonly GroupByDimension[]): string {
  if (groupBy.includes(column)) return column;
  return isKnown(column, groupBy)
    ? `'${NO_VALUE}'`
    : `if(min(${column}) = max(${column}), min(${column}), '${NO_VALUE}')`;
}

/** Where a group has several values, and where its value is known without reading it. A name is never empty. */
export const NO_VALUE = '';

/** A billing dimension belongs to one type, which need not be read. */
function isKnown(column: GroupByDimension, groupBy: readonly GroupByDimension[]): boolean {
  return column === 'resource_type' && !groupBy.includes(column) && groupBy.includes('billing_dimension');
}

/** What is asked of every segment. */
interface EntriesQuestion {
  readonly resolution: Resolution;
  /** The dimensions that the entries show. */
  readonly columns: readonly GroupByDimension[];
  /** A condition for each filtered dimension. */
  readonly filters: readonly Filter[];
  /** Whether there may be more pages, so that blocks matter. */
  readonly isGrouped: boolean;
  /** Whether the whole window is one bucket, so that a group's series is its cost and usage. */
  readonly isOneBucket: boolean;
  readonly asOf: string | undefined;
}

/** Rows of partial sums: any number of them for a group and bucket. */
interface Entries {
  /** FROM and WHERE. Its columns are the question's, and those that the expressions below are made of. */
  readonly from: string;
  /** Index of the bucket on the axis that begins at the parameter `axis_start`. */
  readonly bucket: string;
  readonly cost: string;
  readonly usage: string;
  /** The newest block of events in the row; 0 for a cell. */
  readonly block: string;
}

/**
 * One segment that answers alone is read without a subquery. Events of several buckets are the exception: `sumMap` takes
 * longer for each event than adding them up by group and bucket before it (docs/decisions/0022).
 */
function entriesOf(segments: readonly Segment[], question: EntriesQuestion): Entries {
  const [only, ...others] = segments;
  if (only && others.length === 0 && (only.source !== 'events' || question.isOneBucket)) {
    return only.source === 'events' ? eventEntries(only, 0, question) : cellEntries(only.source, only, 0, question);
  }
  const selects = segments.map((segment, index) =>
    segment.source === 'events'
      ? eventsSelect(segment, index, question)
      : cellsSelect(segment.source, segment, index, question),
  );
  const from = `
FROM
(${selects.join('\n  UNION ALL')}
)`;
  return { from, bucket: 'entry_bucket', cost: 'entry_cost', usage: 'entry_usage', block: 'entry_block' };
}

/** Added up here already: of events there are many to a group and bucket. */
function eventsSelect(segment: TimeSpan, index: number, question: EntriesQuestion): string {
  return sumsSelect(eventEntries(segment, index, question), question);
}

/** Also of hours of days, where the answer has days or more: some twenty to a bucket, and `sumMap` takes longer for each. */
function cellsSelect(grain: Grain, span: TimeSpan, index: number, question: EntriesQuestion): string {
  const entries = cellEntries(grain, span, index, question);
  return span.days ? sumsSelect(entries, question) : entriesSelect(entries, question);
}

function sumsSelect({ from, bucket, cost, usage, block }: Entries, question: EntriesQuestion): string {
  const sums = { bucket, cost: `sum(${cost})`, usage: `sum(${usage})`, block: `max(${block})` };
  const keys = [...question.columns, 'entry_bucket'].join(', ');
  return `${entriesSelect({ ...sums, from }, question)}\n  GROUP BY ${keys}`;
}

/** Part of a UNION: the columns of all its parts have the same names. */
function entriesSelect({ from, bucket, cost, usage, block }: Entries, question: EntriesQuestion): string {
  const columns = [
    ...question.columns,
    `${bucket} AS entry_bucket`,
    `${cost} AS entry_cost`,
    `${usage} AS entry_usage`,
    ...(question.isGrouped ? [`${block} AS entry_block`] : []),
  ];
  return `
  SELECT
    ${columns.join(',\n    ')}${from.replaceAll('\n', '\n  ')}`;
}

/**
 * A row for each event. What was inserted after block `as_of` is left out before FINAL chooses a row of each event, so that
 * a revision does not hide what it revises.
 */
function eventEntries(segment: TimeSpan, index: number, { resolution, filters, asOf }: EntriesQuestion): Entries {
  const upTo = asOf === undefined ? '' : '\nPREWHERE _block_number <= {as_of: UInt64}';
  const conditions = [...eventsCondition(segment, index), ...filters.map(({ condition }) => condition)];
  const from = `\nFROM usage_events FINAL${upTo}\nWHERE ${conditions.join('\n  AND ')}`;
  const bucket = BUCKETS[resolution]('event_hour');
  return { from, bucket, cost: 'usage_events.cost', usage: 'usage_events.usage', block: '_block_number' };
}

/** A row for each entry of the arrays, or for each cell when its entries need not be told apart. */
function cellEntries(
  grain: Grain,
  span: TimeSpan,
  index: number,
  { resolution, columns, filters }: EntriesQuestion,
): Entries {
  const table = CELL_TABLE[grain];
  const read = dimensionsRead({ columns, filters });
  const arrays = smallestArrays(read);
  const condition = [
    'account_id = {account_id: String}',
    ...bucketsCondition(`${table}.bucket`, span, index),
    ...filters.map(({ condition }) => condition),
  ].join('\n  AND ');
  const bucket = BUCKETS[resolution](`${table}.bucket`);
  if (read.length === 0) {
    const from = `\nFROM ${table} FINAL\nWHERE ${condition}`;
    return { from, bucket, cost: `arraySum(${arrays}.cost)`, usage: `arraySum(${arrays}.usage)`, block: NO_BLOCK };
  }
  const joined = [
    ...read.map((column) => `${arrays}.${column} AS ${column}`),
    `${arrays}.cost AS cell_cost`,
    `${arrays}.usage AS cell_usage`,
  ];
  const from = `\nFROM ${table} FINAL\nARRAY JOIN\n  ${joined.join(',\n  ')}\nWHERE ${condition}`;
  return { from, bucket, cost: 'cell_cost', usage: 'cell_usage', block: NO_BLOCK };
}

function dimensionsRead({ columns, filters }: Pick<EntriesQuestion, 'columns' | 'filters'>): GroupByDimension[] {
  return [...new Set([...columns, ...filters.map(({ dimension }) => dimension)])];
}

/** Of a cell, which says nothing about the blocks of its events. */
const NO_BLOCK = 'toUInt64(0)';

/** The smaller set of a cell's arrays that has all these dimensions. */
export function smallestArrays(dimensions: readonly GroupByDimension[]): CellArrays {
  const inSummary: readonly GroupByDimension[] = CELL_ARRAYS.summary;
  return dimensions.every((dimension) => inSummary.includes(dimension)) ? 'summary' : 'detail';
}
