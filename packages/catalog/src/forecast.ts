/**
 * Forecasts the cost or the usage of the current month, for the page and for alerts. The rule, which the page also shows to users: each
 * remaining day costs the average of the same weekday in the four weeks before today. Today costs that average too, or its actual cost if that
 * is already higher. Days before the first usage do not count.
 */
import { compareDecimals, divideDecimals, subtractDecimals, sumDecimals } from './amounts.js';
import { bucketAxis, bucketStart, type EpochMs, MS_PER_DAY, plusMonths, type Window } from './calendar.js';
import { type DecimalText, decimalText, ZERO } from './decimal.js';

const WEEKS = 4;
const DAYS_PER_WEEK = 7;
const HISTORY_MS = WEEKS * DAYS_PER_WEEK * MS_PER_DAY;
const COST_DIGITS = 12;

/** The cost of each day in the window of {@link monthWindow}. */
export interface DailyCosts {
  readonly days: readonly EpochMs[];
  readonly costs: readonly DecimalText[];
}

export interface MonthFigures {
  readonly toDate: DecimalText;
  /** The forecast for the whole month, or undefined before the first full day of usage. */
  readonly forecast: DecimalText | undefined;
  /** The expected additional cost of each day from today to the end of the month. Empty if there is no forecast. */
  readonly expected: ReadonlyMap<EpochMs, DecimalText>;
}

/** Returns the window that the forecast needs: the current month until now, and the four weeks before today. */
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
  if (past.length === 0) return { toDate, forecast: undefined, expected: new Map() };

  const average = (day: EpochMs) => {
    const same = past.filter((each) => (day - each.day) % (DAYS_PER_WEEK * MS_PER_DAY) === 0);
    // In the first week of usage, a weekday without history uses the average of all days.
    const basis = same.length > 0 ? same : past;
    const sum = sumDecimals(basis.map(({ cost }) => cost));
    return divideDecimals(sum, decimalText(String(basis.length)), COST_DIGITS) ?? ZERO;
  };
  const soFar = costs[days.indexOf(today)] ?? ZERO;
  const expected = new Map<EpochMs, DecimalText>();
  for (const day of bucketAxis({ startTime: today, endTime: plusMonths(month, 1) }, 'daily')) {
    const cost = average(day);
    if (day > today) expected.set(day, cost);
    else expected.set(day, compareDecimals(cost, soFar) > 0 ? subtractDecimals(cost, soFar) : ZERO);
  }
  return { toDate, forecast: sumDecimals([toDate, ...expected.values()]), expected };
}
