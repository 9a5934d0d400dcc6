/** An answer as a table for people: a row for each group, and what was not read as a row of its own, so that it adds up. */
import {
  approximateDecimal,
  type DecimalText,
  DIMENSIONS,
  ENTRY_FIELD,
  type EntryField,
  formatUsage,
  formatUsd,
  formatUsdExact,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  percentOf,
  showsUsage,
  subtractDecimals,
  sumDecimals,
} from '@meterline/catalog';
import type { MetricsAnswer, MetricsEntry } from '@meterline/client';
import { type Column, type Row, type TableLayout, tableWidth, textTable } from '../output/table.js';

export interface Report {
  readonly account: string;
  readonly groupBy: readonly GroupByDimension[];
  /** The first page; its summary is that of the whole window. */
  readonly answer: Omit<MetricsAnswer, 'data'>;
  /** Of all pages that were read. */
  readonly entries: readonly MetricsEntry[];
}

export interface ReportLayout extends Required<TableLayout> {
  /** Every digit of an amount. */
  readonly isExact: boolean;
}

const LEAST_NAME = 8;
const LEAST_TREND = 8;
const MOST_TREND = 40;
const TOTAL = 'Total';

export function reportText(report: Report, layout: ReportLayout): string {
  const { account, answer, entries } = report;
  const heading = `${account}: ${answer.startTime} to ${answer.endTime} (UTC), ${answer.resolution}`;
  if (entries.length === 0) return `${layout.style.strong(heading)}\n\nNothing was used in this window.`;
  return `${layout.style.strong(heading)}\n\n${table(report, layout)}`;
}

function table(report: Report, { width, style, isExact }: ReportLayout): string {
  const { groupBy, entries } = report;
  const buckets = entries[0]?.timeseries.length ?? 0;
  const complete = draftOf(report, shownFields(entries), isExact);
  const fits = width === undefined || draftWidth(complete, LEAST_TREND) <= width;
  // On a narrow terminal, fields that nobody asked for are left out before names are cut.
  const draft = fits
    ? complete
    : draftOf(
        report,
        groupBy.map((dimension) => ENTRY_FIELD[dimension]),
        isExact,
      );
  const room = width === undefined ? MOST_TREND : width - draftWidth(draft, LEAST_TREND) + LEAST_TREND;
  const trendWidth = Math.min(buckets, MOST_TREND, Math.max(LEAST_TREND, room));
  return textTable(draft.columns, draft.rows(trendWidth), { width, style });
}

/** A table without its sparklines, whose width depends on the rest. */
interface Draft {
  readonly columns: readonly Column[];
  readonly rows: (trendWidth: number) => readonly Row[];
}

function draftWidth({ columns, rows }: Draft, trendWidth: number): number {
  return tableWidth(columns, rows(trendWidth));
}

function draftOf({ groupBy, answer, entries }: Report, fields: readonly EntryField[], isExact: boolean): Draft {
  const { totalCost } = answer.summary;
  const hasUsage = showsUsage(groupBy);
  const amount = isExact ? formatUsdExact : formatUsd;
  const money = (cost: DecimalText) => [amount(cost), shareText(cost, totalCost)];
  // Without groups there is one entry, and it is the total.
  const names = (entry: MetricsEntry) => (fields.length === 0 ? ['Total'] : fields.map((field) => entry[field] ?? ''));
  const usage = (entry: MetricsEntry) => (hasUsage ? [usageText(entry, isExact)] : []);
  const ofEntry = (entry: MetricsEntry, trendWidth: number): Row => ({
    cells: [...names(entry), ...money(entry.summary.cost), ...usage(entry), sparkline(costSeries(entry), trendWidth)],
    isStrong: fields.length === 0,
  });
  const summary = (label: string, cost: DecimalText): Row => ({
    cells: [label, ...fields.slice(1).map(() => ''), ...money(cost)],
    isStrong: label === TOTAL,
  });
  const unread = subtractDecimals(totalCost, sumDecimals(entries.map((entry) => entry.summary.cost)));
  const others = unread === '0' ? [] : [summary('(other groups)', unread)];
  const totals = fields.length === 0 ? [] : [...others, summary(TOTAL, totalCost)];
  return {
    columns: columnsOf(fields, hasUsage),
    rows: (trendWidth) => [...entries.map((entry) => ofEntry(entry, trendWidth)), ...totals],
  };
}

function columnsOf(fields: readonly EntryField[], hasUsage: boolean): Column[] {
  const names = fields.map((field) => ({ heading: FIELD_HEADING[field], least: LEAST_NAME }));
  return [
    ...(fields.length === 0 ? [{ heading: '' }] : names),
    { heading: 'COST', isNumeric: true },
    { heading: 'SHARE', isNumeric: true },
    ...(hasUsage ? [{ heading: 'USAGE', isNumeric: true }] : []),
    { heading: 'TREND' },
  ];
}

const FIELD_HEADING = {
  workspace: 'WORKSPACE',
  resourceType: 'TYPE',
  resourceName: 'RESOURCE',
  resourceUuid: 'INSTANCE',
  billingDimension: 'DIMENSION',
} as const satisfies Record<EntryField, string>;

/** The fields that the entries have, enriched ones included, in canonical order. */
function shownFields(entries: readonly MetricsEntry[]): EntryField[] {
  return GROUP_BY_DIMENSIONS.map((dimension) => ENTRY_FIELD[dimension]).filter((field) =>
    entries.some((entry) => entry[field] !== undefined),
  );
}

function costSeries({ timeseries }: MetricsEntry): number[] {
  return timeseries.map(({ cost }) => approximateDecimal(cost));
}

/** `12.3%`; less than a twentieth of a percent, but not nothing, is `<0.1%`. */
function shareText(cost: DecimalText, total: DecimalText): string {
  const percent = percentOf(cost, total);
  if (percent === undefined) return '–';
  if (percent === '0' && cost !== '0') return '<0.1%';
  return percent.includes('.') ? `${percent}%` : `${percent}.0%`;
}

function usageText({ billingDimension, summary: { usage } }: MetricsEntry, isExact: boolean): string {
  if (usage === undefined || billingDimension === undefined) return '';
  return formatUsage(usage, DIMENSIONS[billingDimension].unit, isExact ? undefined : 2);
}

const BARS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;
/** Nothing at all, which must not look like a little. */
const NOTHING = '·';

/**
 * One character for a bucket, or for several where there are more buckets than `width`; the highest bar is the highest
 * value of this series.
 * @param values at least 0
 */
export function sparkline(values: readonly number[], width: number): string {
  const bars = squeezed(values, Math.max(1, width));
  const highest = Math.max(...bars);
  return bars.map((value) => (value === 0 ? NOTHING : BARS[Math.ceil((value / highest) * BARS.length) - 1])).join('');
}

/** The same sum over at most `width` parts of nearly equal length. */
function squeezed(values: readonly number[], width: number): number[] {
  if (values.length <= width) return [...values];
  const sums = new Array<number>(width).fill(0);
  for (const [index, value] of values.entries()) {
    const part = Math.floor((index * width) / values.length);
    sums[part] = (sums[part] ?? 0) + value;
  }
  return sums;
}
