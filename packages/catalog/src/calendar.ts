/**
 * Windows, resolutions and buckets: what a question asks for, and the calendar axis of its answer. Buckets are UTC hours,
 * days, ISO weeks (from Monday) and months. Source: the API specification, section "Billing API", and DESIGN section 6
 * (the caps on a window are inclusive, the defaults are not).
 *
 * date-fns counts in local time; its UTC companion makes the axis the same under any TZ. Each function is imported by
 * itself: the whole of date-fns is 250 files, and Node loads them slower than everything else here.
 */
import { utc } from '@date-fns/utc';
import { addDays } from 'date-fns/addDays';
import { addHours } from 'date-fns/addHours';
import { addMonths } from 'date-fns/addMonths';
import { addWeeks } from 'date-fns/addWeeks';
import { addYears } from 'date-fns/addYears';
import { startOfDay } from 'date-fns/startOfDay';
import { startOfHour } from 'date-fns/startOfHour';
import { startOfISOWeek } from 'date-fns/startOfISOWeek';
import { startOfMonth } from 'date-fns/startOfMonth';
import { type EpochMs, MS_PER_DAY } from './timestamp.js';

const UTC = { in: utc };

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

interface Calendar {
  readonly start: (instant: EpochMs) => Date;
  readonly plus: (start: Date, count: number) => Date;
}

const CALENDARS = {
  hourly: { start: (instant) => startOfHour(instant, UTC), plus: (start, n) => addHours(start, n, UTC) },
  daily: { start: (instant) => startOfDay(instant, UTC), plus: (start, n) => addDays(start, n, UTC) },
  weekly: { start: (instant) => startOfISOWeek(instant, UTC), plus: (start, n) => addWeeks(start, n, UTC) },
  monthly: { start: (instant) => startOfMonth(instant, UTC), plus: (start, n) => addMonths(start, n, UTC) },
} as const satisfies Record<Resolution, Calendar>;

/** The calendar start of the bucket that holds the instant; it may lie before a window's startTime. */
export function bucketStart(instant: EpochMs, resolution: Resolution): EpochMs {
  return CALENDARS[resolution].start(instant).getTime();
}

/** The starts of all buckets that the window touches, ascending, past and future alike. Never empty for a real window. */
export function bucketAxis({ startTime, endTime }: Window, resolution: Resolution): EpochMs[] {
  const { start, plus } = CALENDARS[resolution];
  const first = start(startTime);
  const axis: EpochMs[] = [];
  for (let bucket = first; bucket.getTime() < endTime; bucket = plus(first, axis.length)) axis.push(bucket.getTime());
  return axis;
}
