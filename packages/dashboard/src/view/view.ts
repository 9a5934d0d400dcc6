/** What the page shows: everything that a link to it must carry, and nothing else. */
import {
  type BillingDimension,
  DIMENSIONS,
  type EpochMs,
  type GroupByDimension,
  type Resolution,
  type ResourceType,
} from '@meterline/catalog';
import type { PresetId } from '../period/preset.js';

/** A breakdown has one dimension or a pair: three would make labels that nobody reads. */
export const MAX_BREAKDOWN = 2;

export type PeriodChoice = { readonly preset: PresetId } | { readonly from: EpochMs; readonly to: EpochMs };

/** An empty resourceUuid selects what has none. */
export interface Filters {
  readonly workspace?: string | undefined;
  readonly resourceType?: ResourceType | undefined;
  readonly resourceName?: string | undefined;
  readonly resourceUuid?: string | undefined;
  readonly billingDimension?: BillingDimension | undefined;
}
export type FilterName = keyof Filters;

export type Measure = 'cost' | 'usage';

export const SORT_COLUMNS = ['cost', 'name', 'usage', 'change'] as const;
export type SortColumn = (typeof SORT_COLUMNS)[number];
export interface Sort {
  readonly column: SortColumn;
  readonly descending: boolean;
}

export interface View {
  /** Undefined: the first of the caller's. */
  readonly account: string | undefined;
  readonly period: PeriodChoice;
  /** Undefined: by the length of the window. */
  readonly resolution: Resolution | undefined;
  /** At most {@link MAX_BREAKDOWN}, in the order in which the person chose them. */
  readonly groupBy: readonly GroupByDimension[];
  readonly filters: Filters;
  readonly measure: Measure;
  readonly compare: boolean;
  /** The chart's figures as a table instead of bars. */
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

/** Whatever changes which groups there are leads back to their first page. */
export function withGroups(view: View, change: Partial<View>): View {
  return { ...view, ...change, page: 1 };
}

/** Sets one filter, or with undefined takes it away, and drops another that would leave nothing. */
export function withFilter<Name extends FilterName>(view: View, name: Name, value: Filters[Name]): View {
  const { [name]: _previous, ...others } = view.filters;
  const filters: Filters = value === undefined ? others : { ...others, [name]: value };
  return withGroups(view, { filters: withoutContradiction(filters, name) });
}

function withoutContradiction(filters: Filters, justSet: FilterName): Filters {
  const { billingDimension, resourceType, ...others } = filters;
  if (billingDimension === undefined || resourceType === undefined) return filters;
  if (DIMENSIONS[billingDimension].resourceType === resourceType) return filters;
  return justSet === 'resourceType' ? { ...others, resourceType } : { ...others, billingDimension };
}

export function hasFilters(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== undefined);
}
