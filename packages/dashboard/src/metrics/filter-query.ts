/** A view's filters as the API takes them: for each field the values of which one is enough, or those that are left out. */
import { BILLING_DIMENSIONS, type EntryField, RESOURCE_TYPES } from '@meterline/catalog';
import type { FilterQuery } from '@meterline/client';
import type { Filters } from '../view/filters.js';

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

/** Of the filters that include their values, or of those that exclude them. */
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
