/** An answer as CSV: a line for each group, or for each group and bucket. */
import {
  BUCKET_COLUMNS,
  type BucketCsvRow,
  COMPARISON_COLUMNS,
  type ComparedCsvRow,
  type CsvColumn,
  csvHeading,
  csvRow,
  type DecimalText,
  type GroupByDimension,
  groupKey,
  metricsColumns,
  WINDOW_COLUMNS,
  type WindowCsvRow,
  ZERO,
} from '@meterline/catalog/questions';
import type { MetricsAnswer } from '@meterline/client';

export interface CsvOptions {
  readonly groupBy: readonly GroupByDimension[];
  /** A line for each bucket of each group. */
  readonly isSeries: boolean;
  /** What groups cost before, by `groupKey`; undefined: not compared. Not for a series. */
  readonly before: ReadonlyMap<string, DecimalText> | undefined;
}

export function csvHeader({ groupBy, isSeries, before }: CsvOptions): string {
  return isSeries ? csvHeading(seriesColumns(groupBy)) : csvHeading(groupsColumns(groupBy, before !== undefined));
}

export function csvPage(answer: MetricsAnswer, { groupBy, isSeries, before }: CsvOptions): string {
  if (isSeries) return seriesLines(answer, groupBy);
  const columns = groupsColumns(groupBy, before !== undefined);
  const rows = answer.data.map((entry) => ({
    ...{ answer, entry, amounts: entry.summary },
    before: before?.get(groupKey(entry, groupBy)) ?? ZERO,
  }));
  return rows.map((row) => csvRow(columns, row)).join('');
}

function seriesLines({ data, resolution }: MetricsAnswer, groupBy: readonly GroupByDimension[]): string {
  const columns = seriesColumns(groupBy);
  const rows = data.flatMap((entry) =>
    entry.timeseries.map((point) => ({ entry, amounts: point, timestamp: point.timestamp, resolution })),
  );
  return rows.map((row) => csvRow(columns, row)).join('');
}

function groupsColumns(
  groupBy: readonly GroupByDimension[],
  isCompared: boolean,
): CsvColumn<WindowCsvRow & ComparedCsvRow>[] {
  return [...metricsColumns(groupBy, WINDOW_COLUMNS), ...(isCompared ? COMPARISON_COLUMNS : [])];
}

function seriesColumns(groupBy: readonly GroupByDimension[]): CsvColumn<BucketCsvRow>[] {
  return metricsColumns(groupBy, BUCKET_COLUMNS);
}
