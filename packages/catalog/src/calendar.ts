/**
 * Defines windows, resolutions and buckets, and the calendar axis of a response. Buckets are UTC hours, days, ISO weeks (from Monday) and
 * months. Source: docs/api-contract.md, "Windows and buckets". Each resolution except monthly has a cap, the maximum length of a window. A
 * window exactly as long as the cap is allowed, but gets a coarser resolution by default.
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

/** An instant in milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = number;

export const MS_PER_HOUR = 3_600_000;
export const MS_PER_DAY = 86_400_000;
export const MS_PER_WEEK = 7 * MS_PER_DAY;
/** The exclusive end of the time range that the command line and saved views accept. The range starts in 1970. */
export const END_OF_TIME: EpochMs = /* @__PURE__ */ Date.UTC(2101, 0);
/** 0001-01-01, the earliest start of a window. RFC 3339 allows the year 0000, which the calendar does not have. */
export const START_OF_CALENDAR: EpochMs = -62_135_596_800_000;

/** Source: RFC 3339, section 5.6. At most nine fraction digits are accepted. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|\+00:00)$/i;

/**
 * Parses an RFC 3339 timestamp whose offset is `Z` or `+00:00`, and truncates it to milliseconds. Returns undefined for any other string,
 * for example one with another offset, a day that does not exist, or a leap second.
 */
export function parseTimestamp(text: string): EpochMs | undefined {
  if (!TIMESTAMP.test(text)) return undefined;
  const day = startOfDate(10_000 * numberAt(text, 0, 4) + 100 * numberAt(text, 5, 2) + numberAt(text, 8, 2));
  const seconds = 3_600 * numberAt(text, 11, 2) + 60 * numberAt(text, 14, 2) + numberAt(text, 17, 2);
  return day === undefined ? undefined : day + 1_000 * seconds + (text[19] === '.' ? numberAt(text, 20, 3) : 0);
}

/** Caches the days of recent timestamps, because constructing a Date takes longer than the rest of the parsing. */
const knownDays = /* @__PURE__ */ new Map<number, EpochMs | undefined>();
const MAX_KNOWN_DAYS = 1_000;

/** Returns undefined if the day does not exist. @param date the digits of the date as a number, such as 20251001 for 2025-10-01 */
function startOfDate(date: number): EpochMs | undefined {
  if (knownDays.has(date)) return knownDays.get(date);
  if (knownDays.size === MAX_KNOWN_DAYS) knownDays.clear();
  const text = String(date)
    .padStart(8, '0')
    .replace(/^(....)(..)/, '$1-$2-');
  // Date.parse accepts 31 June and returns 1 July.
  const instant = Date.parse(`${text}T00:00:00Z`);
  const day = new Date(instant).getUTCDate() === date % 100 ? instant : undefined;
  knownDays.set(date, day);
  return day;
}

/** Parses digits at a position of a string. Other characters count as zeros, because a fraction may have fewer digits. */
function numberAt(text: string, from: number, digits: number): number {
  let value = 0;
  for (let index = from; index < from + digits; index += 1) {
    const digit = text.charCodeAt(index) - ZERO;
    value = 10 * value + (digit >= 0 && digit <= 9 ? digit : 0);
  }
  return value;
}

const ZERO = 48;

/** Formats `2025-10-01T00:00:00Z`. The fraction is omitted if it is zero, and never has trailing zeros. */
export function formatTimestamp(instant: EpochMs): string {
  return new Date(instant).toISOString().replace(/\.?0*Z$/, 'Z');
}

/** A half-open window: it includes startTime and excludes endTime. */
export interface Window {
  readonly startTime: EpochMs;
  readonly endTime: EpochMs;
}

export const RESOLUTIONS = ['hourly', 'daily', 'weekly', 'monthly'] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

/** Makes date-fns calculate in UTC. The mini class has no formatting, which is not needed here and would take 14 ms to load. */
const UTC = { in: (value: Date | EpochMs | string) => new UTCDateMini(+new Date(value)) };

/** Defines three functions for each resolution: the start of a bucket, a later start, and the number of buckets between two starts. */
const BUCKETS = {
  hourly: { start: startOfHour, add: addHours, between: differenceInHours },
  daily: { start: startOfDay, add: addDays, between: differenceInCalendarDays },
  weekly: { start: startOfISOWeek, add: addWeeks, between: differenceInCalendarISOWeeks },
  monthly: { start: startOfMonth, add: addMonths, between: differenceInCalendarMonths },
} as const satisfies Record<Resolution, object>;

