/** Defines the periods of a view (presets, calendar months, custom ranges), and formats dates. All times are in UTC. */
import {
  bucketAxis,
  bucketStart,
  defaultResolution,
  type EpochMs,
  lastUnits,
  MS_PER_DAY,
  MS_PER_HOUR,
  plusMonths,
  type Resolution,
  type Window,
  wholeMonths,
} from '@meterline/catalog/plain';
import { dateFormat } from '../format/locale.js';

const SECOND_MS = 1_000;
const QUARTER_MONTHS = 3;

const last = (count: number, unit: 'hourly' | 'daily') => (now: EpochMs) => lastUnits(count, unit, now);
const toDate = (startOf: (now: EpochMs) => EpochMs) => (now: EpochMs) => {
  return { startTime: startOf(now), endTime: lastUnits(1, 'daily', now).endTime };
};
const monthAt = (now: EpochMs, months = 0) => plusMonths(bucketStart(now, 'monthly'), months);
const monthOfYear = (now: EpochMs) => new Date(now).getUTCMonth();

/**
 * The window of a preset has whole UTC hours or days. It includes the current hour or day, except for `last-month`. `months` is the length of the full period, which comparisons use: a year to date is compared with the previous year, even if only a few months of
 * the year have passed.
 */
export const PRESETS = [
  { id: '24h', label: 'Last 24 hours', window: last(24, 'hourly') },
  { id: '7d', label: 'Last 7 days', window: last(7, 'daily') },
  { id: '30d', label: 'Last 30 days', window: last(30, 'daily') },
  { id: '90d', label: 'Last 90 days', window: last(90, 'daily') },
  { id: 'week', label: 'Week to date', window: toDate((now) => bucketStart(now, 'weekly')) },
  { id: 'month', label: 'Month to date', months: 1, window: toDate(monthAt) },
  {
    id: 'last-month',
    label: 'Last month',
    months: 1,
    window: (now) => ({ startTime: monthAt(now, -1), endTime: monthAt(now) }),
  },
  {
    id: 'quarter',
    label: 'Quarter to date',
    months: QUARTER_MONTHS,
    window: toDate((now) => monthAt(now, -(monthOfYear(now) % QUARTER_MONTHS))),
  },
  { id: 'year', label: 'Year to date', months: 12, window: toDate((now) => monthAt(now, -monthOfYear(now))) },
  { id: '12m', label: 'Last 12 months', months: 12, bars: 'monthly', window: toDate((now) => monthAt(now, -11)) },
] as const satisfies readonly Preset[];

interface Preset {
  readonly id: string;
  readonly label: string;
  readonly months?: number;
  /** The automatic resolution, if it does not depend on the length of the window. */
  readonly bars?: Resolution;
  readonly window: (now: EpochMs) => Window;
}
type PresetId = (typeof PRESETS)[number]['id'];

export type PeriodChoice = { readonly preset: PresetId } | { readonly from: EpochMs; readonly to: EpochMs };

const presetOf = (id: PresetId): Preset => PRESETS.find((preset) => preset.id === id) ?? PRESETS[0];

export function periodWindow(period: PeriodChoice, now: EpochMs): Window {
  return 'preset' in period ? presetOf(period.preset).window(now) : { startTime: period.from, endTime: period.to };
}

/** Returns the resolution of a period unless the user chooses another one. */
export function automaticResolution(period: PeriodChoice, window: Window): Resolution {
  return ('preset' in period ? presetOf(period.preset).bars : undefined) ?? defaultResolution(window);
}

/** Returns the number of calendar months in a period, or undefined if the period does not consist of whole months. */
export function periodMonths(period: PeriodChoice): number | undefined {
  if ('preset' in period) return presetOf(period.preset).months;
  return wholeMonths({ startTime: period.from, endTime: period.to });
}

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

/** Formats a window as days, such as `1 Nov – 21 Nov 2026`. Adds times unless they are midnight. Omits the year of `omitYearOf`. */
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
