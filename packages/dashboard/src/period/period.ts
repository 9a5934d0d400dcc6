/** The periods that a view can show (presets, calendar months and custom ranges), and how they are written. All UTC. */
import {
  bucketAxis,
  bucketStart,
  type EpochMs,
  lastUnits,
  MS_PER_DAY,
  MS_PER_HOUR,
  plusMonths,
  type Resolution,
  type Window,
  wholeMonths,
} from '@meterline/catalog';
import { givenLocale } from '../embed/embedding.js';

const SECOND_MS = 1_000;
const QUARTER_MONTHS = 3;

/** All are whole UTC hours, days or months, and but for the last month all include the present one. */
export const PRESETS = [
  { id: '24h', label: 'Last 24 hours' },
  { id: '7d', label: 'Last 7 days' },
  { id: '30d', label: 'Last 30 days' },
  { id: '90d', label: 'Last 90 days' },
  { id: 'week', label: 'Week to date' },
  { id: 'month', label: 'Month to date' },
  { id: 'last-month', label: 'Last month' },
  { id: 'quarter', label: 'Quarter to date' },
  { id: 'year', label: 'Year to date' },
  { id: '12m', label: 'Last 12 months' },
] as const;
export type PresetId = (typeof PRESETS)[number]['id'];

export type PeriodChoice = { readonly preset: PresetId } | { readonly from: EpochMs; readonly to: EpochMs };

export function periodWindow(period: PeriodChoice, now: EpochMs): Window {
  return 'preset' in period ? presetWindow(period.preset, now) : { startTime: period.from, endTime: period.to };
}

export function presetWindow(preset: PresetId, now: EpochMs): Window {
  const tomorrow = lastUnits(1, 'daily', now).endTime;
  const month = bucketStart(now, 'monthly');
  const monthOfYear = new Date(now).getUTCMonth();
  switch (preset) {
    case '24h':
      return lastUnits(24, 'hourly', now);
    case '7d':
      return lastUnits(7, 'daily', now);
    case '30d':
      return lastUnits(30, 'daily', now);
    case '90d':
      return lastUnits(90, 'daily', now);
    case 'week':
      return { startTime: bucketStart(now, 'weekly'), endTime: tomorrow };
    case 'month':
      return { startTime: month, endTime: tomorrow };
    case 'last-month':
      return { startTime: plusMonths(month, -1), endTime: month };
    case 'quarter':
      return { startTime: plusMonths(month, -(monthOfYear % QUARTER_MONTHS)), endTime: tomorrow };
    case 'year':
      return { startTime: plusMonths(month, -monthOfYear), endTime: tomorrow };
    case '12m':
      return { startTime: plusMonths(month, -11), endTime: plusMonths(month, 1) };
  }
}

/** A year to date is compared with the year before, however few of its months have passed. */
const PRESET_MONTHS: Readonly<Partial<Record<PresetId, number>>> = {
  month: 1,
  'last-month': 1,
  quarter: 3,
  year: 12,
  '12m': 12,
};

/** The calendar months that the period is meant as; undefined for days, and for a range that begins or ends within a month. */
export function periodMonths(period: PeriodChoice): number | undefined {
  if ('preset' in period) return PRESET_MONTHS[period.preset];
  return wholeMonths({ startTime: period.from, endTime: period.to });
}

/** The calendar month that the window is, by its start; undefined for any other window. */
export function monthOf(window: Window): EpochMs | undefined {
  return wholeMonths(window) === 1 ? window.startTime : undefined;
}

/** The present, to the second: the instant that a screen is "as of". */
export function currentSecond(): EpochMs {
  const now = Date.now();
  return now - (now % SECOND_MS);
}

/** The part of a bucket that lies in the window. */
export function bucketWindow(bucket: EpochMs, resolution: Resolution, window: Window): Window {
  return {
    startTime: Math.max(bucket, window.startTime),
    endTime: Math.min(bucketEnd(bucket, resolution), window.endTime),
  };
}

/** Where the next bucket begins. @param bucket the calendar start of one */
function bucketEnd(bucket: EpochMs, resolution: Resolution): EpochMs {
  const [, next = bucket] = bucketAxis({ startTime: bucket, endTime: bucket + 32 * MS_PER_DAY }, resolution);
  return next;
}