/** The maximum length of a window. `end` returns the latest endTime of a window that begins at `startTime`. */
interface WindowCap {
  readonly end: (startTime: EpochMs) => EpochMs;
  readonly text: string;
}

const CAPS = {
  hourly: { end: (startTime) => addDays(startTime, 7, UTC).getTime(), text: '7 days' },
  daily: { end: (startTime) => addDays(startTime, 90, UTC).getTime(), text: '90 days' },
  // A calendar year, which has 366 days if it contains 29 February. A year from 29 February ends on 28 February.
  weekly: { end: (startTime) => addYears(startTime, 1, UTC).getTime(), text: '1 year' },
  monthly: null,
} as const satisfies Record<Resolution, WindowCap | null>;

/** Returns the finest resolution whose longest window is longer than this window. For example, hourly covers less than 7 days. */
export function defaultResolution({ startTime, endTime }: Window): Resolution {
  return RESOLUTIONS.find((resolution) => endTime < (CAPS[resolution]?.end(startTime) ?? Infinity)) ?? 'monthly';
}

/** Returns the resolution's cap as text, such as "7 days", if the window is longer. Returns undefined if the window is short enough. */
export function exceededCap(resolution: Resolution, { startTime, endTime }: Window): string | undefined {
  const cap = CAPS[resolution];
  return cap && endTime > cap.end(startTime) ? cap.text : undefined;
}

/** Returns the start of the bucket that contains the instant. This start may lie before the window's startTime. */
export function bucketStart(instant: EpochMs, resolution: Resolution): EpochMs {
  return BUCKETS[resolution].start(instant, UTC).getTime();
}

/** Adds months and keeps the day and time. If the resulting month is too short, uses its last day. Negative numbers subtract months. */
export function plusMonths(instant: EpochMs, months: number): EpochMs {
  return addMonths(instant, months, UTC).getTime();
}

/** Returns the starts of all buckets that overlap the window, in ascending order. Future buckets are included. */
export function bucketAxis(window: Window, resolution: Resolution): EpochMs[] {
  const first = bucketStart(window.startTime, resolution);
  const { add } = BUCKETS[resolution];
  return Array.from({ length: bucketCount(window, resolution) }, (_, index) => add(first, index, UTC).getTime());
}

/** Counts the buckets that overlap the window, without listing them: the whole calendar has 120,000 months. */
export function bucketCount({ startTime, endTime }: Window, resolution: Resolution): number {
  const [first, last] = [bucketStart(startTime, resolution), bucketStart(endTime - 1, resolution)];
  return BUCKETS[resolution].between(last, first, UTC) + 1;
}

export function timesOf({ startTime, endTime }: Window) {
  return { startTime: formatTimestamp(startTime), endTime: formatTimestamp(endTime) };
}

const UNIT_MS = { hourly: MS_PER_HOUR, daily: MS_PER_DAY } as const;

/** Returns a window of whole hours or days that ends with the current hour or day, so its end lies in the future. */
export function lastUnits(count: number, unit: keyof typeof UNIT_MS, now: EpochMs): Window {
  const endTime = bucketStart(now, unit) + UNIT_MS[unit];
  return { startTime: endTime - count * UNIT_MS[unit], endTime };
}

/** Returns the number of calendar months in the window. Returns undefined if the window starts or ends within a month. */
export function wholeMonths(window: Window): number | undefined {
  return beginsMonth(window.startTime) && beginsMonth(window.endTime) ? bucketCount(window, 'monthly') : undefined;
}

export function beginsMonth(instant: EpochMs): boolean {
  return bucketStart(instant, 'monthly') === instant;
}

/**
 * Ends a window at `asOf`. All queries of a screen use the same `asOf`, so their responses describe the same time even if they arrive one after
 * another. A window in the future is returned unchanged, because it contains no usage.
 */
export function upTo({ startTime, endTime }: Window, asOf: EpochMs): Window {
  return { startTime, endTime: asOf > startTime ? Math.min(endTime, asOf) : endTime };
}
