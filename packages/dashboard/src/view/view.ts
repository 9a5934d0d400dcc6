/** What the page shows: everything that a link to it must carry, and nothing else. */
import {
  type BillingDimension,
  DIMENSIONS,
  ENTRY_FIELD,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  type Resolution,
  type ResourceType,
} from '@meterline/catalog';
import type { PeriodChoice } from '../period/period.js';

/** A breakdown has one dimension or a pair; labels of three would be too long to read. */
export const MAX_BREAKDOWN = 2;

/** The values of a group, or what the view is filtered by. An empty resourceUuid stands for resources without one. */
export interface DimensionValues {
  readonly workspace?: string | undefined;
  readonly resourceType?: ResourceType | undefined;
  readonly resourceName?: string | undefined;
  readonly resourceUuid?: string | undefined;
  readonly billingDimension?: BillingDimension | undefined;
}
export type Filters = DimensionValues;

export type Measure = 'cost' | 'usage';

export const SORT_COLUMNS = ['cost', 'name', 'usage', 'change'] as const;
export type SortColumn = (typeof SORT_COLUMNS)[number];
export interface Sort {
  readonly column: SortColumn;
  readonly descending: boolean;
}

export interface View {
  /** Undefined: the caller's first account. */
  readonly account: string | undefined;
  readonly period: PeriodChoice;
  /** Undefined: chosen by the length of the window. */
  readonly resolution: Resolution | undefined;
  /** At most {@link MAX_BREAKDOWN}, in the order in which the person chose them. */
  readonly groupBy: readonly GroupByDimension[];
  readonly filters: Filters;
  readonly measure: Measure;
  readonly compare: boolean;
  /** Shows the chart's figures as a table instead of bars. */
  readonly asTable: boolean;
  readonly sort: Sort;
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
  compare: false,
  asTable: false,
  sort: { column: 'cost', descending: true },
  page: 1,
};

/** A change of which groups are listed: it goes back to their first page. */
export function withGroups(view: View, change: Partial<View>): View {
  return { ...view, ...change, page: 1 };
}

/** Sets one filter, or removes it with undefined. Removes the other filter that would then exclude everything. */
export function withFilter<Name extends keyof Filters>(view: View, name: Name, value: Filters[Name]): View {
  const { [name]: _previous, ...others } = view.filters;
  const filters: Filters = value === undefined ? others : { ...others, [name]: value };
  return withGroups(view, { filters: withoutContradiction(filters, name) });
}

function withoutContradiction(filters: Filters, justSet: keyof Filters): Filters {
  const { billingDimension, resourceType, ...others } = filters;
  if (billingDimension === undefined || resourceType === undefined) return filters;
  if (DIMENSIONS[billingDimension].resourceType === resourceType) return filters;
  return justSet === 'resourceType' ? { ...others, resourceType } : { ...others, billingDimension };
}

export function hasFilters(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== undefined);
}

/** From coarse to fine: the order of drilling down. */
const ORDER = [
  'workspace',
  'resource_type',
  'resource_name',
  'billing_dimension',
  'resource_uuid',
] as const satisfies readonly GroupByDimension[];

/** Goes into a group: its values become filters, and the breakdown moves on to a finer dimension. */
export function drillDown(view: View, values: DimensionValues): View {
  let next = view;
  for (const dimension of view.groupBy) {
    const field = ENTRY_FIELD[dimension];
    next = withFilter(next, field, values[field]);
  }
  return withGroups(next, { groupBy: nextBreakdown(view.groupBy, next.filters) });
}

/** The next dimension, after the finest one just used, that no filter fixes; none when all are fixed. */
function nextBreakdown(left: readonly GroupByDimension[], filters: Filters): readonly GroupByDimension[] {
  const open = ORDER.filter((dimension) => !isFixed(dimension, filters) && dimension !== 'workspace');
  const finest = Math.max(...left.map((dimension) => ORDER.indexOf(dimension)));
  const next = open.find((dimension) => ORDER.indexOf(dimension) > finest) ?? open[0];
  return next ? [next] : [];
}

function isFixed(dimension: GroupByDimension, filters: Filters): boolean {
  if (filters[ENTRY_FIELD[dimension]] !== undefined) return true;
  return dimension === 'resource_type' && filters.billingDimension !== undefined;
}

/** Whether a group can be broken down further. */
export function canDrill(view: View): boolean {
  return view.groupBy.length > 0 && GROUP_BY_DIMENSIONS.some((dimension) => !isFixed(dimension, view.filters));
}
