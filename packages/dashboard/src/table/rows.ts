/** Builds, searches and sorts the rows of the table of groups. */
import {
  compareDecimals,
  type DecimalText,
  groupKey,
  MAX_METRICS_PAGE,
  type MetricsDimension,
  type Sort,
  subtractDecimals,
  ZERO,
} from '@meterline/catalog/plain';
import type { MetricsEntry } from '@meterline/client';
import { groupLabels } from '../breakdown/breakdown.js';
import { type Quantity, quantityOf } from '../format/texts.js';
import type { PreviousGroups } from '../metrics/queries.js';
import type { AccountNames, View } from '../view/view.js';

export interface Row {
  readonly key: string;
  readonly labels: readonly string[];
  readonly entry: MetricsEntry;
  readonly cost: DecimalText;
  readonly usage: DecimalText | undefined;
  readonly unit: Quantity | undefined;
  /** The cost in the previous period, or undefined if the view has no comparison or the cost is unknown. */
  readonly previousCost: DecimalText | undefined;
}

/** Returns the cost of a group in the previous period, or undefined if the cost is unknown. */
export type PreviousCost = (key: string) => DecimalText | undefined;

/** @param previous undefined if the view has no comparison, or if the response is pending */
export function previousCostIn(
  previous: PreviousGroups | undefined,
  groupBy: readonly MetricsDimension[],
): PreviousCost {
  const costs = new Map(previous?.entries.map((entry) => [groupKey(entry, groupBy), entry.summary.cost]));
  return (key) => costs.get(key) ?? (previous?.isComplete ? ZERO : undefined);
}

export function rowOf(entry: MetricsEntry, groupBy: readonly MetricsDimension[], names?: AccountNames): Row {
  return {
    key: groupKey(entry, groupBy),
    labels: groupLabels(entry, groupBy, names),
    entry,
    cost: entry.summary.cost,
    usage: entry.summary.usage,
    unit: entry.billingDimension === undefined ? undefined : quantityOf(entry.billingDimension),
    previousCost: undefined,
  };
}

/** The API sorts groups by cost, most expensive first. The page needs all groups to sort them in any other order. */
function isApiOrder({ column, descending }: Sort): boolean {
  return column === 'cost' && descending;
}

/** Returns whether the table needs all groups, because of its sort order or a search. */
export function needsAllGroups({ sort, search }: Pick<View, 'sort' | 'search'>): boolean {
  return !isApiOrder(sort) || search.trim() !== '';
}

/**
 * Whether the API's first page has all visible rows. Otherwise, do not refresh automatically: the service would store the result each time.
 */
export function isOnFirstPage(view: View): boolean {
  return !needsAllGroups(view) && view.page * view.pageSize <= MAX_METRICS_PAGE;
}

/** Returns the rows whose names contain the text, ignoring case. */
export function searchRows(rows: readonly Row[], text: string): readonly Row[] {
  const search = text.trim().toLowerCase();
  if (search === '') return rows;
  return rows.filter(({ labels }) => labels.some((label) => label.toLowerCase().includes(search)));
}

/** Sorts rows. Equal rows keep the order of the API. When sorting by change, rows without a previous cost come last. */
export function sortRows(rows: readonly Row[], { column, descending }: Sort): readonly Row[] {
  if (isApiOrder({ column, descending })) return rows;
  const direction = descending ? -1 : 1;
  const isLast = ({ previousCost }: Row) => Number(column === 'change' && previousCost === undefined);
  return [...rows].sort((a, b) => isLast(a) - isLast(b) || direction * COMPARE[column](a, b));
}

const collator = new Intl.Collator('en', { numeric: true });

const COMPARE = {
  cost: (a, b) => compareDecimals(a.cost, b.cost),
  name: (a, b) => collator.compare(a.labels.join('\0'), b.labels.join('\0')),
  // Amounts are comparable only within one base unit. GB-h and GB-month have the same base unit.
  usage: (a, b) =>
    collator.compare(a.unit?.base ?? '', b.unit?.base ?? '') || compareDecimals(a.usage ?? ZERO, b.usage ?? ZERO),
  change: (a, b) => compareDecimals(growth(a), growth(b)),
} as const satisfies Record<Sort['column'], (a: Row, b: Row) => number>;

function growth({ cost, previousCost }: Row) {
  return subtractDecimals(cost, previousCost ?? ZERO);
}
