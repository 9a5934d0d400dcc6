/** The table of all groups as CSV: codes instead of labels, and every digit. */
import {
  COST_COLUMN,
  type CsvCell,
  type CsvColumn,
  csvHeading,
  csvRow,
  type DecimalText,
  type GroupByDimension,
  groupColumns,
  type MetricsCsvRow,
  percentOf,
  subtractDecimals,
  usageColumns,
  ZERO,
} from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { groupKey } from '../breakdown/breakdown.js';
import type { PreviousCosts } from '../table/rows.js';

const SHARE_DIGITS = 6;
/** Without it Excel reads UTF-8 as the system's own encoding. */
const BYTE_ORDER_MARK = '\uFEFF';

export interface CostCsvSource {
  readonly entries: readonly MetricsEntry[];
  /** The columns. */
  readonly groupBy: readonly GroupByDimension[];
  /** The dimensions that identify a group in `previous`. */
  readonly keyBy: readonly GroupByDimension[];
  readonly totalCost: DecimalText;
  readonly previous: PreviousCosts;
}

interface CostCsvRow extends MetricsCsvRow {
  /** Of the period before. */
  readonly before: DecimalText;
  readonly difference: DecimalText;
}

export function costCsv({ entries, groupBy, keyBy, totalCost, previous }: CostCsvSource): string {
  const columns: CsvColumn<CostCsvRow>[] = [
    ...groupColumns(groupBy),
    COST_COLUMN,
    { name: 'sharePercent', cell: ({ amounts }) => percentCell(amounts.cost, totalCost) },
    ...usageColumns(groupBy),
    ...(previous ? COMPARISON : []),
  ];
  const rows = entries.map((entry) => {
    const before = previous?.get(groupKey(entry, keyBy)) ?? ZERO;
    const difference = subtractDecimals(entry.summary.cost, before);
    return csvRow(columns, { entry, amounts: entry.summary, before, difference });
  });
  return `${BYTE_ORDER_MARK}${csvHeading(columns)}${rows.join('')}`;
}

const COMPARISON: readonly CsvColumn<CostCsvRow>[] = [
  { name: 'previousCostUsd', cell: ({ before }) => ({ number: before }) },
  { name: 'changeUsd', cell: ({ difference }) => ({ number: difference }) },
  { name: 'changePercent', cell: ({ difference, before }) => percentCell(difference, before) },
];

/** Empty where there is no percentage. */
function percentCell(part: DecimalText, whole: DecimalText): CsvCell {
  return { number: percentOf(part, whole, SHARE_DIGITS) ?? '' };
}
