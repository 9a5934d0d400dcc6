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
import { counted } from './amount-format.js';

/** An instant: milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = number;

export const MS_PER_HOUR = 3_600_000;
export const MS_PER_DAY = 86_400_000;
export const MS_PER_WEEK = 7 * MS_PER_DAY;
/** Exclusive: the first instant after the year 2100. The command line takes times from 1970 up to it. */
export const END_OF_TIME: EpochMs = /* @__PURE__ */ Date.UTC(2101, 0);
/** 0001-01-01: a window may begin there. RFC 3339 has a year before it, which calendars do not. */
export const START_OF_CALENDAR: EpochMs = -62_135_596_800_000;

/** With a fraction of up to nine digits. Source: RFC 3339, section 5.6. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|\+00:00)$/i;

/**
 * Parses an RFC 3339 timestamp whose offset is `Z` or `+00:00`, with 0–9 fraction digits; digits past the
 * millisecond are cut off. Gives undefined for anything else: another offset, a day that does not exist, a leap second.
 */
export function parseTimestamp(text: string): EpochMs | undefined {
  if (!TIMESTAMP.test(text)) return undefined;
  const day = startOfDate(10_000 * numberAt(text, 0, 4) + 100 * numberAt(text, 5, 2) + numberAt(text, 8, 2));
  const seconds = 3_600 * numberAt(text, 11, 2) + 60 * numberAt(text, 14, 2) + numberAt(text, 17, 2);
  return day === undefined ? undefined : day + 1_000 * seconds + (text[19] === '.' ? numberAt(text, 20, 3) : 0);
}

/** The days of the latest timestamps: a Date takes longer than all the rest. */
const knownDays = /* @__PURE__ */ new Map<number, EpochMs | undefined>();
const MOST_KNOWN_DAYS = 1_000;

/** @param date 20251001 for 2025-10-01 @returns undefined for a day that does not exist */
function startOfDate(date: number): EpochMs | undefined {
  if (knownDays.has(date)) return knownDays.get(date);
  if (knownDays.size === MOST_KNOWN_DAYS) knownDays.clear();
  const text = String(date)
    .padStart(8, '0')
    .replace(/^(....)(..)/, '$1-$2-');
  // Date.parse takes a day that the month does not have for one of the next month.
  const instant = Date.parse(`${text}T00:00:00Z`);
  const day = new Date(instant).getUTCDate() === date % 100 ? instant : undefined;
  knownDays.set(date, day);
  return day;
}

/** A number of so many digits in a text; other characters count as zeros. */
function numberAt(text: string, from: number, digits: number): number {
  let value = 0;
  for (let index = from; index < from + digits; index += 1) {
    const digit = text.charCodeAt(index) - ZERO;
    value = 10 * value + (digit >= 0 && digit <= 9 ? digit : 0);
  }
  return value;
}

const ZERO = 48;

/** `2025-10-01T00:00:00Z`; a fraction only if it is not zero, and then without trailing zeros. */
export function formatTimestamp(instant: EpochMs): string {
  return new Date(instant).toISOString().replace(/\.?0*Z$/, 'Z');
}

/**
 * What a `Retry-After` says: milliseconds from now; undefined without a usable value. Seconds or an HTTP date, which may have passed.
 * Source: RFC 9110, section 10.2.3.
 */
export function parseRetryAfter(value: string | null, now: Date): number | undefined {
  const text = value?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const date = /^[A-Z][a-z]+,? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime());
}

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

/** The window as the API takes and gives it. */
export function timesOf({ startTime, endTime }: Window) {
  return { startTime: formatTimestamp(startTime), endTime: formatTimestamp(endTime) };
}

const UNIT_MS = { hourly: MS_PER_HOUR, daily: MS_PER_DAY } as const;

