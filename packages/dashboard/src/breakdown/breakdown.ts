/**
 * Builds the series of the chart: one for each of the most expensive groups, and one for all other groups. The last series is the totals
 * minus the listed groups, in every bucket and overall. The bars therefore add up to the account's cost, however many groups there are.
 */
import {
  addDecimals,
  bucketAxis,
  compareDecimals,
  type DecimalText,
  ENTRY_FIELD,
  type EpochMs,
  groupKey,
  type Measure,
  type MetricsDimension,
  type Resolution,
  subtractDecimals,
  sumDecimals,
  type Window,
  ZERO,
} from '@meterline/catalog/plain';
import type { GroupValues, MetricsEntry, MetricsPoint, MetricsResponse } from '@meterline/client';
import { valueLabel } from '../format/texts.js';
import { type AccountNames, accountLabel } from '../view/view.js';

/** Maximum number of listed groups. People cannot distinguish more than ten colors. The style sheet defines one color for each group. */
export const LISTED_GROUPS = 10;
/** Key of the series of all other groups. Keys of groups are JSON, so even a group with the name "other" has another key. */
export const OTHER_KEY = 'other';

export interface Series {
  readonly key: string;
  readonly label: string;
  /** The dimension values of the group, or undefined for the series of all other groups. */
  readonly values: GroupValues | undefined;
  readonly total: DecimalText;
  readonly points: readonly DecimalText[];
}

export interface Breakdown {
  /** The calendar start of every bucket, including buckets in the future. */
  readonly buckets: readonly EpochMs[];
  /** Series sorted by cost, most expensive first. The series of all other groups comes last. */
  readonly series: readonly Series[];
  readonly totals: readonly DecimalText[];
  readonly total: DecimalText;
}

export interface BreakdownSource {
  readonly first: MetricsResponse;
  /** The response without a breakdown for the same window. Required if there is more than one page of groups. */
  readonly whole: MetricsResponse | undefined;
}

export function buildBreakdown(
  { first, whole }: BreakdownSource,
  groupBy: readonly MetricsDimension[],
  measure: Measure,
  window: Window,
  names?: AccountNames,
): Breakdown {
  const buckets = bucketAxis(window, first.resolution);
  const totals = sumSeries(whole?.data ?? first.data, measure, buckets.length);
  const total = sumDecimals(totals);
  const listed = first.data
    .slice(0, LISTED_GROUPS)
    .map((entry) => seriesOf(entry, groupBy, measure, buckets.length, names));
  if (first.data.length <= LISTED_GROUPS && !first.meta.hasMore) return { buckets, series: listed, totals, total };

  const points = totals.map((amount, bucket) =>
    listed.reduce((rest, series) => subtractDecimals(rest, series.points[bucket] ?? ZERO), amount),
  );
  const label = first.meta.hasMore ? 'All other groups' : `${first.data.length - LISTED_GROUPS} other groups`;
  const other = { key: OTHER_KEY, label, values: undefined, total: sumDecimals(points), points };
  return { buckets, series: [...listed, other], totals, total };
}

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
  names: AccountNames | undefined,
): Series {
  const points = entry.timeseries.map((point) => amountOf(point, measure));
  return {
    key: groupKey(entry, groupBy),
    label: groupLabels(entry, groupBy, names).join(' · '),
    values: entry,
    total: amountOf(entry.summary, measure),
    // The API returns no points for future buckets, so add zeros.
    points: [...points, ...new Array<DecimalText>(Math.max(0, buckets - points.length)).fill(ZERO)],
  };
}

export function groupLabels(values: GroupValues, groupBy: readonly MetricsDimension[], names?: AccountNames): string[] {
  if (groupBy.length === 0) return ['All usage'];
  return groupBy.map((dimension) => {
    const field = ENTRY_FIELD[dimension];
    const value = values[field] ?? '';
    return field === 'account' ? accountLabel(value, names) : valueLabel(field, value);
  });
}

export function amountOf(amounts: Pick<MetricsPoint, 'cost' | 'usage'>, measure: Measure): DecimalText {
  return (measure === 'cost' ? amounts.cost : amounts.usage) ?? ZERO;
}

/** Returns the index of the highest bucket, or undefined if all buckets are zero. */
export function peakBucket(totals: readonly DecimalText[]): number | undefined {
  const most = totals.reduce((peak, amount) => (compareDecimals(amount, peak) > 0 ? amount : peak), ZERO);
  return most === ZERO ? undefined : totals.indexOf(most);
}

/** Returns running totals, which are the heights of cumulative bars. */
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

export const BUCKET_NOUN = {
  hourly: 'hour',
  daily: 'day',
  weekly: 'week',
  monthly: 'month',
} as const satisfies Record<Resolution, string>;

export function seriesColor({ key }: Pick<Series, 'key'>, rank: number): string {
  return key === OTHER_KEY ? 'var(--series-other)' : `var(--series-${rank + 1})`;
}
