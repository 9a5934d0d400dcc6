/** Everything that the view of an account shows: the question, the answers so far, and what is still missing. */
import {
  bucketAxis,
  type ComparedWindow,
  type Comparison,
  comparedWindow,
  type EpochMs,
  groupKey,
  type Role,
  upTo,
} from '@meterline/catalog';
import { MAX_METRICS_PAGE } from '@meterline/catalog/api';
import type { FilterQuery } from '@meterline/client';
import { useMemo } from 'react';
import { type Breakdown, buildBreakdown, sumSeries } from '../breakdown/breakdown.js';
import type { Quantity } from '../breakdown/quantities.js';
import type { ComparedSeries } from '../chart/chart-figures.js';
import { monthFigures, withShownDays } from '../forecast/forecast.js';
import { filterQuery } from '../metrics/filter-query.js';
import {
  type Snapshot,
  snapshotOf,
  useBreakdown,
  useDailyCosts,
  useFurtherPages,
  usePreviousPeriod,
} from '../metrics/queries.js';
import { measureOf, metricsQuery, needsAdmin, usageScope, wholeQuery } from '../metrics/question.js';
import { periodMonths } from '../period/period.js';
import { isServerOrder, rowOf, searchRows, sortRows } from '../table/rows.js';
import type { View } from '../view/view.js';

/** Any order but the API's own, and a search, need all groups. After so many pages the table says that there are more. */
const MOST_READ_PAGES = 100;

export type ShownAccount = ReturnType<typeof useAccountView>;

export function useAccountView(account: string, view: View, role: Role | undefined, now: EpochMs) {
  const wanted = useMemo(() => snapshotOf(view, now), [view, now]);
  const isRefused = role === 'member' && needsAdmin(view);
  const filters = useMemo(() => filterQuery(view.filters), [view.filters]);
  const result = useBreakdown(account, wanted, filters, !isRefused);
  const source = result.data;

  // Until the answer comes, the one before is shown, with its own breakdown, period and unit.
  const isStale = result.isPlaceholderData;
  const asked = isStale && source ? source.asked : wanted;
  const { view: of, window, resolution, asOf } = asked;
  const { groupBy } = of;
  const { startTime, endTime } = window;
  const query = source?.asked.query ?? metricsQuery(of, { window: upTo(window, asOf), resolution, filters: {} });
  const measure = measureOf(of);
  const scope = usageScope(of);
  const unit: Quantity | undefined = measure === 'usage' ? scope.unit : undefined;

  const breakdown: Breakdown | undefined = useMemo(
    () => source && buildBreakdown(source, groupBy, measure, { startTime, endTime }),
    [source, groupBy, measure, startTime, endTime],
  );

  const first = source?.first;
  const neededPages = Math.ceil((view.page * view.pageSize) / MAX_METRICS_PAGE);
  const needsAll = !isServerOrder(view.sort) || view.search.trim() !== '';
  const furtherPages = (needsAll ? MOST_READ_PAGES : neededPages) - 1;
  const further = useFurtherPages(account, query, first, furtherPages);

  const { compare } = view;
  const compared = useMemo(() => compareWith(compare, asked), [compare, asked]);
  const before = compared?.window;
  const previousQuery = before && metricsQuery(of, { window: before, resolution, filters });
  const comparison = usePreviousPeriod(
    account,
    previousQuery,
    previousQuery && wholeQuery(of, previousQuery),
    !isRefused && first !== undefined && !isStale,
  );
  const previous = comparison.data;
  const previousCosts = useMemo(
    () => previous && new Map(previous.entries.map((entry) => [groupKey(entry, groupBy), entry.summary.cost])),
    [previous, groupBy],
  );
  const previousSeries = useMemo((): ComparedSeries | undefined => {
    if (!previous || !compared) return undefined;
    const buckets = bucketAxis(compared.window, resolution);
    const points = sumSeries(previous.whole.data, measure, buckets.length);
    return { distance: compared.distance, points, buckets };
  }, [previous, compared, measure, resolution]);

  // These figures are less important, and wait for the breakdown.
  const month = useMonth(
    account,
    asked,
    filters,
    measure === 'cost' ? breakdown : undefined,
    !isRefused && first !== undefined,
  );

  const rows = useMemo(() => {
    const entries = [...(first?.data ?? []), ...further.entries];
    const all = entries.map((entry) => rowOf(entry, groupBy, previousCosts ?? undefined));
    return searchRows(sortRows(all, view.sort), view.search);
  }, [first, further.entries, groupBy, view.sort, view.search, previousCosts]);

  return {
    groupBy,
    window,
    resolution,
    asOf,
    query,
    measure,
    unit,
    isRefused,
    isStale,
    result,
    breakdown,
    first,
    rows,
    needsAll,
    further,
    compared,
    comparison,
    previous,
    previousCosts: previousCosts ?? undefined,
    previousSeries,
    // Undefined when it cannot be read; null while it is on its way.
    month,
    usageUnit: scope.unit,
  };
}

function compareWith(
  comparison: Comparison | undefined,
  { view, window, resolution, asOf }: Snapshot,
): ComparedWindow | undefined {
  return comparison && comparedWindow(comparison, { window, months: periodMonths(view.period), resolution, asOf });
}

/**
 * The figures of the present month, which agree with the bars wherever those show the same days. Undefined when they cannot be
 * read, null while they are on their way.
 * @param breakdown of costs; undefined: not known yet, or not of costs
 */
function useMonth(
  account: string,
  asked: Snapshot,
  filters: FilterQuery,
  breakdown: Breakdown | undefined,
  enabled: boolean,
) {
  const daily = useDailyCosts(account, filters, asked.asOf, enabled);
  const { data, isError } = daily;
  const figures = useMemo(
    () => data && monthFigures(withShownDays(data, breakdown, asked), asked.asOf),
    [data, breakdown, asked],
  );
  return isError ? undefined : (figures ?? null);
}
