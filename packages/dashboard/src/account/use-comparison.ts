/** Reads the totals of the period that a view is compared with. */
import { bucketAxis, comparedWindow, periodMonths, sumDecimals, timesOf } from '@meterline/catalog/plain';
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
  const { compare } = view;
  const compared = useMemo(() => {
    const months = periodMonths(shownView.period);
    return compare && comparedWindow(compare, { window, months, resolution, asOf });
  }, [compare, window, shownView.period, resolution, asOf]);
  const previousQuery = compared && { ...query, ...timesOf(compared.window) };
  const isReady = first !== undefined && !isStale;
  const result = useMetrics(account, previousQuery && wholeQuery(shownView, previousQuery), isReady);
  const whole = compared && result.data?.data;
  const series = useMemo((): ComparedSeries | undefined => {
    if (!whole || !compared) return undefined;
    const buckets = bucketAxis(compared.window, resolution);
    const points = sumSeries(whole, measure, buckets.length);
    return { distance: compared.distance, points, buckets, isByDate: compare === 'months' };
  }, [whole, compared, compare, measure, resolution]);
  const totals = whole && {
    amount: sumDecimals(whole.map(({ summary }) => amountOf(summary, measure))),
    cost: sumDecimals(whole.map(({ summary }) => summary.cost)),
  };
  return { compared, previousQuery, isReady, series, totals, error: compared && result.error };
}
