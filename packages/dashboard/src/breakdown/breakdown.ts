/**
 * What the chart shows: the groups that cost most, and "Other". Other is the total less what is shown, in every bucket and
 * in sum, so that the bars always add up to what the account is billed, however many groups there are.
 */
import {
  addDecimals,
  bucketAxis,
  compareDecimals,
  type DecimalText,
  type EpochMs,
  type GroupByDimension,
  type Resolution,
  subtractDecimals,
  sumDecimals,
  type Window,
  ZERO,
} from '@meterline/catalog';
import type { MetricsAnswer, MetricsEntry, MetricsPoint } from '@meterline/client';
import type { Measure } from '../view/view.js';
import { type GroupValues, groupKey, groupLabel } from './group.js';

/** More than ten colours cannot be told apart. */
export const SHOWN_GROUPS = 10;
export const OTHER_KEY = 'other';

export interface Series {
  readonly key: string;
  readonly label: string;
  /** Undefined for Other, which is many groups. */
  readonly values: GroupValues | undefined;
  readonly total: DecimalText;
  /** One amount a bucket. */
  readonly points: readonly DecimalText[];
}

export interface Breakdown {
  /** The calendar starts of the buckets. */
  readonly buckets: readonly EpochMs[];
  /** Those that cost most first, Other last. */
  readonly series: readonly Series[];
  /** Of everything, bucket by bucket. */
  readonly totals: readonly DecimalText[];
  readonly total: DecimalText;
}

export interface BreakdownSource {
  /** The first page, whose entries come by cost. */
  readonly first: MetricsAnswer;
  /** The same window without a breakdown; needed when the first page is not the only one. */
  readonly whole: MetricsAnswer | undefined;
}

export function buildBreakdown(
  { first, whole }: BreakdownSource,
  groupBy: readonly GroupByDimension[],
  measure: Measure,
  window: Window,
): Breakdown {
  const buckets = bucketAxis(window, first.resolution);
  const totals = sumSeries(whole?.data ?? first.data, measure, buckets.length);
  const total = sumDecimals(totals);
  const shown = first.data.slice(0, SHOWN_GROUPS).map((entry) => seriesOf(entry, groupBy, measure));
  if (first.data.length <= SHOWN_GROUPS && !first.meta.hasMore) return { buckets, series: shown, totals, total };

  const points = totals.map((amount, bucket) =>
    shown.reduce((rest, series) => subtractDecimals(rest, series.points[bucket] ?? ZERO), amount),
  );
  const other = { key: OTHER_KEY, label: 'Other', values: undefined, total: sumDecimals(points), points };
  return { buckets, series: [...shown, other], totals, total };
}

/** Bucket by bucket over all entries. */
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

function seriesOf(entry: MetricsEntry, groupBy: readonly GroupByDimension[], measure: Measure): Series {
  return {
    key: groupKey(entry, groupBy),
    label: groupLabel(entry, groupBy),
    values: entry,
    total: amountOf(entry.summary, measure),
    points: entry.timeseries.map((point) => amountOf(point, measure)),
  };
}

export function amountOf(amounts: Pick<MetricsPoint, 'cost' | 'usage'>, measure: Measure): DecimalText {
  return (measure === 'cost' ? amounts.cost : amounts.usage) ?? ZERO;
}

/** The bucket with the most; undefined when there is nothing at all. */
export function peakBucket(totals: readonly DecimalText[]): number | undefined {
  let peak: number | undefined;
  let most = ZERO;
  for (const [bucket, amount] of totals.entries()) {
    if (compareDecimals(amount, most) <= 0) continue;
    peak = bucket;
    most = amount;
  }
  return peak;
}

/** The nominal resolution of an answer, for texts about one of its buckets. */
export const BUCKET_NOUN = {
  hourly: 'hour',
  daily: 'day',
  weekly: 'week',
  monthly: 'month',
} as const satisfies Record<Resolution, string>;
