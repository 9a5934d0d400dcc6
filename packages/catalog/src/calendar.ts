/**
 * Windows, resolutions and buckets: what a question asks for, and the calendar axis of its answer. Buckets are UTC hours,
 * days, ISO weeks (from Monday) and months. Source: the API specification, section "Billing API", and DESIGN section 6
 * (the caps on a window are inclusive, the defaults are not).
 *
 * date-fns counts in local time; its UTC companion makes the axis the same under any TZ. Each function is imported by
 * itself: the whole of date-fns is 250 files, and Node loads them slower than everything else here.
 */
import { addYears } from 'date-fns/addYears';
import { startOfDay } from 'date-fns/startOfDay';
import { startOfHour } from 'date-fns/startOfHour';
import { startOfISOWeek } from 'date-fns/startOfISOWeek';
import { startOfMonth } from 'date-fns/startOfMonth';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from './timestamp.js';
import { UTC } from './utc.js';

/** Half-open: startTime is inside, endTime is not. */
export interface Window {
  readonly startTime: EpochMs;
  readonly endTime: EpochMs;
}

export const RESOLUTIONS = ['hourly', 'daily', 'weekly', 'monthly'] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

/** The latest endTime that a window from `startTime` may have, and its length in words; null for none. */
interface WindowCap {
  readonly end: (startTime: EpochMs) => EpochMs;
  readonly text: string;
}

const CAPS = {
  hourly: { end: (startTime) => startTime + 7 * MS_PER_DAY, text: '7 days' },
  daily: { end: (startTime) => startTime + 90 * MS_PER_DAY, text: '90 days' },
  // A calendar year: 366 days from 2024-01-01. From 29 February it ends on 28 February.
  weekly: { end: (startTime) => addYears(startTime, 1, UTC).getTime(), text: '1 year' },
  monthly: null,
} as const satisfies Record<Resolution, WindowCap | null>;

export function isResolution(value: string): value is Resolution {
  return (RESOLUTIONS as readonly string[]).includes(value);
}

/** The finest resolution whose cap the window stays below: exactly 7 days is daily, exactly 1 year is monthly. */
export function defaultResolution({ startTime, endTime }: Window): Resolution {
  return RESOLUTIONS.find((resolution) => endTime < (CAPS[resolution]?.end(startTime) ?? Infinity)) ?? 'monthly';
}

/** The cap that the window exceeds, as text ("7 days"), or undefined when the resolution may be used. */
export function exceededCap(resolution: Resolution, { startTime, endTime }: Window): string | undefined {
  const cap = CAPS[resolution];
  return cap && endTime > cap.end(startTime) ? cap.text : undefined;
}

const STARTS = {
  hourly: startOfHour,
  daily: startOfDay,
  weekly: startOfISOWeek,
  monthly: startOfMonth,
} as const satisfies Record<Resolution, (instant: EpochMs, options: typeof UTC) => Date>;

/** The calendar start of the bucket that holds the instant; it may lie before a window's startTime. */
export function bucketStart(instant: EpochMs, resolution: Resolution): EpochMs {
  return STARTS[resolution](instant, UTC).getTime();
}

/** The starts of all buckets that the window touches, ascending, past and future alike. Never empty for a real window. */
export function bucketAxis(window: Window, resolution: Resolution): EpochMs[] {
  const first = bucketStart(window.startTime, resolution);
  const length = bucketCount(window, resolution);
  const bucketMs = BUCKET_MS[resolution];
  if (bucketMs !== undefined) return Array.from({ length }, (_, index) => first + index * bucketMs);
  // Twenty thousand months are allowed, and date-fns takes 25 µs to add one.
  const month = new Date(first);
  return Array.from({ length }, () => {
    const start = month.getTime();
    month.setUTCMonth(month.getUTCMonth() + 1);
    return start;
  });
}

/** How many buckets the window touches: all of time has 120,000 months. */
export function bucketCount({ startTime, endTime }: Window, resolution: Resolution): number {
  const [first, last] = [bucketStart(startTime, resolution), bucketStart(endTime - 1, resolution)];
  const bucketMs = BUCKET_MS[resolution];
  if (bucketMs === undefined) return monthNumber(last) - monthNumber(first) + 1;
  return (last - first) / bucketMs + 1;
}

/** UTC has no daylight saving, so all buckets but months have one length. */
const BUCKET_MS = {
  hourly: MS_PER_HOUR,
  daily: MS_PER_DAY,
  weekly: 7 * MS_PER_DAY,
  monthly: undefined,
} as const satisfies Record<Resolution, number | undefined>;

function monthNumber(instant: EpochMs): number {
  const date = new Date(instant);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}
