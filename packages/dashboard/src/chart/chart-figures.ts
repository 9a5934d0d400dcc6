/** Prepares the data of the chart: the bars, the forecast, the previous period and the budget. */
import {
  addDecimals,
  bucketAxis,
  bucketStart,
  type DecimalText,
  decimalText,
  divideDecimals,
  type EpochMs,
  MS_PER_DAY,
  plusMonths,
  type Resolution,
  sumDecimals,
  type Window,
  ZERO,
} from '@meterline/catalog/plain';
import { accumulated, accumulatedBreakdown, type Breakdown } from '../breakdown/breakdown.js';
import type { Quantity } from '../format/texts.js';
import { unfinishedBucket } from '../period/period.js';
import type { View } from '../view/view.js';

/** Returns the view that a click on a bar opens, or undefined if nothing opens. @param series undefined for the whole bucket */
export type TargetOf = (series: number | undefined, bucket: number) => Target | undefined;

export interface Target {
  readonly view: View;
  /** The end of a hint. For example, `to zoom in` completes `Click` to `Click to zoom in`. */
  readonly hint: string;
}

export interface ComparedSeries {
  /** How far the previous period lies back, such as `4 weeks earlier`. */
  readonly distance: string;
  readonly buckets: readonly EpochMs[];
  readonly points: readonly DecimalText[];
  /** Whether each bucket is compared with the same date, such as 3 Nov with 3 Oct. The weekdays then differ. */
  readonly isByDate: boolean;
}

interface BudgetLine {
  readonly amount: DecimalText;
  readonly per: 'day' | 'month';
  /** The index of the bucket where the line begins. */
  readonly from: number;
}

export interface ChartSource {
  readonly breakdown: Breakdown;
  readonly window: Window;
  readonly resolution: Resolution;
  /** The unit of usage, or undefined if the amounts are money. */
  readonly unit: Quantity | undefined;
  readonly asOf: EpochMs;
  readonly isCumulative: boolean;
  /** The forecast of each remaining day, or undefined if there is no forecast. */
  readonly expected: ReadonlyMap<EpochMs, DecimalText> | undefined;
  readonly previous: ComparedSeries | undefined;
  /** Budget in USD per month. */
  readonly budget: DecimalText | undefined;
}

export interface ChartFigures extends Omit<ChartSource, 'window' | 'expected' | 'budget'> {
  /** The buckets of the window. In a view of the current month, also the remaining days, which have a forecast. */
  readonly buckets: readonly EpochMs[];
  readonly unfinished: number | undefined;
  /** The amount that the forecast adds to each bucket, or undefined if there is no forecast. */
  readonly expected: readonly DecimalText[] | undefined;
  readonly budget: BudgetLine | undefined;
}

export function chartFigures(source: ChartSource): ChartFigures {
  const { breakdown, resolution, unit, window, asOf, isCumulative, previous } = source;
  // A window may end within a week or month. Once the window has ended, its last bucket gets no more data, so treat it as finished.
  const unfinished = asOf <= window.endTime ? unfinishedBucket(breakdown.buckets, resolution, asOf) : undefined;
  const forecast = unit === undefined ? forecastPoints(source, unfinished) : undefined;
  return {
    ...source,
    buckets: forecast?.buckets ?? breakdown.buckets,
    breakdown: isCumulative ? upToNow(accumulatedBreakdown(breakdown), unfinished) : breakdown,
    unfinished,
    expected:
      forecast && (isCumulative ? accumulatedForecast(forecast.points, breakdown, unfinished) : forecast.points),
    previous: previous && isCumulative ? { ...previous, points: accumulated(previous.points) } : previous,
    budget: unit === undefined ? budgetLine(source) : undefined,
  };
}

/** Returns the forecast for daily bars of the current month, or for the bar of the month itself. Returns undefined for other bars. */
function forecastPoints(
  { breakdown, window, resolution, expected, asOf }: ChartSource,
  unfinished: number | undefined,
) {
  if (!expected || expected.size === 0 || unfinished === undefined) return undefined;
  const month = bucketStart(asOf, 'monthly');
  if (resolution === 'monthly') {
    const sum = sumDecimals(expected.values());
    return { buckets: breakdown.buckets, points: breakdown.buckets.map((bucket) => (bucket === month ? sum : ZERO)) };
  }
  if (resolution !== 'daily' || window.startTime !== month || window.endTime > plusMonths(month, 1)) return undefined;
  const buckets = bucketAxis({ startTime: month, endTime: plusMonths(month, 1) }, 'daily');
  return { buckets, points: buckets.map((bucket) => expected.get(bucket) ?? ZERO) };
}

function upToNow(breakdown: Breakdown, unfinished: number | undefined): Breakdown {
  if (unfinished === undefined) return breakdown;
  const cut = (points: readonly DecimalText[]) => points.map((point, index) => (index > unfinished ? ZERO : point));
  const series = breakdown.series.map((each) => ({ ...each, points: cut(each.points) }));
  return { ...breakdown, series, totals: cut(breakdown.totals) };
}

/** Returns running totals of the forecast. Future days have no bars, so their forecast also includes the total so far. */
function accumulatedForecast(points: readonly DecimalText[], { total }: Breakdown, unfinished = -1): DecimalText[] {
  return accumulated(points).map((point, index) => (index > unfinished ? addDecimals(total, point) : point));
}

/**
 * Returns the budget as a line over the bars. For monthly and cumulative bars, the line is the monthly budget. For daily bars, the line is
 * the monthly budget divided by the number of days in the current month, and begins with this month.
 */
function budgetLine({ window, resolution, asOf, isCumulative, budget }: ChartSource): BudgetLine | undefined {
  if (budget === undefined) return undefined;
  const month = bucketStart(asOf, 'monthly');
  const end = plusMonths(month, 1);
  if (isCumulative) {
    return window.startTime === month && window.endTime <= end ? { amount: budget, per: 'month', from: 0 } : undefined;
  }
  if (resolution === 'monthly') return { amount: budget, per: 'month', from: 0 };
  if (resolution !== 'daily' || window.endTime <= month) return undefined;
  const from = Math.max(0, (month - bucketStart(window.startTime, 'daily')) / MS_PER_DAY);
  const days = decimalText(String(Math.round((end - month) / MS_PER_DAY)));
  return { amount: divideDecimals(budget, days, 2) ?? ZERO, per: 'day', from };
}
