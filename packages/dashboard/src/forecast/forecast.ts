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
  plusMonths,
  subtractDecimals,
  sumDecimals,
  type Window,
  ZERO,
} from '@meterline/catalog';
import type { Breakdown } from '../breakdown/breakdown.js';
import type { Snapshot } from '../metrics/queries.js';

export const FORECAST_RULE =
  'The cost so far; every day still to come as the same weekday on average in the last four weeks, and today at least that.';

/** The same in a few words. */
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
  /** Of the whole month; undefined when no full day with use lies behind. */
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

/**
 * Makes the figures of the month agree with the bars beside them, to the last digit. The answers come one after another, and events that arrive in between are in the later one only. Days that the bars
 * show are therefore taken from them.
 */
export function withShownDays(
  { days, costs }: DailyCosts,
  breakdown: Breakdown | undefined,
  { resolution, window, asOf }: Pick<Snapshot, 'resolution' | 'window' | 'asOf'>,
): DailyCosts {
  if (!breakdown) return { days, costs };
  if (resolution === 'monthly') return withShownMonth({ days, costs }, breakdown, window.startTime, asOf);
  if (resolution === 'weekly') return { days, costs };
  const shown = new Map<EpochMs, DecimalText[]>();
  for (const [index, bucket] of breakdown.buckets.entries()) {
    const day = bucketStart(bucket, 'daily');
    // The first and the last day may be cut off by the window.
    if (day < window.startTime || (window.endTime < asOf && bucketStart(window.endTime, 'daily') === day)) continue;
    shown.set(day, [...(shown.get(day) ?? []), breakdown.totals[index] ?? ZERO]);
  }
  return { days, costs: costs.map((cost, index) => sumOr(shown.get(days[index] ?? 0), cost)) };
}

/** Bars of months give the sum of the month alone: what they have more or less is of today. */
function withShownMonth({ days, costs }: DailyCosts, breakdown: Breakdown, start: EpochMs, asOf: EpochMs): DailyCosts {
  const month = bucketStart(asOf, 'monthly');
  const bar = breakdown.totals[breakdown.buckets.indexOf(month)];
  const today = days.indexOf(bucketStart(asOf, 'daily'));
  if (bar === undefined || start > month || today < 0) return { days, costs };
  const earlier = sumDecimals(costs.filter((_, index) => index !== today && (days[index] ?? 0) >= month));
  return { days, costs: costs.map((cost, index) => (index === today ? subtractDecimals(bar, earlier) : cost)) };
}

function sumOr(amounts: readonly DecimalText[] | undefined, otherwise: DecimalText): DecimalText {
  return amounts ? sumDecimals(amounts) : otherwise;
}
