/**
 * Windows, resolutions and buckets: what a question asks for, and the calendar axis of its answer. Buckets are UTC hours,
 * days, ISO weeks (from Monday) and months. Source: the API specification, section "Billing API", and DESIGN section 6
 * (the caps on a window are inclusive, the defaults are not).
 *
 * UTC has no daylight saving, so all but months is counted in milliseconds, and months need no more than Date's own calendar. A
 * library for dates in any zone took Node longer to load than the rest of the catalog.
 */
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR, MS_PER_WEEK } from './timestamp.js';

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
  weekly: { end: (startTime) => plusMonths(startTime, 12), text: '1 year' },
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

/** 1970-01-05, a Monday. */
const A_MONDAY: EpochMs = 4 * MS_PER_DAY;

/** The calendar start of the bucket that holds the instant; it may lie before a window's startTime. */
export function bucketStart(instant: EpochMs, resolution: Resolution): EpochMs {
  switch (resolution) {
    case 'hourly':
      return flooredTo(MS_PER_HOUR, instant);
    case 'daily':
      return flooredTo(MS_PER_DAY, instant);
    case 'weekly':
      return A_MONDAY + flooredTo(MS_PER_WEEK, instant - A_MONDAY);
    case 'monthly':
      return new Date(flooredTo(MS_PER_DAY, instant)).setUTCDate(1);
  }
}

function flooredTo(length: number, instant: EpochMs): EpochMs {
  return Math.floor(instant / length) * length;
}

/** The same day and time so many months later, or earlier; the last day of the month where it has no such day. */
export function plusMonths(instant: EpochMs, months: number): EpochMs {
  const date = new Date(instant);
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() + months);
  // A day that the month does not have is one of the next month.
  return date.getUTCDate() === day ? date.getTime() : date.setUTCDate(0);
}

/** The starts of all buckets that the window touches, ascending, past and future alike. Never empty for a real window. */
export function bucketAxis(window: Window, resolution: Resolution): EpochMs[] {
  const first = bucketStart(window.startTime, resolution);
  const length = bucketCount(window, resolution);
  const bucketMs = BUCKET_MS[resolution];
  if (bucketMs !== undefined) return Array.from({ length }, (_, index) => first + index * bucketMs);
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

/** All buckets but months have one length. */
const BUCKET_MS = {
  hourly: MS_PER_HOUR,
  daily: MS_PER_DAY,
  weekly: MS_PER_WEEK,
  monthly: undefined,
} as const satisfies Record<Resolution, number | undefined>;

/** Months since the year 0. */
export function monthNumber(instant: EpochMs): number {
  const date = new Date(instant);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}
