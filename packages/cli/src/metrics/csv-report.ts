/** An answer as CSV: a line for each group, or for each group and bucket. Figures are exact, in USD and the unit. */
import {
  DIMENSIONS,
  ENTRY_FIELD,
  enrichedDimensions,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
} from '@meterline/catalog';
import type { MetricsAnswer, MetricsEntry } from '@meterline/client';
import { type CsvCell, csvLine } from '../output/csv.js';

export interface CsvOptions {
  readonly groupBy: readonly GroupByDimension[];
  /** A line for each bucket of each group. */
  readonly isSeries: boolean;
}

export function csvHeading(options: CsvOptions): string {
  const usage = showsUsage(options) ? ['usage', 'unit'] : [];
  const window = options.isSeries ? ['timestamp', 'resolution'] : ['startTime', 'endTime'];
  return csvLine([...fieldsOf(options), ...window, 'costUsd', ...usage]);
}

export function csvPage(answer: MetricsAnswer, options: CsvOptions): string {
  return answer.data.flatMap((entry) => lines(answer, entry, options)).join('');
}

function lines({ startTime, endTime, resolution }: MetricsAnswer, entry: MetricsEntry, options: CsvOptions): string[] {
  const names = fieldsOf(options).map((field) => entry[field] ?? '');
  if (!options.isSeries) return [csvLine([...names, startTime, endTime, ...amounts(entry, entry.summary, options)])];
  return entry.timeseries.map((point) =>
    csvLine([...names, point.timestamp, resolution, ...amounts(entry, point, options)]),
  );
}

/** Fixed by the question alone, so that an answer without groups has the same columns. */
function fieldsOf({ groupBy }: CsvOptions) {
  const dimensions = new Set([...groupBy, ...enrichedDimensions(groupBy)]);
  return GROUP_BY_DIMENSIONS.filter((dimension) => dimensions.has(dimension)).map(
    (dimension) => ENTRY_FIELD[dimension],
  );
}

function amounts(
  { billingDimension }: MetricsEntry,
  { cost, usage }: MetricsEntry['summary'],
  options: CsvOptions,
): CsvCell[] {
  if (!showsUsage(options)) return [{ figure: cost }];
  const unit = billingDimension === undefined ? '' : DIMENSIONS[billingDimension].unit;
  return [{ figure: cost }, { figure: usage ?? '' }, unit];
}

function showsUsage({ groupBy }: CsvOptions): boolean {
  return groupBy.includes('billing_dimension');
}
