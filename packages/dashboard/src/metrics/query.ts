/** Builds the API queries of a view, and decides whether the view can show usage. */
import {
  automaticResolution,
  canonicalGroupBy,
  exceededCap,
  filterQuery,
  type MetricsDimension,
  RESOLUTIONS,
  type Resolution,
  timesOf,
  unitOf,
  type Window,
} from '@meterline/catalog/plain';
import {
  type EventsQuery,
  type FilterQuery,
  filteredByGroups,
  type GroupValues,
  type MetricsQuery,
} from '@meterline/client';
import { commonQuantity, LIST, type Quantity, unitLabel } from '../format/texts.js';
import type { View } from '../view/view.js';
import { dimensionsLeft, hasUsage, withoutAccount } from '../view/view.js';

/** Returns the chosen resolution, or the automatic one if the user chose none, or if the window is too long for the choice. */
export function resolutionOf({ resolution, period }: View, window: Window): Resolution {
  return resolution && exceededCap(resolution, window) === undefined ? resolution : automaticResolution(period, window);
}

/** Returns all resolutions. If the window is too long for a resolution, its choice has a `disabledReason`. */
export function resolutionChoices(window: Window) {
  return RESOLUTIONS.map((resolution) => {
    const cap = exceededCap(resolution, window);
    return { resolution, disabledReason: cap && `Only available for periods of up to ${cap}.` };
  });
}

/** The API returns usage only if the query groups by billing dimension. A view that can show usage therefore always groups by it. */
function requestedGroupBy(view: View): MetricsDimension[] {
  return canonicalGroupBy<MetricsDimension>(hasUsage(view) ? [...view.groupBy, 'billing_dimension'] : view.groupBy);
}

export interface Requested {
  readonly window: Window;
  readonly resolution: Resolution;
  readonly filters: FilterQuery;
}

export function metricsQuery(view: View, { window, resolution, filters }: Requested): MetricsQuery {
  return { ...filters, ...timesOf(window), resolution, groupBy: requestedGroupBy(view) };
}

/** Returns the query for the totals of all groups. A query for usage still groups by billing dimension, because the API requires it. */
export function wholeQuery(view: View, query: MetricsQuery): MetricsQuery {
  return { ...query, groupBy: measureOf(view) === 'usage' ? ['billing_dimension'] : [] };
}

/** Returns the measure to show. It is cost unless the usage of the view has a single unit. */
export function measureOf(view: View): View['measure'] {
  return view.measure === 'usage' && usageScope(view).unit !== undefined ? 'usage' : 'cost';
}

export type UsageScope = { readonly unit: Quantity } | { readonly unit: undefined; readonly reason: string };

/** Returns the unit of the view's usage, or the reason why its usage cannot be added up. */
export function usageScope({ filters, groupBy }: Pick<View, 'filters' | 'groupBy'>): UsageScope {
  const dimensions = dimensionsLeft(filters);
  const unit = commonQuantity(dimensions);
  if (unit && hasUsage({ filters, groupBy })) return { unit };
  if (unit) {
    const way = dimensions.length === 1 ? 'remove one of the three groups' : 'filter by one';
    return {
      unit: undefined,
      reason: `Billing dimensions have different units. To see usage, group by billing dimension, or ${way}.`,
    };
  }
  const units = new Set(dimensions.map(unitOf));
  const mixed = LIST.format([...units].map(unitLabel));
  return {
    unit: undefined,
    reason: `This view mixes ${mixed}, which cannot be added up. To see usage, filter to one billing dimension.`,
  };
}

/** Returns the query for the events behind a row of the table. @param view the view that the row belongs to */
export function rowEventsQuery(
  { startTime, endTime }: Pick<MetricsQuery, 'startTime' | 'endTime'>,
  view: Pick<View, 'filters' | 'groupBy'>,
  group: GroupValues,
): EventsQuery {
  return { startTime, endTime, ...filteredByGroups(filterQuery(view.filters), withoutAccount(view.groupBy), [group]) };
}