/** The bucket that has begun and is not over, by its position; undefined when the window has none. */
export function unfinishedBucket(
  buckets: readonly EpochMs[],
  resolution: Resolution,
  asOf: EpochMs,
): number | undefined {
  const position = buckets.findLastIndex((bucket) => bucket < asOf);
  const bucket = buckets[position];
  return bucket !== undefined && asOf < bucketEnd(bucket, resolution) ? position : undefined;
}

const formatter = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat(givenLocale ?? 'en-GB', { ...options, timeZone: 'UTC' });

const DAY = formatter({ day: 'numeric', month: 'short' });
const DAY_OF_YEAR = formatter({ day: 'numeric', month: 'short', year: 'numeric' });
const WEEKDAY = formatter({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' });
const MONTH = formatter({ month: 'short', year: 'numeric' });
const LONG_MONTH = formatter({ month: 'long', year: 'numeric' });
const TIME = formatter({ hour: '2-digit', minute: '2-digit' });
const INPUT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
const CLOCK = formatter({ hour: '2-digit', minute: '2-digit', second: '2-digit' });

export const monthText = (instant: EpochMs) => LONG_MONTH.format(instant);
/** `16:49:03`, for the instant that a screen is as of. */
export const clockText = (instant: EpochMs) => CLOCK.format(instant);

/** Short, for the axis of a chart. */
export function tickText(bucket: EpochMs, resolution: Resolution): string {
  if (resolution === 'monthly') return MONTH.format(bucket);
  if (resolution === 'hourly') return bucket % MS_PER_DAY === 0 ? DAY.format(bucket) : TIME.format(bucket);
  return DAY.format(bucket);
}

/** In full, for a tooltip or a table. */
export function bucketText(bucket: EpochMs, resolution: Resolution): string {
  switch (resolution) {
    case 'hourly':
      return `${WEEKDAY.format(bucket)}, ${TIME.format(bucket)}–${TIME.format(bucket + MS_PER_HOUR)}`;
    case 'daily':
      return WEEKDAY.format(bucket);
    case 'weekly':
      return `Week of ${DAY_OF_YEAR.format(bucket)}`;
    case 'monthly':
      return LONG_MONTH.format(bucket);
  }
}

/**
 * `1 Nov – 21 Nov 2026`, both days included; times only where they are not midnight.
 * @param known an instant in the year that is left out
 */
export function windowText({ startTime, endTime }: Window, known?: EpochMs): string {
  // An end at midnight is written as the day before.
  const last = endTime % MS_PER_DAY === 0 ? endTime - MS_PER_DAY : endTime;
  const times = {
    from: startTime % MS_PER_DAY === 0 ? '' : ` ${TIME.format(startTime)}`,
    to: endTime % MS_PER_DAY === 0 ? '' : ` ${TIME.format(endTime)}`,
  };
  if (last === startTime) return DAY_OF_YEAR.format(startTime);
  const from = yearNumber(startTime) === yearNumber(last) ? DAY : DAY_OF_YEAR;
  const to = known !== undefined && yearNumber(last) === yearNumber(known) ? DAY : DAY_OF_YEAR;
  return `${from.format(startTime)}${times.from} – ${to.format(last)}${times.to}`;
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
  return PRESETS.find(({ id }) => id === period.preset)?.label ?? period.preset;
}

/** `21 Nov 2026`, which {@link parseDay} reads. */
export const dayText = (instant: EpochMs) => INPUT.format(instant);

/** `21 Nov 2026, 09:14`. */
export const instantText = (time: string) => `${DAY_OF_YEAR.format(new Date(time))}, ${TIME.format(new Date(time))}`;

/** The start of a day that is written as `21 Nov 2026`, `21 November 2026` or `2026-11-21`; undefined for anything else. */
export function parseDay(text: string): EpochMs | undefined {
  const written = text.trim().replace(/\bsept\b/i, 'Sep');
  const [, year, , day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(written) ?? [];
  if (!year && !/^\d{1,2} [a-z]{3,9} \d{4}$/i.test(written)) return undefined;
  const instant = Date.parse(year ? written : `${written} UTC`);
  // 31 June is no day, although Date.parse reads it as 1 July.
  const isDay = new Date(instant).getUTCDate() === Number(year ? day : written.split(' ')[0]);
  return isDay ? instant : undefined;
}
