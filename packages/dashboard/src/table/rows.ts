/** The rows of the table of groups, and their order. */
import {
  compareDecimals,
  type DecimalText,
  groupKey,
  MAX_METRICS_PAGE,
  type MetricsDimension,
  subtractDecimals,
  ZERO,
} from '@meterline/catalog/plain';
import type { MetricsEntry } from '@meterline/client';
import { groupLabels } from '../breakdown/breakdown.js';
import { type Quantity, quantityOf } from '../breakdown/texts.js';
import type { Sort, View } from '../view/view.js';

/** Digits that an amount of money always has after the point. */
export const MONEY_DIGITS = 2;

export interface Row {
  readonly key: string;
  readonly labels: readonly string[];
  readonly entry: MetricsEntry;
  readonly cost: DecimalText;
  readonly usage: DecimalText | undefined;
  readonly unit: Quantity | undefined;
  /** Undefined: not compared, or not known. */
  readonly previousCost: DecimalText | undefined;
}

/** What a group cost in the period before; undefined where that is not known. */
export type PreviousCost = (key: string) => DecimalText | undefined;

/** @param previous undefined: the view is not compared, or the response is not here yet */
export function previousCostIn(
  previous: { readonly entries: readonly MetricsEntry[]; readonly isWhole: boolean } | undefined,
  groupBy: readonly MetricsDimension[],
): PreviousCost {
  const costs = new Map(previous?.entries.map((entry) => [groupKey(entry, groupBy), entry.summary.cost]));
  return (key) => costs.get(key) ?? (previous?.isWhole ? ZERO : undefined);
}

export function rowOf(entry: MetricsEntry, groupBy: readonly MetricsDimension[]): Row {
  return {
    key: groupKey(entry, groupBy),
    labels: groupLabels(entry, groupBy),
    entry,
    cost: entry.summary.cost,
    usage: entry.summary.usage,
    unit: entry.billingDimension && quantityOf(entry.billingDimension),
    previousCost: undefined,
  };
}

/** The API sends the most expensive groups first. Any other order needs all pages. */
function isServerOrder({ column, descending }: Sort): boolean {
  return column === 'cost' && descending;
}

/** Whether the table needs every group: for another order than the API's own, or for a search. */
export function needsAllGroups({ sort, search }: Pick<View, 'sort' | 'search'>): boolean {
  return !isServerOrder(sort) || search.trim() !== '';
}

/**
 * Whether the first page of the API holds all that is shown. Only then may the page read it again by itself: for further pages
 * the service stores the whole response, each time.
 */
export function isOnFirstPage(view: View): boolean {
  return !needsAllGroups(view) && view.page * view.pageSize <= MAX_METRICS_PAGE;
}

/** The rows whose names contain the text, in any case. */
export function searchRows(rows: readonly Row[], text: string): readonly Row[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return rows;
  return rows.filter(({ labels }) => labels.some((label) => label.toLowerCase().includes(wanted)));
}

/** Equal rows stay in the API's order, by cost. By change, those that cannot be compared come last. */
export function sortRows(rows: readonly Row[], { column, descending }: Sort): readonly Row[] {
  if (isServerOrder({ column, descending })) return rows;
  const direction = descending ? -1 : 1;
  const isLast = ({ previousCost }: Row) => Number(column === 'change' && previousCost === undefined);
  return [...rows].sort((a, b) => isLast(a) - isLast(b) || direction * COMPARE[column](a, b));
}

const names = new Intl.Collator('en', { numeric: true });

const COMPARE = {
  cost: (a, b) => compareDecimals(a.cost, b.cost),
  name: (a, b) => names.compare(a.labels.join('\0'), b.labels.join('\0')),
  // Amounts compare within their unit only; GB-h and GB-month are one.
  usage: (a, b) =>
    names.compare(a.unit?.base ?? '', b.unit?.base ?? '') || compareDecimals(a.usage ?? ZERO, b.usage ?? ZERO),
  change: (a, b) => compareDecimals(growth(a), growth(b)),
} as const satisfies Record<Sort['column'], (a: Row, b: Row) => number>;

function growth({ cost, previousCost }: Row) {
  return subtractDecimals(cost, previousCost ?? ZERO);
}

/** Digits after the point in the amount that has the most, so that all points can be aligned. @param unit undefined: money */
export function roomOf(amounts: Iterable<DecimalText | undefined>, unit: Quantity | undefined): number {
  let longest = unit === undefined ? MONEY_DIGITS : 0;
  for (const amount of amounts) longest = Math.max(longest, amount?.split('.')[1]?.length ?? 0);
  return longest;
}
