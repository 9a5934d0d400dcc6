/** The window of a segment as a condition, with its parameters. */
import type { EpochMs, GroupByDimension } from '@meterline/catalog';
import { bucketOf } from './grain.js';
import type { Segment } from './segments.js';

export type SegmentWindow = Pick<Segment, 'from' | 'to'>;

/** Beyond this ClickHouse's DateTime cannot tell a time. */
const DATE_TIME_END: EpochMs = 2 ** 32 * 1000;

/**
 * Of segment number `index`: seconds for a window of whole hours, milliseconds for any other. With seconds a DateTime is
 * compared as the number that it is, and planning a short statement takes a tenth less.
 */
export function segmentParameters(window: SegmentWindow, index: number): Record<string, number> {
  const unit = isOfWholeHours(window) ? 1000 : 1;
  return { [`from_${index}`]: window.from / unit, [`to_${index}`]: window.to / unit };
}

/** @param column a DateTime at the start of an hour or day, of a segment that begins and ends with one */
export function bucketsCondition(column: string, index: number): string[] {
  return [`${column} >= {from_${index}: UInt32}`, `${column} < {to_${index}: UInt32}`];
}

/**
 * The events that count: voided ones do so nowhere. A revision may move an event within its hour, so the exact window is
 * a condition on the surviving row, and the hours only narrow what is read.
 */
export function eventsCondition(
  window: SegmentWindow,
  index: number,
  filters: readonly GroupByDimension[] = [],
): string[] {
  const times = isOfWholeHours(window)
    ? bucketsCondition('event_hour', index)
    : [
        `event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC'))`,
        `event_hour <= toDateTime(intDiv({to_${index}: Int64} - 1, 1000), 'UTC')`,
        `timestamp >= fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC')`,
        `timestamp < fromUnixTimestamp64Milli({to_${index}: Int64}, 'UTC')`,
      ];
  return ['account_id = {account_id: String}', ...times, 'NOT voided', ...filters.map(filterCondition)];
}

/** The dimension is held to one value, a parameter of the same name. */
export function filterCondition(dimension: GroupByDimension): string {
  return `${dimension} = {${dimension}: String}`;
}

function isOfWholeHours({ from, to }: SegmentWindow): boolean {
  return from >= 0 && to < DATE_TIME_END && bucketOf(from, 'hourly') === from && bucketOf(to, 'hourly') === to;
}