/** The last so many hours or days: whole ones, of which the present one is the last. Its end lies in the future. */
export function lastUnits(count: number, unit: keyof typeof UNIT_MS, now: EpochMs): Window {
  const endTime = bucketStart(now, unit) + UNIT_MS[unit];
  return { startTime: endTime - count * UNIT_MS[unit], endTime };
}

/** The number of calendar months that the window is made of; undefined where it begins or ends within one. */
export function wholeMonths(window: Window): number | undefined {
  return beginsMonth(window.startTime) && beginsMonth(window.endTime) ? bucketCount(window, 'monthly') : undefined;
}

function beginsMonth(instant: EpochMs): boolean {
  return bucketStart(instant, 'monthly') === instant;
}

/**
 * The part of a window up to an instant. Every query of a screen ends there, so that answers that come one after another
 * still speak of the same time. A window in the future is left as it is: it is empty.
 */
export function upTo({ startTime, endTime }: Window, asOf: EpochMs): Window {
  return { startTime, endTime: asOf > startTime ? Math.min(endTime, asOf) : endTime };
}

/** The weeks of a month in a year of 365.25 days: a month faces the one 4 weeks earlier, a quarter 13, a year 52. */
const WEEKS_PER_MONTH = 365.25 / 12 / 7;

/**
 * `period`: whole weeks earlier, so that a weekend faces a weekend and an hour of the night one of the night; or whole months
 * where the buckets are months. `months`: whole months, by date.
 */
export const COMPARISONS = ['period', 'months'] as const;
export type Comparison = (typeof COMPARISONS)[number];

export interface ComparedWindow {
  readonly window: Window;
  /** `4 weeks earlier`. */
  readonly distance: string;
}

export interface Compared {
  readonly window: Window;
  /**
   * The calendar months that the window is meant as: a month to date is one. Undefined for days and hours; thirty days that
   * happen to be a month are still thirty days.
   */
  readonly months: number | undefined;
  readonly resolution: Resolution;
  readonly asOf: EpochMs;
}

/**
 * A window that has not ended yet is compared with an equally long part: twelve days with twelve days. Undefined for a
 * window in the future, and where the other would begin before 1970.
 */
export function comparedWindow(comparison: Comparison, compared: Compared): ComparedWindow | undefined {
  if (compared.asOf <= compared.window.startTime) return undefined;
  const isByMonths = comparison === 'months' || compared.resolution === 'monthly';
  const earlier = isByMonths ? monthsEarlier(compared) : weeksEarlier(compared);
  return earlier.window.startTime < 0 ? undefined : earlier;
}

function weeksEarlier({ window: { startTime, endTime }, months = 0, asOf }: Compared): ComparedWindow {
  // Never so few that the two would overlap.
  const weeks = Math.max(Math.floor(months * WEEKS_PER_MONTH), Math.ceil((endTime - startTime) / MS_PER_WEEK));
  const shift = weeks * MS_PER_WEEK;
  return {
    window: { startTime: startTime - shift, endTime: Math.min(asOf, endTime) - shift },
    distance: `${counted(weeks, 'week')} earlier`,
  };
}

function monthsEarlier({
  window,
  months = bucketCount(window, 'monthly'),
  resolution,
  asOf,
}: Compared): ComparedWindow {
  const { startTime, endTime } = window;
  const previousStart = plusMonths(startTime, -months);
  const whole = { startTime: previousStart, endTime: plusMonths(endTime, -months) };
  // Longer months may be more than the resolution allows: then it is an equally long part of them.
  const isOver = asOf >= endTime && beginsMonth(endTime) && exceededCap(resolution, whole) === undefined;
  const elapsed = Math.min(asOf, endTime) - startTime;
  // The month before may be shorter; it never overlaps the present one.
  const previousEnd = isOver ? whole.endTime : Math.min(previousStart + elapsed, startTime);
  return {
    window: { startTime: previousStart, endTime: previousEnd },
    distance: `${counted(months, 'month')} earlier`,
  };
}
