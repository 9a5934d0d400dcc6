/** Everything that the view of an account shows: the queries, the responses so far, and what is still missing. */
import {
  bucketAxis,
  comparedWindow,
  type EpochMs,
  MAX_METRICS_PAGE,
  sumDecimals,
  upTo,
} from '@meterline/catalog/plain';
import { type AccountResponse, ALL_ACCOUNTS, queriesOfGroups } from '@meterline/client';
import { useMemo } from 'react';
import { budgetOf, useAlerts } from '../alerts/alerts.js';
import { amountOf, type Breakdown, buildBreakdown, sumSeries } from '../breakdown/breakdown.js';
import type { Quantity } from '../breakdown/texts.js';
import { type ComparedSeries, chartFigures } from '../chart/chart-figures.js';
import { monthFigures } from '../forecast/forecast.js';
import {
  snapshotOf,
  useBreakdown,
  useDailyCosts,
  useFurtherPages,
  useMetrics,
  usePreviousGroups,
} from '../metrics/queries.js';
import { filterQuery, measureOf, metricsQuery, needsAdmin, usageScope, wholeQuery } from '../metrics/query.js';
import { periodMonths } from '../period/period.js';
import { needsAllGroups, previousCostIn, rowOf, searchRows, sortRows } from '../table/rows.js';
import { writeView } from '../view/address.js';
import type { View } from '../view/view.js';

/** Any order but the API's own, and a search, need all groups. After so many pages the table says that there are more. */
const MOST_READ_PAGES = 100;

export type ShownAccount = ReturnType<typeof useAccountView>;

