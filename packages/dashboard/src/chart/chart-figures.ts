/** What the chart draws besides the bars of the groups: what is still to come, the period before, and the budget. */
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
import type { Quantity } from '../breakdown/texts.js';
import { unfinishedBucket } from '../period/period.js';
import type { View } from '../view/view.js';

/** What choosing a bar opens, and that in words; undefined: nothing. @param series undefined: the whole bucket */
export type TargetOf = (series: number | undefined, bucket: number) => Target | undefined;

export interface Target {
  readonly view: View;
  readonly hint: string;
}

export interface ComparedSeries {
  /** `4 weeks earlier`. */
  readonly distance: string;
  readonly buckets: readonly EpochMs[];
  readonly points: readonly DecimalText[];
}

interface BudgetLine {
  readonly amount: DecimalText;
  /** `a day`, `a month`. */
  readonly per: string;
}

export interface ChartSource {
  readonly breakdown: Breakdown;
  readonly window: Window;
  readonly resolution: Resolution;
  /** Undefined: money. */
  readonly unit: Quantity | undefined;
  readonly asOf: EpochMs;
  readonly isCumulative: boolean;
  /** By day; undefined: none, or not of what is shown. */
  readonly toCome: ReadonlyMap<EpochMs, DecimalText> | undefined;
  readonly previous: ComparedSeries | undefined;
  /** USD a month. */
  readonly budget: DecimalText | undefined;
}

export interface ChartFigures extends Omit<ChartSource, 'window' | 'toCome' | 'budget'> {
  /** The buckets of the window; in a month, with the forecast's days after it. */
  readonly buckets: readonly EpochMs[];
  /** The bucket that has begun and is not over. */
  readonly unfinished: number | undefined;
  /** What the forecast adds to each bucket; undefined: no forecast is drawn. */
  readonly toCome: readonly DecimalText[] | undefined;
  readonly budget: BudgetLine | undefined;
}

export function chartFigures(source: ChartSource): ChartFigures {
  const { breakdown, resolution, unit, window, asOf, isCumulative, previous } = source;
  // In a window that is over nothing is still to come, though the last week or month that it cuts goes on.
  const unfinished = asOf <= window.endTime ? unfinishedBucket(breakdown.buckets, resolution, asOf) : undefined;
  const expected = unit === undefined ? expectedPoints(source, unfinished) : undefined;
  return {
    ...source,
    buckets: expected?.buckets ?? breakdown.buckets,
    breakdown: isCumulative ? upToNow(accumulatedBreakdown(breakdown), unfinished) : breakdown,
    unfinished,
    toCome: expected && (isCumulative ? accumulatedForecast(expected.points, breakdown, unfinished) : expected.points),
    previous: previous && isCumulative ? { ...previous, points: accumulated(previous.points) } : previous,
    budget: unit === undefined ? budgetLine(source) : undefined,
  };
}

/** The forecast is of days of one month: it fits bars of that month's days, and the bar of the month itself. */
function expectedPoints({ breakdown, window, resolution, toCome, asOf }: ChartSource, unfinished: number | undefined) {
  if (!toCome || toCome.size === 0 || unfinished === undefined) return undefined;
  const month = bucketStart(asOf, 'monthly');
  if (resolution === 'monthly') {
    const sum = sumDecimals(toCome.values());
    return { buckets: breakdown.buckets, points: breakdown.buckets.map((bucket) => (bucket === month ? sum : ZERO)) };
  }
  if (resolution !== 'daily' || window.startTime !== month || window.endTime > plusMonths(month, 1)) return undefined;
  const buckets = bucketAxis({ startTime: month, endTime: plusMonths(month, 1) }, 'daily');
  return { buckets, points: buckets.map((bucket) => toCome.get(bucket) ?? ZERO) };
}

/** Sums of days that have not come are no figures. */
function upToNow(breakdown: Breakdown, unfinished: number | undefined): Breakdown {
  if (unfinished === undefined) return breakdown;
  const cut = (points: readonly DecimalText[]) => points.map((point, index) => (index > unfinished ? ZERO : point));
  const series = breakdown.series.map((each) => ({ ...each, points: cut(each.points) }));
  return { ...breakdown, series, totals: cut(breakdown.totals) };
}

/** Up to today the bars stand below it; the days after have nothing else. */
function accumulatedForecast(points: readonly DecimalText[], { total }: Breakdown, unfinished = -1): DecimalText[] {
  return accumulated(points).map((point, index) => (index > unfinished ? addDecimals(total, point) : point));
}

/** A line needs bars that a budget can be compared with: months, days at an even pace, or the sum of a month so far. */
function budgetLine({ window, resolution, asOf, isCumulative, budget }: ChartSource): BudgetLine | undefined {
  if (budget === undefined) return undefined;
  const month = bucketStart(asOf, 'monthly');
  const end = plusMonths(month, 1);
  if (isCumulative) {
    return window.startTime === month && window.endTime <= end ? { amount: budget, per: 'a month' } : undefined;
  }
  if (resolution === 'monthly') return { amount: budget, per: 'a month' };
  if (resolution !== 'daily') return undefined;
  const days = decimalText(String(Math.round((end - month) / MS_PER_DAY)));
  return { amount: divideDecimals(budget, days, 2) ?? ZERO, per: 'a day' };
}
