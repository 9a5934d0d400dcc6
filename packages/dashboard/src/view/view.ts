/** Defines a view, which is the part of the page's state that a link contains. Also provides changes of a view, such as drilling down. */
import {
  type BillingDimension,
  billingDimensions,
  DEFAULT_VIEW_QUERY,
  dimensionOf,
  ENTRY_FIELD,
  type EntryField,
  type Filter,
  type Filters,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  MAX_GROUP_BY_DIMENSIONS,
  type MetricsDimension,
  type PeriodChoice,
  type Sort,
  type ViewQuery,
} from '@meterline/catalog/plain';
import { ALL_ACCOUNTS, type GroupValues } from '@meterline/client';

export interface View extends ViewQuery {
  /** Undefined means the user's first account. ALL_ACCOUNTS means all accounts of the user together. */
  readonly account: string | undefined;
}

export const DEFAULT_VIEW: View = { account: undefined, ...DEFAULT_VIEW_QUERY };

/** The names of accounts by ID. */
export type AccountNames = ReadonlyMap<string, string>;

/** Returns the name of an account together with its ID, or only the ID if the name is unknown or equal to the ID. */
export function accountLabel(account: string, names?: AccountNames): string {
  if (account === ALL_ACCOUNTS) return 'All accounts';
  const name = names?.get(account) ?? account;
  return name === account ? account : `${name} (${account})`;
}

/** Changes which groups are listed, and returns to the first page. */
export function withGroups(view: View, change: Partial<View>): View {
  return { ...view, ...change, page: 1 };
}

/** Returns whether the view can show usage. Its query must then group by billing dimension, which counts as one of at most three groups. */
export function hasUsage({ filters, groupBy }: Pick<View, 'filters' | 'groupBy'>): boolean {
  if (groupBy.includes('billing_dimension')) return true;
  return dimensionsLeft(filters).length === 1 && groupBy.length < MAX_GROUP_BY_DIMENSIONS;
}

/** Returns the sort order of the view, or the default if the view lacks the sorted column. */
export function sortOf(view: View): Sort {
  const isMissing = { usage: !hasUsage(view), change: view.compare === undefined, cost: false, name: false };
  return isMissing[view.sort.column] ? DEFAULT_VIEW.sort : view.sort;
}

export function withFilter(view: View, field: EntryField, filter: Filter | undefined): View {
  return withGroups(view, { filters: withOneFilter(view.filters, field, filter) });
}

/** Dimensions in the order of drilling down, from coarse to fine. */
const DRILL_ORDER = [
  'workspace',
  'resource_type',
  'resource_name',
  'billing_dimension',
  'resource_uuid',
] as const satisfies readonly GroupByDimension[];

/** Opens a group, optionally within the period of a clicked bar: filters by its values, and groups by the next finer dimension. */
export function drillDown(view: View, values: GroupValues, period?: PeriodChoice): View {
  let { filters } = view;
  const dimensions = withoutAccount(view.groupBy);
  for (const dimension of dimensions) {
    const field = ENTRY_FIELD[dimension];
    const value = values[field];
    if (value !== undefined) filters = withOneFilter(filters, field, only(value));
  }
  const account = values.account ?? view.account;
  const change = { account, filters, groupBy: nextBreakdown(dimensions, filters), search: '' };
  return withGroups(view, period === undefined ? change : { ...change, period, resolution: undefined });
}

export function zoomInto(view: View, period: PeriodChoice): View {
  return withGroups(view, { period, resolution: undefined });
}

export interface Crumb {
  /** The filter that this step adds, or undefined for the first step, which has no filter. */
  readonly field: EntryField | undefined;
  /** The view of this step, or undefined for the current view. */
  readonly to: View | undefined;
}