export function useAccountView(account: string, view: View, role: AccountResponse['role'] | undefined, now: EpochMs) {
  const wanted = useMemo(() => snapshotOf(view, now), [view, now]);
  const isForbidden = role === 'member' && needsAdmin(view);
  const filters = useMemo(() => filterQuery(view.filters), [view.filters]);
  const result = useBreakdown(account, wanted, filters, !isForbidden);
  const source = result.data;

  // Until the response comes, the one before is shown, with its own breakdown, period and unit.
  const isStale = result.isPlaceholderData;
  const requested = isStale && source ? source.requested : wanted;
  const { view: of, window, resolution, asOf } = requested;
  const { groupBy } = of;
  const shownFilters = useMemo(() => filterQuery(of.filters), [of.filters]);
  const { startTime, endTime } = window;
  const query = source?.requested.query ?? metricsQuery(of, { window: upTo(window, asOf), resolution, filters: {} });
  const measure = measureOf(of);
  const scope = usageScope(of);
  const unit: Quantity | undefined = measure === 'usage' ? scope.unit : undefined;

  const breakdown: Breakdown | undefined = useMemo(
    () => source && buildBreakdown(source, groupBy, measure, { startTime, endTime }),
    [source, groupBy, measure, startTime, endTime],
  );

  const first = source?.first;
  const isSameView = !isStale || writeView({ ...of, account: view.account }) === writeView(view);
  const { sort, search, pageSize } = view;
  const needsAll = needsAllGroups(view);
  // A page of very many buckets has fewer groups.
  const groupsOnPage = first?.meta.hasMore ? Math.max(1, first.data.length) : MAX_METRICS_PAGE;
  const neededPages = Math.ceil((view.page * pageSize) / groupsOnPage);
  const further = useFurtherPages(account, query, first, (needsAll ? MOST_READ_PAGES : neededPages) - 1);
  const found = useMemo(() => {
    const entries = [...(first?.data ?? []), ...further.entries];
    return sortRows(
      searchRows(
        entries.map((entry) => rowOf(entry, groupBy)),
        search,
      ),
      sort,
    );
  }, [first, further.entries, groupBy, sort, search]);
  // Between two pages nothing is fetched for a moment.
  const isBetweenPages = further.hasMore && further.pages < MOST_READ_PAGES - 1 && !further.error;
  const isReadingAll = further.isFetching || isBetweenPages;
  const isReading = needsAll ? isReadingAll : further.hasMore && found.length < view.page * pageSize;
  // A link may name a page that is not there any more.
  const page = isReading ? view.page : Math.max(1, Math.min(view.page, Math.ceil(found.length / pageSize)));
  const from = (page - 1) * pageSize;

  const { compare } = view;
  const compared = useMemo(
    () => compare && comparedWindow(compare, { window, months: periodMonths(of.period), resolution, asOf }),
    [compare, window, of, resolution, asOf],
  );
  const previousQuery = compared && metricsQuery(of, { window: compared.window, resolution, filters: shownFilters });
  const isCompared = !isForbidden && first !== undefined && !isStale;
  const previousTotal = useMetrics(account, previousQuery && wholeQuery(of, previousQuery), isCompared);
  // Only the order by change needs groups that are not shown.
  const sortsByChange = sort.column === 'change';
  const shownGroups = found.slice(from, from + pageSize);
  const previousGroups = usePreviousGroups(
    account,
    previousQuery &&
      (sortsByChange
        ? [previousQuery]
        : queriesOfGroups(
            previousQuery,
            shownGroups.map(({ entry }) => entry),
          )),
    sortsByChange ? MOST_READ_PAGES : 1,
    isCompared && !isReading,
  );
  const rows = useMemo(() => {
    if (!compared) return found;
    const previousCost = previousCostIn(previousGroups.data, groupBy);
    const priced = found.map((row) => ({ ...row, previousCost: previousCost(row.key) }));
    return sortsByChange ? sortRows(priced, sort) : priced;
  }, [found, compared, previousGroups.data, groupBy, sortsByChange, sort]);

  const previousWhole = compared && previousTotal.data;
  const previous = useMemo((): ComparedSeries | undefined => {
    if (!previousWhole || !compared) return undefined;
    const buckets = bucketAxis(compared.window, resolution);
    const points = sumSeries(previousWhole.data, measure, buckets.length);
    return { distance: compared.distance, points, buckets };
  }, [previousWhole, compared, measure, resolution]);

  // Daily costs and alerts are less important, and wait for the breakdown.
  const daily = useDailyCosts(account, shownFilters, asOf, !isForbidden && first !== undefined);
  const month = useMemo(() => daily.data && monthFigures(daily.data, asOf), [daily.data, asOf]);
  const alerts = useAlerts(account, account !== ALL_ACCOUNTS && first !== undefined);
  const budget = budgetOf(alerts, shownFilters);
  const { isCumulative } = view;
  const toCome = month?.toCome;
  const figures = useMemo(() => {
    const source = { window, resolution, unit, asOf, isCumulative, toCome, previous, budget };
    return breakdown && chartFigures({ ...source, breakdown });
  }, [breakdown, window, resolution, unit, asOf, isCumulative, toCome, previous, budget]);

  return {
    account,
    role,
    seesWorkspaces: role === 'admin' || role === 'operator',
    /** Grouped as the figures are. */
    view: { ...view, groupBy },
    /** The one that the figures answer. */
    shownView: of,
    awaited: [result, further, previousTotal, previousGroups],
    window,
    resolution,
    asOf,
    query,
    unit,
    isForbidden,
    isStale,
    /** There was no usage at all. Not said of another view while its response is on its way. */
    isEmpty: isSameView && source?.isUsed === false,
    result,
    breakdown,
    figures,
    first,
    /** All that were found, and where the page of the table begins. */
    rows,
    from,
    page,
    isReading,
    needsAll,
    further,
    compared,
    previousQuery,
    previousTotals: previousWhole && {
      shown: sumDecimals(previousWhole.data.map(({ summary }) => amountOf(summary, measure))),
      cost: sumDecimals(previousWhole.data.map(({ summary }) => summary.cost)),
    },
    isComparing: isCompared && !previousGroups.error && previousGroups.isFetching,
    comparisonError: compared && (previousTotal.error ?? previousGroups.error),
    compareAgain: () => void Promise.all([previousTotal.refetch(), previousGroups.refetch()]),
    /** Undefined when it cannot be read; null while it is on its way. */
    month: month ?? (daily.failureReason ? undefined : null),
    usageUnit: scope.unit,
    filters,
    alerts,
    /** USD a month. */
    budget,
  };
}
