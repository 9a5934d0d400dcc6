/** The rows of the table of groups, and their order. */
import {
  compareDecimals,
  type DecimalText,
  DIMENSIONS,
  type GroupByDimension,
  subtractDecimals,
  type Unit,
  ZERO,
} from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { groupKey, groupLabels } from '../breakdown/breakdown.js';
import type { DimensionValues, Sort } from '../view/view.js';

export const PAGE_ROWS = 25;

export interface Row {
  readonly key: string;
  readonly labels: readonly string[];
  readonly values: DimensionValues;
  readonly cost: DecimalText;
  readonly usage: DecimalText | undefined;
  readonly unit: Unit | undefined;
  /** Undefined: not compared. */
  readonly previousCost: DecimalText | undefined;
}

/** What each group cost in the period before; undefined: not known yet, or not compared. */
export type PreviousCosts = ReadonlyMap<string, DecimalText> | undefined;

export function rowOf(entry: MetricsEntry, groupBy: readonly GroupByDimension[], previous: PreviousCosts): Row {
  const key = groupKey(entry, groupBy);
  return {
    key,
    labels: groupLabels(entry, groupBy),
    values: entry,
    cost: entry.summary.cost,
    usage: entry.summary.usage,
    unit: entry.billingDimension && DIMENSIONS[entry.billingDimension].unit,
    previousCost: previous && (previous.get(key) ?? ZERO),
  };
}

/** The API sends the most expensive groups first. Any other order needs all pages. */
export function isServerOrder({ column, descending }: Sort): boolean {
  return column === 'cost' && descending;
}

/** Equal rows stay in the API's order, by cost. */
export function sortRows(rows: readonly Row[], { column, descending }: Sort): readonly Row[] {
  if (isServerOrder({ column, descending })) return rows;
  const direction = descending ? -1 : 1;
  return [...rows].sort((a, b) => direction * COMPARE[column](a, b));
}

const names = new Intl.Collator('en', { numeric: true });

const COMPARE = {
  cost: (a, b) => compareDecimals(a.cost, b.cost),
  name: (a, b) => names.compare(a.labels.join('\0'), b.labels.join('\0')),
  usage: (a, b) => compareDecimals(a.usage ?? ZERO, b.usage ?? ZERO),
  change: (a, b) => compareDecimals(growth(a), growth(b)),
} as const satisfies Record<Sort['column'], (a: Row, b: Row) => number>;

function growth({ cost, previousCost }: Row) {
  return subtractDecimals(cost, previousCost ?? ZERO);
}

/** Digits after the point in the amount that has the most, so that all points can be aligned. */
export function longestFraction(amounts: Iterable<DecimalText | undefined>, least: number): number {
  let longest = least;
  for (const amount of amounts) longest = Math.max(longest, amount?.split('.')[1]?.length ?? 0);
  return longest;
}
