/** The periods that a view can show: presets, calendar months and custom ranges. All UTC. */
import {
  bucketAxis,
  bucketStart,
  type EpochMs,
  lastUnits,
  MS_PER_DAY,
  plusMonths,
  type Resolution,
  type Window,
  wholeMonths,
} from '@meterline/catalog';

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

export function isPresetId(text: string): text is PresetId {
  return PRESETS.some(({ id }) => id === text);
}

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
