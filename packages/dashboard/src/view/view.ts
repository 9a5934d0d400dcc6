/** What the page shows: everything that a link to it must carry, and nothing else. */
import {
  type Comparison,
  ENTRY_FIELD,
  type EntryField,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  type Resolution,
} from '@meterline/catalog';
import type { PeriodChoice } from '../period/period.js';
import { type DimensionValues, type Filter, type Filters, isFixed, only, withOneFilter } from './filters.js';

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
export type PageSize = (typeof PAGE_SIZES)[number];

/** What was shown before a step into a group or a day, for the way back. */
export type TrailStep = Pick<View, 'period' | 'resolution' | 'groupBy' | 'filters'>;

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
  /** The steps that led here, the first one first. */
  readonly trail: readonly TrailStep[];
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
  trail: [],
};

/** A change of which groups are listed: it goes back to their first page. */
export function withGroups(view: View, change: Partial<View>): View {
  return { ...view, ...change, page: 1 };
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
 * Goes into a group: its values become filters, and the breakdown moves on to a finer dimension.
 * @param period of the bar that was clicked; undefined keeps the period
 */
export function drillDown(view: View, values: DimensionValues, period?: PeriodChoice): View {
  let { filters } = view;
  for (const dimension of view.groupBy) {
    const field = ENTRY_FIELD[dimension];
    const value = values[field];
    if (value !== undefined) filters = withOneFilter(filters, field, only(value));
  }
  const change = { filters, groupBy: nextBreakdown(view.groupBy, filters), search: '', trail: extendedTrail(view) };
  return withGroups(view, period === undefined ? change : { ...change, period, resolution: undefined });
}

/** Goes into the time of a bar. */
export function zoomInto(view: View, period: PeriodChoice): View {
  return withGroups(view, { period, resolution: undefined, trail: extendedTrail(view) });
}

/** Back to a step of the trail. */
export function backTo(view: View, position: number): View {
  const step = view.trail[position];
  return step ? withGroups(view, { ...step, search: '', trail: view.trail.slice(0, position) }) : view;
}

function extendedTrail({ period, resolution, groupBy, filters, trail }: View): readonly TrailStep[] {
  return [...trail, { period, resolution, groupBy, filters }];
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
  return view.groupBy.length > 0 && GROUP_BY_DIMENSIONS.some((dimension) => !isFixed(dimension, view.filters));
}
