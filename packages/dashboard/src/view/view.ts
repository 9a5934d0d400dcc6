/** What the page shows: everything that a link to it must carry, and nothing else. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  type Comparison,
  DIMENSIONS,
  ENTRY_FIELD,
  type EntryField,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  type MetricsDimension,
  type Resolution,
} from '@meterline/catalog/plain';
import { ALL_ACCOUNTS, type GroupValues } from '@meterline/client';
import type { PeriodChoice } from '../period/period.js';

/** A breakdown has one dimension or a pair; labels of three would be too long to read. */
export const MAX_BREAKDOWN = 2;

export type Measure = 'cost' | 'usage';

export const SORT_COLUMNS = ['cost', 'name', 'usage', 'change'] as const;
export type SortColumn = (typeof SORT_COLUMNS)[number];
export interface Sort {
  readonly column: SortColumn;
  readonly descending: boolean;
}

/** Rows on a page of the table. */
export const PAGE_SIZES = [25, 50, 100] as const;
type PageSize = (typeof PAGE_SIZES)[number];

export interface View {
  /** Undefined: the caller's first account; ALL_ACCOUNTS: those of the caller together. */
  readonly account: string | undefined;
  readonly period: PeriodChoice;
  /** Undefined: chosen by the length of the window. */
  readonly resolution: Resolution | undefined;
  /** At most {@link MAX_BREAKDOWN}, in the order in which the person chose them. */
  readonly groupBy: readonly MetricsDimension[];
  readonly filters: Filters;
  readonly measure: Measure;
  readonly compare: Comparison | undefined;
  /** Every bucket holds what came before it too. */
  readonly isCumulative: boolean;
  /** Shows the chart's figures as a table instead of bars. */
  readonly asTable: boolean;
  /** Every digit, instead of two decimals. */
  readonly isExact: boolean;
  /** Reads everything again each minute. */
  readonly isLive: boolean;
  readonly sort: Sort;
  /** What the names in the table must contain. */
  readonly search: string;
  readonly pageSize: PageSize;
  /** From 1. */
  readonly page: number;
}

export const DEFAULT_VIEW: View = {
  account: undefined,
  period: { preset: '30d' },
  resolution: undefined,
  groupBy: ['resource_type'],
  filters: {},
  measure: 'cost',
  compare: undefined,
  isCumulative: false,
  asTable: false,
  isExact: false,
  isLive: false,
  sort: { column: 'cost', descending: true },
  search: '',
  pageSize: PAGE_SIZES[0],
  page: 1,
};

export function accountName(account: string): string {
  return account === ALL_ACCOUNTS ? 'All accounts' : account;
}

/** A change of which groups are listed: it goes back to their first page. */
export function withGroups(view: View, change: Partial<View>): View {
  return { ...view, ...change, page: 1 };
}

/** Whether usage has a column: the API returns it by billing dimension, which a view of a single one can always ask for. */
export function hasUsage({ filters, groupBy }: Pick<View, 'filters' | 'groupBy'>): boolean {
  return groupBy.includes('billing_dimension') || dimensionsLeft(filters).length === 1;
}

/** The order that the view has: by a column that it does not have, the default. */
export function sortOf(view: View): Sort {
  const isGone = { usage: !hasUsage(view), change: view.compare === undefined, cost: false, name: false };
  return isGone[view.sort.column] ? DEFAULT_VIEW.sort : view.sort;
}

/** Sets one filter, or removes it with undefined. */
export function withFilter(view: View, field: EntryField, filter: Filter | undefined): View {
  return withGroups(view, { filters: withOneFilter(view.filters, field, filter) });
}

/** From coarse to fine: the order of drilling down. */
const ORDER = [
  'workspace',
  'resource_type',
  'resource_name',
  'billing_dimension',
  'resource_uuid',
] as const satisfies readonly GroupByDimension[];

/**
 * Goes into a group: its values become filters, its account the one that is shown, and the breakdown moves on to a finer dimension.
 * @param period the period of the bar that was clicked; undefined keeps the one shown
 */
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

/** Goes into the time of a bar. */
export function zoomInto(view: View, period: PeriodChoice): View {
  return withGroups(view, { period, resolution: undefined });
}

export interface Crumb {
  /** The filter that it adds; undefined: what is seen without them. */
  readonly field: EntryField | undefined;
  /** Undefined: it is what is shown. */
  readonly to: View | undefined;
}

/** The way into a group, step by step, from coarse to fine: each filter for one value is a step. Empty without such filters. */
export function breadcrumb(view: View): Crumb[] {
  const steps = ORDER.filter((dimension) => isOnly(view.filters[ENTRY_FIELD[dimension]]));
  if (steps.length === 0) return [];
  return [undefined, ...steps].map((step, position) => {
    const left = steps.slice(position).map((dimension) => [ENTRY_FIELD[dimension], undefined]);
    const filters: Filters = { ...view.filters, ...Object.fromEntries(left) };
    const groupBy = nextBreakdown(steps.slice(0, position), filters);
    const to = withGroups(view, { filters, groupBy, search: '' });
    return { field: step && ENTRY_FIELD[step], to: position === steps.length ? undefined : to };
  });
}

/** The next dimension, after the finest one just used, that no filter fixes; none when all are fixed. */
function nextBreakdown(left: readonly GroupByDimension[], filters: Filters): readonly GroupByDimension[] {
  const open = ORDER.filter((dimension) => !isFixed(dimension, filters) && dimension !== 'workspace');
  const finest = Math.max(...left.map((dimension) => ORDER.indexOf(dimension)));
  const next = open.find((dimension) => ORDER.indexOf(dimension) > finest) ?? open[0];
  return next ? [next] : [];
}

/** Whether a group can be broken down further. */
export function canDrill(view: View): boolean {
  const { groupBy, filters } = view;
  if (groupBy.includes('account')) return true;
  return groupBy.length > 0 && GROUP_BY_DIMENSIONS.some((dimension) => !isFixed(dimension, filters));
}

/** What one account can be broken down by. */
export function withoutAccount(groupBy: readonly MetricsDimension[]): GroupByDimension[] {
  return groupBy.filter((dimension) => dimension !== 'account');
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

/** Whether it leaves a single value. */
function isOnly(filter: Filter | undefined): boolean {
  return filter !== undefined && !filter.isExcluded && filter.values.length === 1;
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
function withOneFilter(filters: Filters, field: EntryField, filter: Filter | undefined): Filters {
  const { [field]: _previous, ...others } = filters;
  const next: Filters = filter === undefined || filter.values.length === 0 ? others : { ...others, [field]: filter };
  if (dimensionsLeft(next).length > 0) return next;
  const { billingDimension, resourceType, ...names } = next;
  if (field === 'resourceType') return { ...names, resourceType };
  return field === 'billingDimension' ? { ...names, billingDimension } : next;
}

/** Whether the filters leave one value of a dimension, so that nothing is left to break down by. */
function isFixed(dimension: GroupByDimension, filters: Filters): boolean {
  if (dimension === 'billing_dimension') return dimensionsLeft(filters).length === 1;
  if (dimension === 'resource_type')
    return new Set(dimensionsLeft(filters).map((each) => DIMENSIONS[each].resourceType)).size === 1;
  return isOnly(filters[ENTRY_FIELD[dimension]]);
}
