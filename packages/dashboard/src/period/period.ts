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
} from '@meterline/catalog/plain';
import { givenLocale } from '../shell/embed-address.js';

const SECOND_MS = 1_000;
const QUARTER_MONTHS = 3;

const last = (count: number, unit: 'hourly' | 'daily') => (now: EpochMs) => lastUnits(count, unit, now);
const toDate = (startOf: (now: EpochMs) => EpochMs) => (now: EpochMs) => {
  return { startTime: startOf(now), endTime: lastUnits(1, 'daily', now).endTime };
};
const monthAt = (now: EpochMs, months = 0) => plusMonths(bucketStart(now, 'monthly'), months);
const monthOfYear = (now: EpochMs) => new Date(now).getUTCMonth();

/**
 * All are whole UTC hours, days or months, and but for the last month all include the present one. `months`: those that are meant; a year
 * to date is compared with the year before, however few of its months have passed.
 */
export const PRESETS = [
  { id: '24h', label: 'Last 24 hours', window: last(24, 'hourly') },
  { id: '7d', label: 'Last 7 days', window: last(7, 'daily') },
  { id: '30d', label: 'Last 30 days', window: last(30, 'daily') },
  { id: '90d', label: 'Last 90 days', window: last(90, 'daily') },
  { id: 'week', label: 'Week to date', window: toDate((now) => bucketStart(now, 'weekly')) },
  { id: 'month', label: 'Month to date', months: 1, window: toDate(monthAt) },
  {
    ...{ id: 'last-month', label: 'Last month', months: 1 },
    window: (now) => ({ startTime: monthAt(now, -1), endTime: monthAt(now) }),
  },
  {
    ...{ id: 'quarter', label: 'Quarter to date', months: QUARTER_MONTHS },
    window: toDate((now) => monthAt(now, -(monthOfYear(now) % QUARTER_MONTHS))),
  },
  { id: 'year', label: 'Year to date', months: 12, window: toDate((now) => monthAt(now, -monthOfYear(now))) },
  {
    ...{ id: '12m', label: 'Last 12 months', months: 12 },
    window: (now) => ({ startTime: monthAt(now, -11), endTime: monthAt(now, 1) }),
  },
] as const satisfies readonly Preset[];

interface Preset {
  readonly id: string;
  readonly label: string;
  readonly months?: number;
  readonly window: (now: EpochMs) => Window;
}
type PresetId = (typeof PRESETS)[number]['id'];

export type PeriodChoice = { readonly preset: PresetId } | { readonly from: EpochMs; readonly to: EpochMs };

const presetOf = (id: PresetId): Preset => PRESETS.find((preset) => preset.id === id) ?? PRESETS[0];

export function periodWindow(period: PeriodChoice, now: EpochMs): Window {
  return 'preset' in period ? presetOf(period.preset).window(now) : { startTime: period.from, endTime: period.to };
}

/** The calendar months that the period is meant as; undefined for days, and for a range that begins or ends within a month. */
export function periodMonths(period: PeriodChoice): number | undefined {
  if ('preset' in period) return presetOf(period.preset).months;
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
  return presetOf(period.preset).label;
}

const MONTHS_OFFERED = 24;

/** The last two years, and the month that is shown. */
export function monthChoices(now: EpochMs, shown: EpochMs | undefined) {
  const recent = Array.from({ length: MONTHS_OFFERED }, (_, back) => plusMonths(bucketStart(now, 'monthly'), -back));
  const months = shown === undefined || recent.includes(shown) ? recent : [...recent, shown];
  return months.map((month) => ({ value: String(month), label: monthText(month) }));
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