/** Returns the steps of drilling down to this view, from coarse to fine. Each filter with a single value is a step. */
export function breadcrumb(view: View): Crumb[] {
  const steps = DRILL_ORDER.filter((dimension) => isOnly(view.filters[ENTRY_FIELD[dimension]]));
  if (steps.length === 0) return [];
  return [undefined, ...steps].map((step, position) => {
    const left = steps.slice(position).map((dimension) => [ENTRY_FIELD[dimension], undefined]);
    const filters: Filters = { ...view.filters, ...Object.fromEntries(left) };
    const groupBy = nextBreakdown(steps.slice(0, position), filters);
    const to = withGroups(view, { filters, groupBy, search: '' });
    return { field: step && ENTRY_FIELD[step], to: position === steps.length ? undefined : to };
  });
}

/**
 * Returns the dimension to group by next: the first after the finest one in use, or the coarsest if there is none. Skips workspace, and
 * dimensions that the filters fix to one value. Returns an empty list if no dimension is left.
 */
function nextBreakdown(used: readonly GroupByDimension[], filters: Filters): readonly GroupByDimension[] {
  const open = DRILL_ORDER.filter((dimension) => !isFixed(dimension, filters) && dimension !== 'workspace');
  const finest = Math.max(...used.map((dimension) => DRILL_ORDER.indexOf(dimension)));
  const next = open.find((dimension) => DRILL_ORDER.indexOf(dimension) > finest) ?? open[0];
  return next ? [next] : [];
}

export function canDrill(view: View): boolean {
  const { groupBy, filters } = view;
  if (groupBy.includes('account')) return true;
  return groupBy.length > 0 && GROUP_BY_DIMENSIONS.some((dimension) => !isFixed(dimension, filters));
}

export function withoutAccount(groupBy: readonly MetricsDimension[]): GroupByDimension[] {
  return groupBy.filter((dimension) => dimension !== 'account');
}

/** Fields whose values producers choose. The catalog defines the values of the other fields. */
export type NameField = 'workspace' | 'resourceName' | 'resourceUuid';

export function only(...values: readonly string[]): Filter {
  return { values, isExcluded: false };
}

function isOnly(filter: Filter | undefined): boolean {
  return filter !== undefined && !filter.isExcluded && filter.values.length === 1;
}

export function hasFilters(filters: Filters): boolean {
  return Object.values(filters).some((filter) => filter !== undefined);
}

function passes(filter: Filter | undefined, value: string): boolean {
  return filter === undefined || filter.values.includes(value) !== filter.isExcluded;
}

function typeOf(dimension: BillingDimension): string {
  return dimensionOf(dimension)?.resourceType ?? '';
}

/** Returns the billing dimensions that pass the filters. Includes dimensions that a link names before the page has read them. */
export function dimensionsLeft(filters: Filters): readonly BillingDimension[] {
  const { values = [], isExcluded = false } = filters.billingDimension ?? {};
  const selected = isExcluded ? [] : values;
  return [...new Set([...billingDimensions(), ...selected])].filter(
    (dimension) => passes(filters.billingDimension, dimension) && passes(filters.resourceType, typeOf(dimension)),
  );
}

/** Sets a filter, or removes it if undefined. If the type and dimension filters then contradict each other, removes the other filter. */
function withOneFilter(filters: Filters, field: EntryField, filter: Filter | undefined): Filters {
  const { [field]: _removed, ...others } = filters;
  const next: Filters = filter === undefined || filter.values.length === 0 ? others : { ...others, [field]: filter };
  if (dimensionsLeft(next).length > 0) return next;
  const { billingDimension, resourceType, ...names } = next;
  if (field === 'resourceType') return { ...names, resourceType };
  return field === 'billingDimension' ? { ...names, billingDimension } : next;
}

/** Returns whether the filters leave a single value of the dimension. */
function isFixed(dimension: GroupByDimension, filters: Filters): boolean {
  if (dimension === 'billing_dimension') return dimensionsLeft(filters).length === 1;
  if (dimension === 'resource_type') return new Set(dimensionsLeft(filters).map(typeOf)).size === 1;
  return isOnly(filters[ENTRY_FIELD[dimension]]);
}
