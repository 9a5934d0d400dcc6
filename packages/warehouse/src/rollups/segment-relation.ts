/** What one segment of a window contributes to a question, as a relation of the same columns whatever its source. */
import { type EpochMs, type GroupByDimension, MS_PER_DAY, MS_PER_HOUR, type Resolution } from '@meterline/catalog';
import { arraysFor } from './cell-columns.js';
import { CELL_TABLE } from './grain.js';
import type { Segment } from './segments.js';

export interface SegmentQuestion {
  readonly resolution: Resolution;
  /** The dimensions that the relation shows. */
  readonly columns: readonly GroupByDimension[];
  /** The dimensions that are held to one value, a parameter of the same name. */
  readonly filters: readonly GroupByDimension[];
}

/**
 * Columns of each row: the dimensions, bucket (index on the axis that begins at the parameter `axis_start`), cell_cost and
 * cell_usage. Parameters: account_id, axis_start, one for each filter, and {@link segmentParameters}.
 */
export function segmentRelation({ source }: Segment, index: number, question: SegmentQuestion): string {
  return source === 'events' ? eventsRelation(index, question) : cellsRelation(source, index, question);
}

/** The window of segment number `index`, in epoch milliseconds. */
export function segmentParameters({ from, to }: Pick<Segment, 'from' | 'to'>, index: number): Record<string, EpochMs> {
  return { [`from_${index}`]: from, [`to_${index}`]: to };
}

/**
 * Voided events count nowhere; a revision may move an event within its hour, so the exact window is a condition on the
 * surviving row, the hours only narrow what is read.
 */
export function eventsCondition(index: number, filters: readonly GroupByDimension[]): string {
  return [
    'account_id = {account_id: String}',
    `event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC'))`,
    `event_hour <= toDateTime(intDiv({to_${index}: Int64} - 1, 1000), 'UTC')`,
    `timestamp >= fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC')`,
    `timestamp < fromUnixTimestamp64Milli({to_${index}: Int64}, 'UTC')`,
    'NOT voided',
    ...filters.map(filterCondition),
  ].join('\n        AND ');
}

function eventsRelation(index: number, { resolution, columns, filters }: SegmentQuestion): string {
  return `
      SELECT
        ${[...columns, `${BUCKETS[resolution]('event_hour')} AS bucket`].join(',\n        ')},
        sum(usage_events.cost) AS cell_cost,
        sum(usage_events.usage) AS cell_usage
      FROM usage_events FINAL
      WHERE ${eventsCondition(index, filters)}
      GROUP BY ${[...columns, 'bucket'].join(', ')}`;
}

function cellsRelation(
  grain: 'hourly' | 'daily',
  index: number,
  { resolution, columns, filters }: SegmentQuestion,
): string {
  const table = CELL_TABLE[grain];
  const read = [...new Set([...columns, ...filters])];
  const arrays = arraysFor(read);
  return `
      SELECT
        ${[...columns, `${BUCKETS[resolution](`${table}.bucket`)} AS bucket`].join(',\n        ')},
        sum(entry_cost) AS cell_cost,
        sum(entry_usage) AS cell_usage
      FROM ${table} FINAL
      ARRAY JOIN
        ${[...read.map((column) => `${arrays}.${column} AS ${column}`), `${arrays}.cost AS entry_cost`, `${arrays}.usage AS entry_usage`].join(',\n        ')}
      WHERE ${[
        'account_id = {account_id: String}',
        `${table}.bucket >= fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC')`,
        `${table}.bucket < fromUnixTimestamp64Milli({to_${index}: Int64}, 'UTC')`,
        ...filters.map(filterCondition),
      ].join('\n        AND ')}
      GROUP BY ${[...columns, 'bucket'].join(', ')}`;
}

function filterCondition(dimension: GroupByDimension): string {
  return `${dimension} = {${dimension}: String}`;
}

/** UTC has no daylight saving, so all buckets but months have one length. The axis may start before 1970. */
function fixedBucket(milliseconds: number): (hour: string) => string {
  return (hour) => `toInt32(intDiv(toInt64(toUnixTimestamp(${hour})) - {axis_start: Int64}, ${milliseconds / 1000}))`;
}

/** The index of a time's bucket on the axis. */
const BUCKETS = {
  hourly: fixedBucket(MS_PER_HOUR),
  daily: fixedBucket(MS_PER_DAY),
  weekly: fixedBucket(7 * MS_PER_DAY),
  monthly: (hour) => `toInt32(dateDiff('month', toDateTime({axis_start: Int64}, 'UTC'), ${hour}))`,
} as const satisfies Record<Resolution, (hour: string) => string>;
