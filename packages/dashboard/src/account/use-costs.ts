/** Reads the costs of a view, broken down into groups. Every card of the page shows a part of these costs. */
import { type EpochMs, filterQuery, showsWorkspaces, upTo } from '@meterline/catalog/plain';
import type { AccountResponse } from '@meterline/client';
import { useMemo } from 'react';
import { buildBreakdown } from '../breakdown/breakdown.js';
import { snapshotOf, useAccountNames, useBreakdown } from '../metrics/queries.js';
import { measureOf, metricsQuery, usageScope } from '../metrics/query.js';
import { writeView } from '../view/address.js';
import type { View } from '../view/view.js';

export type Costs = ReturnType<typeof useCosts>;

/** Reads the costs. Until the response to a new view arrives, returns the previous response with the view that it belongs to. */
export function useCosts(account: string, view: View, role: AccountResponse['role'] | undefined, now: EpochMs) {
  const requested = useMemo(() => snapshotOf(view, now), [view, now]);
  const requestedFilters = useMemo(() => filterQuery(view.filters), [view.filters]);
  const isForbidden = role === 'member' && showsWorkspaces(view);
  const result = useBreakdown(account, requested, requestedFilters, !isForbidden);
  const { data: source, isPlaceholderData: isStale } = result;

  const snapshot = isStale && source ? source.requested : requested;
  const { view: shownView, window, resolution, asOf } = snapshot;
  const { groupBy } = shownView;
  const filters = useMemo(() => filterQuery(shownView.filters), [shownView.filters]);
  const query = source?.requested.query ?? metricsQuery(shownView, { window: upTo(window, asOf), resolution, filters });
  const measure = measureOf(shownView);
  const { unit: usageUnit } = usageScope(shownView);
  const { startTime, endTime } = window;
  const names = useAccountNames();
  const breakdown = useMemo(
    () => source && buildBreakdown(source, groupBy, measure, { startTime, endTime }, names),
    [source, groupBy, measure, startTime, endTime, names],
  );
  const isSameView = !isStale || writeView({ ...shownView, account: view.account }) === writeView(view);

  return {
    account,
    role,
    seesWorkspaces: role === 'admin' || role === 'operator',
    /** The requested view, but with the grouping of the data on the screen. */
    view: { ...view, groupBy },
    shownView,
    window,
    resolution,
    asOf,
    query,
    filters,
    measure,
    /** The unit of the amounts, or undefined for money. */
    unit: measure === 'usage' ? usageUnit : undefined,
    usageUnit,
    result,
    first: source?.first,
    breakdown,
    isForbidden,
    isStale,
    /** True if there was no usage at all. False while the response to another view is pending. */
    isEmpty: isSameView && source?.isUsed === false,
  };
}
