/**
 * Windows, resolutions and buckets: what a query is about, and the calendar axis of its response. Buckets are UTC hours, days, ISO
 * weeks (from Monday) and months. Source: the API specification, section "Billing API", and DESIGN section 6 (the caps on a window
 * are inclusive, the defaults are not).
 */
import { UTCDateMini } from '@date-fns/utc/date/mini';
import { addDays } from 'date-fns/addDays';
import { addHours } from 'date-fns/addHours';
import { addMonths } from 'date-fns/addMonths';
import { addWeeks } from 'date-fns/addWeeks';
import { addYears } from 'date-fns/addYears';
import { differenceInCalendarDays } from 'date-fns/differenceInCalendarDays';
import { differenceInCalendarISOWeeks } from 'date-fns/differenceInCalendarISOWeeks';
import { differenceInCalendarMonths } from 'date-fns/differenceInCalendarMonths';
import { differenceInHours } from 'date-fns/differenceInHours';
import { startOfDay } from 'date-fns/startOfDay';
import { startOfHour } from 'date-fns/startOfHour';
import { startOfISOWeek } from 'date-fns/startOfISOWeek';
import { startOfMonth } from 'date-fns/startOfMonth';
import type { EpochMs } from './timestamp.js';

/** Half-open: startTime is inside, endTime is not. */
export interface Window {
  readonly startTime: EpochMs;
  readonly endTime: EpochMs;
}

export const RESOLUTIONS = ['hourly', 'daily', 'weekly', 'monthly'] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

/** Without the formats of `@date-fns/utc`'s complete class, which nothing here needs and a command would load for 14 ms. */
const UTC = { in: (value: Date | EpochMs | string) => new UTCDateMini(+new Date(value)) };

/** For each resolution the start of a bucket, a later start, and how many of them lie between two starts. */
const BUCKETS = {
  hourly: { start: startOfHour, add: addHours, between: differenceInHours },
  daily: { start: startOfDay, add: addDays, between: differenceInCalendarDays },
  weekly: { start: startOfISOWeek, add: addWeeks, between: differenceInCalendarISOWeeks },
  monthly: { start: startOfMonth, add: addMonths, between: differenceInCalendarMonths },
} as const satisfies Record<Resolution, object>;

/** The latest endTime that a window from `startTime` may have, and its length in words; null for none. */
interface WindowCap {
  readonly end: (startTime: EpochMs) => EpochMs;
  readonly text: string;
}

const CAPS = {
  hourly: { end: (startTime) => addDays(startTime, 7, UTC).getTime(), text: '7 days' },
  daily: { end: (startTime) => addDays(startTime, 90, UTC).getTime(), text: '90 days' },
  // A calendar year: 366 days from 2024-01-01. From 29 February it ends on 28 February.
  weekly: { end: (startTime) => addYears(startTime, 1, UTC).getTime(), text: '1 year' },
  monthly: null,
} as const satisfies Record<Resolution, WindowCap | null>;

/** The finest resolution whose cap the window stays below: exactly 7 days is daily, exactly 1 year is monthly. */
export function defaultResolution({ startTime, endTime }: Window): Resolution {
  return RESOLUTIONS.find((resolution) => endTime < (CAPS[resolution]?.end(startTime) ?? Infinity)) ?? 'monthly';
}

/** The cap that the window exceeds, as text ("7 days"), or undefined when the resolution may be used. */
export function exceededCap(resolution: Resolution, { startTime, endTime }: Window): string | undefined {
  const cap = CAPS[resolution];
  return cap && endTime > cap.end(startTime) ? cap.text : undefined;
}

/** The calendar start of the bucket that holds the instant; it may lie before a window's startTime. */
export function bucketStart(instant: EpochMs, resolution: Resolution): EpochMs {
  return BUCKETS[resolution].start(instant, UTC).getTime();
}

/** The same day and time so many months later, or earlier; the last day of the month where it has no such day. */
export function plusMonths(instant: EpochMs, months: number): EpochMs {
  return addMonths(instant, months, UTC).getTime();
}

/** The starts of all buckets that the window touches, ascending, past and future alike. Never empty for a real window. */
export function bucketAxis(window: Window, resolution: Resolution): EpochMs[] {
  const first = bucketStart(window.startTime, resolution);
  const { add } = BUCKETS[resolution];
  return Array.from({ length: bucketCount(window, resolution) }, (_, index) => add(first, index, UTC).getTime());
}

/** How many buckets the window touches: all of time has 120,000 months. */
export function bucketCount({ startTime, endTime }: Window, resolution: Resolution): number {
  const [first, last] = [bucketStart(startTime, resolution), bucketStart(endTime - 1, resolution)];
  return BUCKETS[resolution].between(last, first, UTC) + 1;
}
