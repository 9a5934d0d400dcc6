/** The buckets of an answer, counted in SQL from where its axis begins. */
import { bucketStart, MS_PER_DAY, MS_PER_HOUR, type Resolution, type Window } from '@meterline/catalog';

/** UTC has no daylight saving, so all buckets but months have one length. */
function fixedBucket(milliseconds: number): (hour: string) => string {
  return (hour) => `toInt32(intDiv(toUInt32(${hour}) - {axis_start: Int64}, ${milliseconds / 1000}))`;
}

/** The index of a time's bucket on the axis. */
export const BUCKETS = {
  hourly: fixedBucket(MS_PER_HOUR),
  daily: fixedBucket(MS_PER_DAY),
  weekly: fixedBucket(7 * MS_PER_DAY),
  monthly: (hour) => `toInt32(dateDiff('month', toDateTime(0, 'UTC'), ${hour}) - {axis_start: Int64})`,
} as const satisfies Record<Resolution, (hour: string) => string>;

/** Where the axis begins, counted from 1970 on: seconds, or months. An axis may begin long before the first event. */
export function axisStart({ startTime }: Window, resolution: Resolution): number {
  const start = bucketStart(startTime, resolution);
  if (resolution !== 'monthly') return start / 1000;
  const first = new Date(start);
  return (first.getUTCFullYear() - 1970) * 12 + first.getUTCMonth();
}
