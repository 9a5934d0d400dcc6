/**
 * What the chart shows: the groups that cost most, and all others as one. Those are the total minus the groups shown, in
 * every bucket and in sum, so that the bars always add up to what the account is billed, however many groups there are.
 */
import {
  addDecimals,
  bucketAxis,
  compareDecimals,
  type DecimalText,
  ENTRY_FIELD,
  type EpochMs,
  groupKey,
  type MetricsDimension,
  type Resolution,
  subtractDecimals,
  sumDecimals,
  type Window,
  ZERO,
} from '@meterline/catalog/plain';
import type { GroupValues, MetricsEntry, MetricsPoint, MetricsResponse } from '@meterline/client';
import type { Measure } from '../view/view.js';
import { valueLabel } from './texts.js';

/** People cannot distinguish more than ten colours; the style sheet has as many. */
export const SHOWN_GROUPS = 10;
/** No group has this key: theirs are JSON. A resource may well be named "Other". */
export const OTHER_KEY = 'other';

export interface Series {
  readonly key: string;
  readonly label: string;
  /** Undefined for the remainder, which is many groups. */
  readonly values: GroupValues | undefined;
  readonly total: DecimalText;
  /** One amount a bucket. */
  readonly points: readonly DecimalText[];
}

export interface Breakdown {
  /** The calendar starts of the buckets, those to come included. */
  readonly buckets: readonly EpochMs[];
  /** The most expensive series first, the remainder last. */
  readonly series: readonly Series[];
  /** The totals of all groups, by bucket. */
  readonly totals: readonly DecimalText[];
  readonly total: DecimalText;
}

export interface BreakdownSource {
  /** The first page, most expensive groups first. */
  readonly first: MetricsResponse;
  /** The response for the same window without a breakdown; needed when there are more pages. */
  readonly whole: MetricsResponse | undefined;
}

export function buildBreakdown(
  { first, whole }: BreakdownSource,
  groupBy: readonly MetricsDimension[],
  measure: Measure,
  window: Window,
): Breakdown {
  const buckets = bucketAxis(window, first.resolution);
  const totals = sumSeries(whole?.data ?? first.data, measure, buckets.length);
  const total = sumDecimals(totals);
  const shown = first.data.slice(0, SHOWN_GROUPS).map((entry) => seriesOf(entry, groupBy, measure, buckets.length));
  if (first.data.length <= SHOWN_GROUPS && !first.meta.hasMore) return { buckets, series: shown, totals, total };

  const points = totals.map((amount, bucket) =>
    shown.reduce((rest, series) => subtractDecimals(rest, series.points[bucket] ?? ZERO), amount),
  );
  const label = first.meta.hasMore ? 'All other groups' : `${first.data.length - SHOWN_GROUPS} other groups`;
  const other = { key: OTHER_KEY, label, values: undefined, total: sumDecimals(points), points };
  return { buckets, series: [...shown, other], totals, total };
}

/** The sum of all entries in each bucket. */
export function sumSeries(entries: readonly MetricsEntry[], measure: Measure, buckets: number): DecimalText[] {
  const totals = new Array<DecimalText>(buckets).fill(ZERO);
  for (const { timeseries } of entries) {
    for (const [bucket, point] of timeseries.entries()) {
      const amount = amountOf(point, measure);
      if (amount !== ZERO) totals[bucket] = addDecimals(totals[bucket] ?? ZERO, amount);
    }
  }
  return totals;
}

function seriesOf(
  entry: MetricsEntry,
  groupBy: readonly MetricsDimension[],
  measure: Measure,
  buckets: number,
): Series {
  const points = entry.timeseries.map((point) => amountOf(point, measure));
  return {
    key: groupKey(entry, groupBy),
    label: groupLabels(entry, groupBy).join(' · '),
    values: entry,
    total: amountOf(entry.summary, measure),
    // What is still to come has no figures.
    points: [...points, ...new Array<DecimalText>(Math.max(0, buckets - points.length)).fill(ZERO)],
  };
}

/** One label for each dimension of the breakdown, in its order; `Everything` without a breakdown. */
export function groupLabels(values: GroupValues, groupBy: readonly MetricsDimension[]): string[] {
  if (groupBy.length === 0) return ['Everything'];
  return groupBy.map((dimension) => {
    const field = ENTRY_FIELD[dimension];
    return valueLabel(field, values[field] ?? '');
  });
}

export function amountOf(amounts: Pick<MetricsPoint, 'cost' | 'usage'>, measure: Measure): DecimalText {
  return (measure === 'cost' ? amounts.cost : amounts.usage) ?? ZERO;
}

/** The bucket with the most; undefined when there is nothing at all. */
export function peakBucket(totals: readonly DecimalText[]): number | undefined {
  const most = totals.reduce((peak, amount) => (compareDecimals(amount, peak) > 0 ? amount : peak), ZERO);
  return most === ZERO ? undefined : totals.indexOf(most);
}

/** Every bucket with what came before it: what the bars show when they are cumulative. */
export function accumulated(points: readonly DecimalText[]): DecimalText[] {
  let sum = ZERO;
  return points.map((point) => {
    sum = addDecimals(sum, point);
    return sum;
  });
}

export function accumulatedBreakdown(breakdown: Breakdown): Breakdown {
  const series = breakdown.series.map((each) => ({ ...each, points: accumulated(each.points) }));
  return { ...breakdown, series, totals: accumulated(breakdown.totals) };
}

/** For texts about one bucket. */
export const BUCKET_NOUN = {
  hourly: 'hour',
  daily: 'day',
  weekly: 'week',
  monthly: 'month',
} as const satisfies Record<Resolution, string>;

/** A CSS colour by rank: the most expensive group has the accent, and all others are grey. */
export function seriesColor({ key }: Pick<Series, 'key'>, rank: number): string {
  return key === OTHER_KEY ? 'var(--series-other)' : `var(--series-${rank + 1})`;
}
