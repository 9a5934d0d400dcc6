/** Builds the API queries of a view, and decides whether the view can show usage. */
import {
  BILLING_DIMENSIONS,
  canonicalGroupBy,
  DIMENSIONS,
  type EntryField,
  exceededCap,
  type MetricsDimension,
  RESOLUTIONS,
  RESOURCE_TYPES,
  type Resolution,
  timesOf,
  type Unit,
  type Window,
} from '@meterline/catalog/plain';
import {
  type EventsQuery,
  type FilterQuery,
  filteredByGroups,
  type GroupValues,
  type MetricsQuery,
} from '@meterline/client';
import { commonQuantity, LIST, type Quantity, UNIT_LABEL } from '../format/texts.js';
import { automaticResolution } from '../period/period.js';
import type { View } from '../view/view.js';
import { dimensionsLeft, type Filters, hasUsage, withoutAccount } from '../view/view.js';

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

/** Returns the query without its breakdown. A query for usage stays grouped by billing dimension, because the API requires it. */
export function wholeQuery(view: View, query: MetricsQuery): MetricsQuery {
  return { ...query, groupBy: measureOf(view) === 'usage' ? ['billing_dimension'] : [] };
}

/** Returns the measure to show. It is cost unless the usage of the view has a single unit. */
export function measureOf(view: View): View['measure'] {
  return view.measure === 'usage' && usageScope(view).unit !== undefined ? 'usage' : 'cost';
}

/** Returns whether the view groups or filters by workspace. The API allows this only for admins (specification, section "Errors"). */
export function needsAdmin({ filters, groupBy }: View): boolean {
  return groupBy.includes('workspace') || filters.workspace !== undefined;
}

export type UsageScope = { readonly unit: Quantity } | { readonly unit: undefined; readonly reason: string };

/** Returns the unit of the view's usage, or the reason why its usage cannot be added up. */
export function usageScope({ filters, groupBy }: Pick<View, 'filters' | 'groupBy'>): UsageScope {
  const dimensions = dimensionsLeft(filters);
  const unit = commonQuantity(dimensions);
  if (unit && hasUsage({ filters, groupBy })) return { unit };
  if (unit) {
    const way = dimensions.length === 1 ? 'remove one of the three groups' : 'filter by a single dimension';
    return { unit: undefined, reason: `To see usage, group by billing dimension, or ${way}.` };
  }
  const units = new Set<Unit>(dimensions.map((dimension) => DIMENSIONS[dimension].unit));
  const mixed = LIST.format([...units].map((each) => UNIT_LABEL[each]));
  return {
    unit: undefined,
    reason: `This view mixes ${mixed}, which cannot be added up. To see usage, filter to one billing dimension.`,
  };
}

/** Converts the filters of a view to API parameters. Each field has parameters for values to include and for values to exclude. */
export function filterQuery(filters: Filters): FilterQuery {
  const included = valuesOf(filters, false);
  const excluded = valuesOf(filters, true);
  return {
    ...included,
    excludeWorkspace: excluded.workspace,
    excludeResourceType: excluded.resourceType,
    excludeResourceName: excluded.resourceName,
    excludeResourceUuid: excluded.resourceUuid,
    excludeWithoutResourceUuid: excluded.withoutResourceUuid,
    excludeBillingDimension: excluded.billingDimension,
  };
}

function valuesOf(filters: Filters, isExcluded: boolean) {
  const valuesIn = (field: EntryField) => {
    const filter = filters[field];
    return filter?.isExcluded === isExcluded ? filter.values : [];
  };
  const uuids = valuesIn('resourceUuid');
  return {
    workspace: oneOrMore(valuesIn('workspace')),
    resourceType: oneOrMore(RESOURCE_TYPES.filter((type) => valuesIn('resourceType').includes(type))),
    resourceName: oneOrMore(valuesIn('resourceName')),
    resourceUuid: oneOrMore(uuids.filter((value) => value !== '')),
    // The API has a separate parameter for usage without an instance ID.
    withoutResourceUuid: uuids.includes('') || undefined,
    billingDimension: oneOrMore(
      BILLING_DIMENSIONS.filter((dimension) => valuesIn('billingDimension').includes(dimension)),
    ),
  };
}

/** Returns a single value without its array, because people write such a parameter without an array. */
function oneOrMore<Value>(values: readonly Value[]): Value | readonly Value[] | undefined {
  return values.length > 1 ? values : values[0];
}

/** Returns the query for the events behind a row of the table. @param view the view that the row belongs to */
export function rowEventsQuery(
  { startTime, endTime }: Pick<MetricsQuery, 'startTime' | 'endTime'>,
  view: Pick<View, 'filters' | 'groupBy'>,
  group: GroupValues,
): EventsQuery {
  return { startTime, endTime, ...filteredByGroups(filterQuery(view.filters), withoutAccount(view.groupBy), [group]) };
}
