/** The table and its series as CSV: codes instead of labels, every digit, and the command line's names of columns. */
import {
  BUCKET_COLUMNS,
  type BucketCsvRow,
  COMPARISON_COLUMNS,
  type ComparedCsvRow,
  type CsvColumn,
  csvHeading,
  csvRow,
  type GroupByDimension,
  metricsColumns,
  percentCell,
  WINDOW_COLUMNS,
  type WindowCsvRow,
  ZERO,
} from '@meterline/catalog';
import type { MetricsAnswer } from '@meterline/client';
import type { Row } from '../table/rows.js';

/** Without it Excel reads UTF-8 as the system's own encoding. */
const BYTE_ORDER_MARK = '\uFEFF';

export interface CsvSource {
  /** Those that the table shows, on all its pages, in its order. */
  readonly rows: readonly Row[];
  /** The columns. */
  readonly groupBy: readonly GroupByDimension[];
  /** The first page of the answer. */
  readonly answer: Pick<MetricsAnswer, 'startTime' | 'endTime' | 'resolution' | 'summary'>;
  readonly isCompared: boolean;
}

type TableRow = WindowCsvRow & ComparedCsvRow;

/** A line for each row of the table. */
export function tableCsv({ rows, groupBy, answer, isCompared }: CsvSource): string {
  const { totalCost } = answer.summary;
  const columns: CsvColumn<TableRow>[] = [
    ...metricsColumns<WindowCsvRow>(groupBy, WINDOW_COLUMNS),
    { name: 'sharePercent', cell: ({ amounts }) => percentCell(amounts.cost, totalCost) },
    ...(isCompared ? COMPARISON_COLUMNS : []),
  ];
  const lines = rows.map(({ entry, previousCost }) => {
    return csvRow(columns, { answer, entry, amounts: entry.summary, before: previousCost ?? ZERO });
  });
  return `${BYTE_ORDER_MARK}${csvHeading(columns)}${lines.join('')}`;
}

/** A line for each bucket of each row of the table: what `meterline metrics --csv --series` prints. */
export function seriesCsv({ rows, groupBy, answer: { resolution } }: CsvSource): string {
  const columns = metricsColumns<BucketCsvRow>(groupBy, BUCKET_COLUMNS);
  const lines = rows.flatMap(({ entry }) =>
    entry.timeseries.map((point) => csvRow(columns, { entry, amounts: point, timestamp: point.timestamp, resolution })),
  );
  return `${BYTE_ORDER_MARK}${csvHeading(columns)}${lines.join('')}`;
}
