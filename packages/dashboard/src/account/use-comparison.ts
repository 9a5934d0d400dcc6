/** Reads the totals of the period that a view is compared with. */
import {
  bucketAxis,
  comparedWindow,
  defaultComparison,
  periodMonths,
  sumDecimals,
  timesOf,
} from '@meterline/catalog/plain';
import { useMemo } from 'react';
import { amountOf, sumSeries } from '../breakdown/breakdown.js';
import type { ComparedSeries } from '../chart/chart-figures.js';
import { useMetrics } from '../metrics/queries.js';
import { wholeQuery } from '../metrics/query.js';
import type { Costs } from './use-costs.js';

export type Comparison = ReturnType<typeof useComparison>;

export function useComparison({
  account,
  view,
  shownView,
  window,
  resolution,
  asOf,
  query,
  measure,
  first,
  isStale,
}: Costs) {
  const months = periodMonths(shownView.period);
  const comparison = view.compare === 'period' ? defaultComparison(months) : view.compare;
  const compared = useMemo(
    () => comparison && comparedWindow(comparison, { window, months, resolution, asOf }),
    [comparison, window, months, resolution, asOf],
  );
  const previousQuery = compared && { ...query, ...timesOf(compared.window) };
  const isReady = first !== undefined && !isStale;
  const result = useMetrics(account, previousQuery && wholeQuery(shownView, previousQuery), isReady);
  const whole = compared && result.data?.data;
  const series = useMemo((): ComparedSeries | undefined => {
    if (!whole || !compared) return undefined;
    const buckets = bucketAxis(compared.window, resolution);
    const points = sumSeries(whole, measure, buckets.length);
    return { distance: compared.distance, points, buckets, isByDate: comparison === 'months' };
  }, [whole, compared, comparison, measure, resolution]);
  const totals = whole && {
    amount: sumDecimals(whole.map(({ summary }) => amountOf(summary, measure))),
    cost: sumDecimals(whole.map(({ summary }) => summary.cost)),
  };
  return { compared, previousQuery, isReady, series, totals, error: compared && result.error };
}
