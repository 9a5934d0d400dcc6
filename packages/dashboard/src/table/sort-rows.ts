/** The order of the table's rows. By cost is the API's own; any other order needs all pages. */
import { compareDecimals, subtractDecimals, ZERO } from '@meterline/catalog';
import type { Sort } from '../view/view.js';
import type { Row } from './row.js';

/** The API sends the groups that cost most first. */
export function isServerOrder({ column, descending }: Sort): boolean {
  return column === 'cost' && descending;
}

/** Rows that are equal stay in the order of their cost, in which they come. */
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
