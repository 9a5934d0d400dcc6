/** Finds the earlier window to compare a window with. */
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

/** Weeks per month in a year of 365.25 days: a month is compared with 4 weeks earlier, a quarter with 13, a year with 52. */
const WEEKS_PER_MONTH = 365.25 / 12 / 7;

/**
 * `period` compares with whole weeks earlier, so that weekends face weekends and night hours face night hours; with monthly buckets it
 * compares whole months. `months` compares with whole months earlier, by date.
 */
export const COMPARISONS = ['period', 'months'] as const;
export type Comparison = (typeof COMPARISONS)[number];

export interface ComparedWindow {
  readonly window: Window;
  /** Such as `4 weeks earlier`. */
  readonly distance: string;
}

export interface Compared {
  readonly window: Window;
  /**
   * The number of calendar months that the window represents: 1 for a month to date. Undefined for a window in days or hours, even if
   * thirty days happen to be a month.
   */
  readonly months: number | undefined;
  readonly resolution: Resolution;
  readonly asOf: EpochMs;
}

/**
 * Returns the window to compare with. A window that has not ended yet is compared with an equally long part: twelve days with twelve days.
 * Returns undefined for a window in the future, and if the earlier window would begin before 1970.
 */
export function comparedWindow(comparison: Comparison, compared: Compared): ComparedWindow | undefined {
  if (compared.asOf <= compared.window.startTime) return undefined;
  const isByMonths = comparison === 'months' || compared.resolution === 'monthly';
  const earlier = isByMonths ? monthsEarlier(compared) : weeksEarlier(compared);
  return earlier.window.startTime < 0 ? undefined : earlier;
}

function weeksEarlier({ window: { startTime, endTime }, months = 0, asOf }: Compared): ComparedWindow {
  // At least the length of the window, so that the two windows do not overlap.
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
  // Earlier months may be longer than the resolution's cap. Then the comparison uses an equally long part of them.
  const isOver = asOf >= endTime && beginsMonth(endTime) && exceededCap(resolution, whole) === undefined;
  const elapsed = Math.min(asOf, endTime) - startTime;
  // The previous month may be shorter than the elapsed time. The two windows must not overlap.
  const previousEnd = isOver ? whole.endTime : Math.min(previousStart + elapsed, startTime);
  return {
    window: { startTime: previousStart, endTime: previousEnd },
    distance: `${counted(months, 'month')} earlier`,
  };
}
