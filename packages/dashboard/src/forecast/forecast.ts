/**
 * What the month will cost if it goes on like the last four weeks. The rule, which the page shows: every day that is still
 * to come costs what the same weekday cost on average in the four weeks before today; today costs that too, unless it has
 * cost more already. Weeks before the first use do not count.
 */
import {
  bucketAxis,
  bucketStart,
  compareDecimals,
  type DecimalText,
  decimalText,
  divideDecimals,
  type EpochMs,
  MS_PER_DAY,
  percentOf,
  plusMonths,
  subtractDecimals,
  sumDecimals,
  type Window,
  ZERO,
} from '@meterline/catalog/plain';

export const FORECAST_RULE =
  'The cost so far; every day still to come as the same weekday on average in the last four weeks, and today at least that.';

/** The rule of the forecast in a few words. */
export const FORECAST_SUMMARY = 'so far + same weekdays, last 4 weeks';

const WEEKS = 4;
const DAYS_PER_WEEK = 7;
const HISTORY_MS = WEEKS * DAYS_PER_WEEK * MS_PER_DAY;
const COST_DIGITS = 12;

/** What an account cost on each day of a window that {@link monthWindow} gives. */
export interface DailyCosts {
  readonly days: readonly EpochMs[];
  readonly costs: readonly DecimalText[];
}

export interface MonthFigures {
  /** From the start of the month to the instant that the screen is as of. */
  readonly toDate: DecimalText;
  /** The forecast for the whole month; undefined when no full day with use lies behind. */
  readonly forecast: DecimalText | undefined;
  /** What is still to come, by day, from today to the end of the month; empty without a forecast. */
  readonly toCome: ReadonlyMap<EpochMs, DecimalText>;
}

/** The month and the four weeks before today, which the forecast needs. */
export function monthWindow(asOf: EpochMs): Window {
  const month = bucketStart(asOf, 'monthly');
  return { startTime: Math.max(0, Math.min(month, bucketStart(asOf, 'daily') - HISTORY_MS)), endTime: asOf };
}

export function monthFigures({ days, costs }: DailyCosts, asOf: EpochMs): MonthFigures {
  const month = bucketStart(asOf, 'monthly');
  const today = bucketStart(asOf, 'daily');
  const toDate = sumDecimals(costs.filter((_, index) => (days[index] ?? 0) >= month));
  const first = days[costs.findIndex((cost) => cost !== ZERO)];
  const past = days
    .map((day, index) => ({ day, cost: costs[index] ?? ZERO }))
    .filter(({ day }) => day >= today - HISTORY_MS && day < today && first !== undefined && day >= first);
  if (past.length === 0) return { toDate, forecast: undefined, toCome: new Map() };

  const average = (day: EpochMs) => {
    const same = past.filter((each) => (day - each.day) % (DAYS_PER_WEEK * MS_PER_DAY) === 0);
    // In the first week of use not every weekday has been seen.
    const basis = same.length > 0 ? same : past;
    const sum = sumDecimals(basis.map(({ cost }) => cost));
    return divideDecimals(sum, decimalText(String(basis.length)), COST_DIGITS) ?? ZERO;
  };
  const soFar = costs[days.indexOf(today)] ?? ZERO;
  const toCome = new Map<EpochMs, DecimalText>();
  for (const day of bucketAxis({ startTime: today, endTime: plusMonths(month, 1) }, 'daily')) {
    const expected = average(day);
    if (day > today) toCome.set(day, expected);
    else toCome.set(day, compareDecimals(expected, soFar) > 0 ? subtractDecimals(expected, soFar) : ZERO);
  }
  return { toDate, forecast: sumDecimals([toDate, ...toCome.values()]), toCome };
}

/** `62%`. */
export function budgetShare(part: DecimalText, budget: DecimalText): string {
  return `${percentOf(part, budget, 0) ?? '0'}%`;
}
