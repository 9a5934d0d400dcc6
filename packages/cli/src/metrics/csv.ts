/** An answer as CSV: a line for each group, or for each group and bucket. */
import {
  COST_COLUMN,
  type CsvColumn,
  csvHeading,
  csvRow,
  type GroupByDimension,
  groupColumns,
  type MetricsCsvRow,
  usageColumns,
} from '@meterline/catalog';
import type { MetricsAnswer } from '@meterline/client';

export interface CsvOptions {
  readonly groupBy: readonly GroupByDimension[];
  /** A line for each bucket of each group. */
  readonly isSeries: boolean;
}

interface CsvRow extends MetricsCsvRow {
  readonly answer: MetricsAnswer;
  /** Of the bucket; only in a series. */
  readonly timestamp?: string;
}

export function csvHeader(options: CsvOptions): string {
  return csvHeading(columnsOf(options));
}

export function csvPage(answer: MetricsAnswer, options: CsvOptions): string {
  const columns = columnsOf(options);
  const rows = answer.data.flatMap((entry): CsvRow[] =>
    options.isSeries
      ? entry.timeseries.map((point) => ({ answer, entry, amounts: point, timestamp: point.timestamp }))
      : [{ answer, entry, amounts: entry.summary }],
  );
  return rows.map((row) => csvRow(columns, row)).join('');
}

function columnsOf({ groupBy, isSeries }: CsvOptions): CsvColumn<CsvRow>[] {
  return [...groupColumns(groupBy), ...(isSeries ? BUCKET : WINDOW), COST_COLUMN, ...usageColumns(groupBy)];
}

const WINDOW: readonly CsvColumn<CsvRow>[] = [
  { name: 'startTime', cell: ({ answer }) => answer.startTime },
  { name: 'endTime', cell: ({ answer }) => answer.endTime },
];

const BUCKET: readonly CsvColumn<CsvRow>[] = [
  { name: 'timestamp', cell: ({ timestamp = '' }) => timestamp },
  { name: 'resolution', cell: ({ answer }) => answer.resolution },
];
