/** What a view asks of the API: its window, resolution, groups and filters, and whether usage can be shown. */
import {
  BILLING_DIMENSIONS,
  canonicalGroupBy,
  DIMENSIONS,
  defaultResolution,
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
import { commonQuantity, type Quantity, UNIT_LABEL } from '../breakdown/texts.js';
import type { View } from '../view/view.js';
import { dimensionsLeft, type Filters, hasUsage, withoutAccount } from '../view/view.js';

/** The chosen one; the default for the window when none was chosen, or when the window is too long for it. */
export function resolutionOf({ resolution }: View, window: Window): Resolution {
  return resolution && exceededCap(resolution, window) === undefined ? resolution : defaultResolution(window);
}

/** All resolutions, each with the reason why it cannot be chosen for this window, if there is one. */
export function resolutionChoices(window: Window) {
  return RESOLUTIONS.map((resolution) => {
    const cap = exceededCap(resolution, window);
    return { resolution, disabledReason: cap && `For up to ${cap}; choose a shorter period.` };
  });
}

/** A view of a single billing dimension can show usage: the API returns it when the query groups by that. */
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

/** The query without the breakdown. The API returns usage only by billing dimension. */
export function wholeQuery(view: View, query: MetricsQuery): MetricsQuery {
  return { ...query, groupBy: measureOf(view) === 'usage' ? ['billing_dimension'] : [] };
}

/** The measure that can be shown: usage only where it has one unit. */
export function measureOf(view: View): View['measure'] {
  return view.measure === 'usage' && usageScope(view).unit !== undefined ? 'usage' : 'cost';
}

/** Only admins of an account see its workspaces one by one. Source: the API specification, section "Errors". */
export function needsAdmin({ filters, groupBy }: View): boolean {
  return groupBy.includes('workspace') || filters.workspace !== undefined;
}

const LIST = new Intl.ListFormat('en-GB');

export type UsageScope = { readonly unit: Quantity } | { readonly unit: undefined; readonly reason: string };

/** Usage adds up only where there is one unit; elsewhere the reason says so. */
export function usageScope({ filters, groupBy }: Pick<View, 'filters' | 'groupBy'>): UsageScope {
  const dimensions = dimensionsLeft(filters);
  const unit = commonQuantity(dimensions);
  if (unit && (dimensions.length === 1 || groupBy.includes('billing_dimension'))) return { unit };
  if (unit) return { unit: undefined, reason: 'Group by billing dimension, or choose one, to see usage.' };
  const units = new Set<Unit>(dimensions.map((dimension) => DIMENSIONS[dimension].unit));
  const mixed = LIST.format([...units].map((each) => UNIT_LABEL[each]));
  return {
    unit: undefined,
    reason: `Usage adds up only in one unit, and this mixes ${mixed}. Choose a billing dimension to see it.`,
  };
}

/** A view's filters as the API takes them: for each field the values of which one is enough, or those that are left out. */
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

/** The values of the filters that include them, or of those that exclude them. */
function valuesOf(filters: Filters, isExcluded: boolean) {
  const named = (field: EntryField) => {
    const filter = filters[field];
    return filter?.isExcluded === isExcluded ? filter.values : [];
  };
  const uuids = named('resourceUuid');
  return {
    workspace: oneOrMore(named('workspace')),
    resourceType: oneOrMore(RESOURCE_TYPES.filter((type) => named('resourceType').includes(type))),
    resourceName: oneOrMore(named('resourceName')),
    resourceUuid: oneOrMore(uuids.filter((value) => value !== '')),
    // The API has a parameter of its own for what has no instance id.
    withoutResourceUuid: uuids.includes('') || undefined,
    billingDimension: oneOrMore(
      BILLING_DIMENSIONS.filter((dimension) => named('billingDimension').includes(dimension)),
    ),
  };
}

/** A single value is sent and shown as people write it. */
function oneOrMore<Value>(values: readonly Value[]): Value | readonly Value[] | undefined {
  return values.length > 1 ? values : values[0];
}

/** The query for the events behind a row. @param view the one that the row answers */
export function rowEventsQuery(
  { startTime, endTime }: Pick<MetricsQuery, 'startTime' | 'endTime'>,
  view: Pick<View, 'filters' | 'groupBy'>,
  group: GroupValues,
): EventsQuery {
  return { startTime, endTime, ...filteredByGroups(filterQuery(view.filters), withoutAccount(view.groupBy), [group]) };
}
