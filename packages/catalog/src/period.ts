/**
 * Windows as people name them: the last so many days, a calendar month, the part of each that has passed, and what it is
 * compared with. All UTC.
 */
import { counted } from './amount-format.js';
import { bucketCount, bucketStart, plusMonths, type Resolution, type Window } from './calendar.js';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR, MS_PER_WEEK } from './timestamp.js';

const UNIT_MS = { hourly: MS_PER_HOUR, daily: MS_PER_DAY } as const;

/** The last so many hours or days: whole ones, of which the present one is the last. Its end lies in the future. */
export function lastUnits(count: number, unit: keyof typeof UNIT_MS, now: EpochMs): Window {
  const endTime = bucketStart(now, unit) + UNIT_MS[unit];
  return { startTime: endTime - count * UNIT_MS[unit], endTime };
}

/** How many calendar months the window touches, in part or as a whole. */
export function monthsTouched(window: Window): number {
  return bucketCount(window, 'monthly');
}

/** The number of calendar months that the window is made of; undefined where it begins or ends within one. */
export function wholeMonths(window: Window): number | undefined {
  return beginsMonth(window.startTime) && beginsMonth(window.endTime) ? monthsTouched(window) : undefined;
}

function beginsMonth(instant: EpochMs): boolean {
  return bucketStart(instant, 'monthly') === instant;
}

/**
 * The part of a window up to an instant. Every question of a screen ends there, so that answers that come one after another
 * still speak of the same time. A window in the future is left as it is: it is empty.
 */
export function upTo({ startTime, endTime }: Window, asOf: EpochMs): Window {
  return { startTime, endTime: asOf > startTime ? Math.min(endTime, asOf) : endTime };
}

/** Of a year of 365.25 days: a month faces the one 4 weeks earlier, a quarter 13, a year 52. */
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

function monthsEarlier({ window, months = monthsTouched(window), asOf }: Compared): ComparedWindow {
  const { startTime, endTime } = window;
  const previousStart = plusMonths(startTime, -months);
  const isOver = asOf >= endTime && beginsMonth(endTime);
  const elapsed = Math.min(asOf, endTime) - startTime;
  // The month before may be shorter; it never overlaps the present one.
  const previousEnd = isOver ? plusMonths(endTime, -months) : Math.min(previousStart + elapsed, startTime);
  return {
    window: { startTime: previousStart, endTime: previousEnd },
    distance: `${counted(months, 'month')} earlier`,
  };
}
