/** Everything that the view of an account shows: the question, the answers so far, and what is still missing. */
import type { EpochMs, Role, Unit } from '@meterline/catalog';
import { useMemo } from 'react';
import { type Breakdown, buildBreakdown, groupKey, sumSeries } from '../breakdown/breakdown.js';
import { API_PAGE_SIZE, useBreakdown, useFurtherPages, usePreviousPeriod, useTotal } from '../metrics/queries.js';
import { measureOf, metricsQuery, needsAdmin, resolutionOf, usageScope, wholeQuery } from '../metrics/question.js';
import { isByMonths, periodWindow, presetWindow, previousWindow } from '../period/period.js';
import { isServerOrder, PAGE_ROWS, rowOf, sortRows } from '../table/rows.js';
import type { View } from '../view/view.js';

/** Any order but the API's own needs all groups. After so many pages the table says that there are more. */
const MOST_SORTED_PAGES = 100;

export type ShownAccount = ReturnType<typeof useAccountView>;

export function useAccountView(account: string, view: View, role: Role | undefined, now: EpochMs) {
  const wanted = periodWindow(view.period, now);
  const isRefused = role === 'member' && needsAdmin(view);
  const result = useBreakdown(account, view, now, !isRefused);
  const source = result.data;

  // Until the answer comes, the one before is shown, with its own breakdown, period and unit.
  const isStale = result.isPlaceholderData;
  const { view: of, window } = isStale && source ? source.asked : { view, window: wanted };
  const { groupBy } = of;
  const { startTime, endTime } = window;
  const resolution = resolutionOf(of, window);
  const query = metricsQuery(of, window);
  const measure = measureOf(of);
  const scope = usageScope(of);
  const unit: Unit | undefined = measure === 'usage' ? scope.unit : undefined;

  const breakdown: Breakdown | undefined = useMemo(
    () => source && buildBreakdown(source, groupBy, measure, { startTime, endTime }),
    [source, groupBy, measure, startTime, endTime],
  );

  const first = source?.first;
  const neededPages = Math.ceil((view.page * PAGE_ROWS) / API_PAGE_SIZE);
  const furtherPages = isServerOrder(view.sort) ? neededPages - 1 : MOST_SORTED_PAGES - 1;
  const further = useFurtherPages(account, query, first, furtherPages);

  const before = view.compare ? previousWindow(window, isByMonths(of.period, window), now) : undefined;
  const previousQuery = before && { ...metricsQuery(of, before), resolution };
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
  const previousSeries = useMemo(
    () => previous && sumSeries(previous.whole.data, measure, previous.whole.data[0]?.timeseries.length ?? 0),
    [previous, measure],
  );

  // This figure is less important, and waits for the breakdown.
  const monthToDate = useTotal(account, view.filters, presetWindow('month', now), !isRefused && first !== undefined);

  const rows = useMemo(() => {
    const entries = [...(first?.data ?? []), ...further.entries];
    return sortRows(
      entries.map((entry) => rowOf(entry, groupBy, previousCosts ?? undefined)),
      view.sort,
    );
  }, [first, further.entries, groupBy, view.sort, previousCosts]);

  return {
    groupBy,
    window,
    resolution,
    query,
    measure,
    unit,
    isRefused,
    isStale,
    result,
    breakdown,
    first,
    rows,
    further,
    before,
    comparison,
    previous,
    previousCosts: previousCosts ?? undefined,
    previousSeries: previousSeries ?? undefined,
    // Undefined, a dash, when it cannot be read; null while it is on its way.
    monthToDate: monthToDate.isError ? undefined : (monthToDate.data ?? null),
    usageUnit: scope.unit,
  };
}
