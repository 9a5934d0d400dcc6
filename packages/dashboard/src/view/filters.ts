/** What a view is filtered by: for each dimension some values, of which one is enough, or all but some values. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  DIMENSIONS,
  ENTRY_FIELD,
  type EntryField,
  type GroupByDimension,
  type ResourceType,
} from '@meterline/catalog';

/** The values of a group. An empty resourceUuid stands for resources without one. */
export interface DimensionValues {
  readonly workspace?: string | undefined;
  readonly resourceType?: ResourceType | undefined;
  readonly resourceName?: string | undefined;
  readonly resourceUuid?: string | undefined;
  readonly billingDimension?: BillingDimension | undefined;
}

export interface Filter {
  /** At least one. */
  readonly values: readonly string[];
  /** All values but these. */
  readonly isExcluded: boolean;
}

export type Filters = { readonly [Field in EntryField]?: Filter | undefined };

/** Fields whose values producers choose; those of the others are in the catalog. */
export type NameField = 'workspace' | 'resourceName' | 'resourceUuid';

export function only(...values: readonly string[]): Filter {
  return { values, isExcluded: false };
}

export function hasFilters(filters: Filters): boolean {
  return Object.values(filters).some((filter) => filter !== undefined);
}

function passes(filter: Filter | undefined, value: string): boolean {
  return filter === undefined || filter.values.includes(value) !== filter.isExcluded;
}

/** The billing dimensions that pass the filters. */
export function dimensionsLeft(filters: Filters): readonly BillingDimension[] {
  return BILLING_DIMENSIONS.filter(
    (dimension) =>
      passes(filters.billingDimension, dimension) && passes(filters.resourceType, DIMENSIONS[dimension].resourceType),
  );
}

/** Sets one filter, or removes it with undefined. Removes the other filter that would then exclude everything. */
export function withOneFilter(filters: Filters, field: EntryField, filter: Filter | undefined): Filters {
  const { [field]: _previous, ...others } = filters;
  const next: Filters = filter === undefined || filter.values.length === 0 ? others : { ...others, [field]: filter };
  if (dimensionsLeft(next).length > 0) return next;
  const { billingDimension, resourceType, ...names } = next;
  if (field === 'resourceType') return { ...names, resourceType };
  return field === 'billingDimension' ? { ...names, billingDimension } : next;
}

/** Whether the filters leave one value of a dimension, so that nothing is left to break down by. */
export function isFixed(dimension: GroupByDimension, filters: Filters): boolean {
  if (dimension === 'billing_dimension') return dimensionsLeft(filters).length === 1;
  if (dimension === 'resource_type')
    return new Set(dimensionsLeft(filters).map((each) => DIMENSIONS[each].resourceType)).size === 1;
  const filter = filters[ENTRY_FIELD[dimension]];
  return filter !== undefined && !filter.isExcluded && filter.values.length === 1;
}
