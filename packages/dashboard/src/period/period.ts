/** Defines the periods of a view (presets, calendar months, custom ranges), and formats dates. All times are in UTC. */
import {
  bucketAxis,
  bucketStart,
  type EpochMs,
  MS_PER_DAY,
  MS_PER_HOUR,
  type PeriodChoice,
  plusMonths,
  presetOf,
  type Resolution,
  type Window,
  wholeMonths,
} from '@meterline/catalog/plain';
import { dateFormat } from '../format/locale.js';

const SECOND_MS = 1_000;

/** Returns the start of the window if the window is one calendar month. */
export function monthOf(window: Window): EpochMs | undefined {
  return wholeMonths(window) === 1 ? window.startTime : undefined;
}

/** Returns the current time in whole seconds. All data on the screen refers to this time. */
export function currentSecond(): EpochMs {
  const now = Date.now();
  return now - (now % SECOND_MS);
}

export function bucketWindow(bucket: EpochMs, resolution: Resolution, window: Window): Window {
  return {
    startTime: Math.max(bucket, window.startTime),
    endTime: Math.min(bucketEnd(bucket, resolution), window.endTime),
  };
}

/** Returns the end of a bucket. @param bucket the calendar start of the bucket */
function bucketEnd(bucket: EpochMs, resolution: Resolution): EpochMs {
  const [, next = bucket] = bucketAxis({ startTime: bucket, endTime: bucket + 32 * MS_PER_DAY }, resolution);
  return next;
}

/** Returns the index of the bucket in progress, or undefined if the window has no such bucket. */
export function unfinishedBucket(
  buckets: readonly EpochMs[],
  resolution: Resolution,
  asOf: EpochMs,
): number | undefined {
  const position = buckets.findLastIndex((bucket) => bucket < asOf);
  const bucket = buckets[position];
  return bucket !== undefined && asOf < bucketEnd(bucket, resolution) ? position : undefined;
}

const dayText = dateFormat({ day: 'numeric', month: 'short' });
const fullDayText = dateFormat({ day: 'numeric', month: 'short', year: 'numeric' });
const weekdayText = dateFormat({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' });
const shortMonthText = dateFormat({ month: 'short', year: 'numeric' });
const timeText = dateFormat({ hour: '2-digit', minute: '2-digit' });

/** Formats a month, such as `November 2026`. */
export const monthText = dateFormat({ month: 'long', year: 'numeric' });
/** Formats a time, such as `16:49:03`. */
export const clockText = dateFormat({ hour: '2-digit', minute: '2-digit', second: '2-digit' });

/** Formats a bucket in a short form for the axis of a chart. */
export function tickText(bucket: EpochMs, resolution: Resolution): string {
  if (resolution === 'monthly') return shortMonthText(bucket);
  if (resolution === 'hourly') return bucket % MS_PER_DAY === 0 ? dayText(bucket) : timeText(bucket);
  return dayText(bucket);
}

/** Formats a bucket in a full form for a tooltip or a table. */
export function bucketText(bucket: EpochMs, resolution: Resolution): string {
  switch (resolution) {
    case 'hourly':
      return `${weekdayText(bucket)}, ${timeText(bucket)}–${timeText(bucket + MS_PER_HOUR)}`;
    case 'daily':
      return weekdayText(bucket);
    case 'weekly':
      return `Week of ${fullDayText(bucket)}`;
    case 'monthly':
      return monthText(bucket);
  }
}

/** Formats a window as days, such as `1 Nov – 21 Nov 2026`. Adds times other than midnight. Omits the year if it is that of `omitYearOf`. */
export function windowText({ startTime, endTime }: Window, omitYearOf?: EpochMs): string {
  // A window that ends at midnight does not include the next day.
  const last = endTime % MS_PER_DAY === 0 ? endTime - MS_PER_DAY : endTime;
  const times = {
    from: startTime % MS_PER_DAY === 0 ? '' : ` ${timeText(startTime)}`,
    to: endTime % MS_PER_DAY === 0 ? '' : ` ${timeText(endTime)}`,
  };
  if (last === startTime) return fullDayText(startTime);
  const fromText = yearNumber(startTime) === yearNumber(last) ? dayText : fullDayText;
  const toText = omitYearOf !== undefined && yearNumber(last) === yearNumber(omitYearOf) ? dayText : fullDayText;
  return `${fromText(startTime)}${times.from} – ${toText(last)}${times.to}`;
}

function yearNumber(instant: EpochMs): number {
  return new Date(instant).getUTCFullYear();
}

export function periodText(period: PeriodChoice): string {
  if (!('preset' in period)) {
    const window = { startTime: period.from, endTime: period.to };
    const month = monthOf(window);
    return month === undefined ? windowText(window) : monthText(month);
  }
  return presetOf(period.preset).label;
}

const MONTHS_OFFERED = 24;

/** Returns the months of the last two years, and the month on the screen. */
export function monthChoices(now: EpochMs, shown: EpochMs | undefined) {
  const recent = Array.from({ length: MONTHS_OFFERED }, (_, back) => plusMonths(bucketStart(now, 'monthly'), -back));
  const months = shown === undefined || recent.includes(shown) ? recent : [...recent, shown];
  return months.map((month) => ({ value: String(month), label: monthText(month) }));
}

/** Formats a day as the value of a date input, such as `2026-11-21`. */
export const dateText = (instant: EpochMs) => new Date(instant).toISOString().slice(0, 10);

/** Formats an instant, such as `21 Nov 2026, 09:14`. */
export const instantText = (instant: string) => `${fullDayText(new Date(instant))}, ${timeText(new Date(instant))}`;
