/** What the segments of a window contribute to a question, whatever their sources, as the FROM and WHERE of a SELECT. */
import { type GroupByDimension, MS_PER_DAY, MS_PER_HOUR, type Resolution } from '@meterline/catalog';
import { arraysFor } from './cell-columns.js';
import { CELL_TABLE, type Grain } from './grain.js';
import { bucketsCondition, eventsCondition, filterCondition, type SegmentWindow } from './segment-window.js';
import type { Segment } from './segments.js';

export interface SegmentQuestion {
  readonly resolution: Resolution;
  /** The dimensions that the entries show. */
  readonly columns: readonly GroupByDimension[];
  /** The dimensions that are held to one value, a parameter of the same name. */
  readonly filters: readonly GroupByDimension[];
}

/** Rows of partial sums: any number of them for a group and bucket. */
export interface Entries {
  /** Its columns are the question's, and those that the expressions below are made of. */
  readonly from: string;
  /** Index of the bucket on the axis that begins at the parameter `axis_start`. */
  readonly bucket: string;
  readonly cost: string;
  readonly usage: string;
}

/**
 * Parameters: account_id, axis_start, one for each filter, and segmentParameters of each segment. Every subquery
 * costs ClickHouse more to plan than a summary costs to compute, so cells that answer alone are read without one.
 */
export function entriesOf(segments: readonly Segment[], question: SegmentQuestion): Entries {
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
function eventsSelect(window: SegmentWindow, index: number, { resolution, columns, filters }: SegmentQuestion): string {
  return `
  SELECT
    ${[...columns, `${BUCKETS[resolution]('event_hour')} AS entry_bucket`].join(',\n    ')},
    sum(usage_events.cost) AS entry_cost,
    sum(usage_events.usage) AS entry_usage
  FROM usage_events FINAL
  WHERE ${eventsCondition(window, index, filters).join('\n    AND ')}
  GROUP BY ${[...columns, 'entry_bucket'].join(', ')}`;
}

function cellsSelect(grain: Grain, index: number, question: SegmentQuestion): string {
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

/** A row for each entry of the arrays, or for each cell when nothing tells its entries apart. */
function cellEntries(grain: Grain, index: number, { resolution, columns, filters }: SegmentQuestion): Entries {
  const table = CELL_TABLE[grain];
  const read = [...new Set([...columns, ...filters])];
  const arrays = arraysFor(read);
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
