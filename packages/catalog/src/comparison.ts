/** Finds the earlier window that a window is compared with. */
import { counted } from './amount-format.js';
import {
  beginsMonth,
  bucketCount,
  type EpochMs,
  exceededCap,
  MS_PER_WEEK,
  plusMonths,
  type Resolution,
  type Window,
} from './calendar.js';

/** Weeks per month in a year of 365.25 days. A month is compared with 4 weeks earlier, a quarter with 13, and a year with 52. */
const WEEKS_PER_MONTH = 365.25 / 12 / 7;

/**
 * `period` compares with whole weeks earlier, so that weekends are compared with weekends and nights with nights. With monthly buckets, it
 * compares with whole months earlier by date, as `months` always does.
 */
export const COMPARISONS = ['period', 'months'] as const;
export type Comparison = (typeof COMPARISONS)[number];

/** Returns how to find the previous period if the user has not chosen: months for a period of months, and weeks for any other period. */
export function defaultComparison(months: number | undefined): Comparison {
  return months === undefined ? 'period' : 'months';
}

export interface ComparedWindow {
  readonly window: Window;
  /** For example `4 weeks earlier`. */
  readonly distance: string;
}

export interface Compared {
  readonly window: Window;
  /** The number of months in a period of months, such as 1 for a month to date. Undefined for a period in days or hours, such as 30 days. */
  readonly months: number | undefined;
  readonly resolution: Resolution;
  readonly asOf: EpochMs;
}

/**
 * Returns the window to compare with. If a window has not ended yet, its elapsed part is compared with an equally long part: twelve days
 * with twelve days. Returns undefined for a window in the future, and if the earlier window would begin before 1970.
 */
export function comparedWindow(comparison: Comparison, compared: Compared): ComparedWindow | undefined {
  if (compared.asOf <= compared.window.startTime) return undefined;
  const isByMonths = comparison === 'months' || compared.resolution === 'monthly';
  const earlier = isByMonths ? monthsEarlier(compared) : weeksEarlier(compared);
  return earlier.window.startTime < 0 ? undefined : earlier;
}

function weeksEarlier({ window: { startTime, endTime }, months = 0, asOf }: Compared): ComparedWindow {
  // The shift is at least the length of the window, so that the two windows do not overlap.
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
  // The earlier months may be longer than the resolution allows. The comparison then uses a part of them that is as long as the window.
  const isOver = asOf >= endTime && beginsMonth(endTime) && exceededCap(resolution, whole) === undefined;
  const elapsed = Math.min(asOf, endTime) - startTime;
  // The previous month may be shorter than the elapsed time, but the two windows must not overlap.
  const previousEnd = isOver ? whole.endTime : Math.min(previousStart + elapsed, startTime);
  return {
    window: { startTime: previousStart, endTime: previousEnd },
    distance: `${counted(months, 'month')} earlier`,
  };
}
