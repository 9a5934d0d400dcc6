/** The table of all groups as CSV: codes instead of labels, and every digit. */
import {
  canonicalGroupBy,
  type DecimalText,
  DIMENSIONS,
  ENTRY_FIELD,
  enrichedDimensions,
  type GroupByDimension,
  percentOf,
  subtractDecimals,
  ZERO,
} from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { groupKey } from '../breakdown/breakdown.js';
import type { PreviousCosts } from '../table/rows.js';
import { type CsvValue, writeCsv } from './csv.js';

const SHARE_DIGITS = 6;

export interface CostCsvSource {
  readonly entries: readonly MetricsEntry[];
  /** The columns. */
  readonly groupBy: readonly GroupByDimension[];
  /** What tells the groups apart, and `previous` has for its keys. */
  readonly keyBy: readonly GroupByDimension[];
  readonly totalCost: DecimalText;
  readonly previous: PreviousCosts;
}

export function costCsv({ entries, groupBy, keyBy, totalCost, previous }: CostCsvSource): string {
  const dimensions = canonicalGroupBy([...groupBy, ...enrichedDimensions(groupBy)]);
  const hasUsage = entries.some(({ summary }) => summary.usage !== undefined);
  const header = [
    ...dimensions,
    'cost_usd',
    'share_percent',
    ...(hasUsage ? ['usage', 'unit'] : []),
    ...(previous ? ['previous_cost_usd', 'change_usd', 'change_percent'] : []),
  ];
  const rows = entries.map((entry): CsvValue[] => {
    const { cost, usage } = entry.summary;
    const before = previous?.get(groupKey(entry, keyBy)) ?? ZERO;
    const difference = subtractDecimals(cost, before);
    return [
      ...dimensions.map((dimension) => ({ text: entry[ENTRY_FIELD[dimension]] ?? '' })),
      { number: cost },
      number(percentOf(cost, totalCost, SHARE_DIGITS)),
      ...(hasUsage ? [number(usage), unitOf(entry)] : []),
      ...(previous
        ? [{ number: before }, { number: difference }, number(percentOf(difference, before, SHARE_DIGITS))]
        : []),
    ];
  });
  return writeCsv(header, rows);
}

function number(amount: DecimalText | undefined): CsvValue {
  return amount === undefined ? undefined : { number: amount };
}

function unitOf({ billingDimension }: MetricsEntry): CsvValue {
  return billingDimension && { text: DIMENSIONS[billingDimension].unit };
}
