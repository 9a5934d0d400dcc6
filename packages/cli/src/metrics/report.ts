/** A response as a table for people: a row for each group, and what was not read as a row of its own, so that it adds up. */
import {
  canonicalGroupBy,
  changeFrom,
  type DecimalText,
  DIMENSIONS,
  ENTRY_FIELD,
  enrichedDimensions,
  formatUsage,
  formatUsd,
  formatUsdExact,
  groupKey,
  type MetricsDimension,
  type MetricsField,
  percentChangeText,
  SEVERAL_VALUES,
  shareText,
  showsUsage,
  subtractDecimals,
  sumDecimals,
  ZERO,
} from '@meterline/catalog';
import { ALL_ACCOUNTS, type MetricsEntry, type MetricsResponse } from '@meterline/client';
import { type Row, type TableLayout, tableWidth, textTable } from '../output/table.js';

export interface Report {
  readonly account: string;
  readonly groupBy: readonly MetricsDimension[];
  /** Groups do not show their workspace, because the caller is a member. */
  readonly hidesWorkspace: boolean;
  /** A page; its summary is that of the whole window. */
  readonly response: Omit<MetricsResponse, 'data'>;
  /** The groups of all pages that were read. */
  readonly entries: readonly MetricsEntry[];
  /** What the window is compared with; undefined: with nothing. */
  readonly before: Before | undefined;
}

/** The time before. */
export interface Before {
  readonly response: Pick<MetricsResponse, 'startTime' | 'endTime' | 'summary'>;
  /** `4 weeks earlier`. */
  readonly distance: string;
  /** The groups of then, by `groupKey`; those that are not here cost nothing. */
  readonly entries: ReadonlyMap<string, MetricsEntry>;
}

export interface ReportLayout extends Required<TableLayout> {
  /** Every digit of an amount. */
  readonly isExact: boolean;
}

const LEAST_NAME = 8;
const LEAST_TREND = 8;
const MOST_TREND = 40;

const FIELD_HEADING = {
  account: 'ACCOUNT',
  workspace: 'WORKSPACE',
  resourceType: 'TYPE',
  resourceName: 'RESOURCE',
  resourceUuid: 'INSTANCE',
  billingDimension: 'DIMENSION',
} as const satisfies Record<MetricsField, string>;

export function reportText(report: Report, { width, style, isExact }: ReportLayout): string {
  const { account, groupBy, response, entries, before } = report;
  const { startTime, endTime, resolution } = response;
  const name = account === ALL_ACCOUNTS ? 'All accounts' : account;
  const heading = [style.strong(`${name}: ${startTime} to ${endTime} (UTC), ${resolution}`)];
  if (before) heading.push(`Before: ${before.response.startTime} to ${before.response.endTime}, ${before.distance}`);
  if (entries.length === 0 && (!before || before.response.summary.totalCost === ZERO)) {
    return [...heading, '', 'Nothing was used in this window.'].join('\n');
  }
  const widthOf = (table: Table) => tableWidth(table.columns, table.rows(LEAST_TREND));
  let table = tableOf(report, shownFields(report), isExact);
  // On a narrow terminal, fields that nobody asked for are left out before names are cut.
  if (width !== undefined && widthOf(table) > width) {
    const requested = groupBy.map((dimension) => ENTRY_FIELD[dimension]);
    table = tableOf(report, requested, isExact);
  }
  const room = width === undefined ? MOST_TREND : width - widthOf(table) + LEAST_TREND;
  const buckets = entries[0]?.timeseries.length ?? 0;
  const trendWidth = Math.min(buckets, MOST_TREND, Math.max(LEAST_TREND, room));
  return [...heading, '', textTable(table.columns, table.rows(trendWidth), { width, style })].join('\n');
}

/** The fields that were asked for and those that enrich them, in canonical order. */
function shownFields({ groupBy, hidesWorkspace }: Report): MetricsField[] {
  const enriched = enrichedDimensions(groupBy).filter((dimension) => dimension !== 'workspace' || !hidesWorkspace);
  return canonicalGroupBy([...groupBy, ...enriched]).map((dimension) => ENTRY_FIELD[dimension]);
}

/** The width of the sparklines depends on the rest. */
type Table = ReturnType<typeof tableOf>;

function tableOf({ groupBy, response, entries, before }: Report, fields: readonly MetricsField[], isExact: boolean) {
  const { totalCost } = response.summary;
  const hasUsage = showsUsage(groupBy);
  const amount = isExact ? formatUsdExact : formatUsd;
  const beforeOf = (entry: MetricsEntry) => before?.entries.get(groupKey(entry, groupBy))?.summary.cost ?? ZERO;
  const money = (cost: DecimalText, costBefore: DecimalText) => [
    amount(cost),
    shareText(cost, totalCost),
    ...(before ? [amount(costBefore), percentChangeText(changeFrom(costBefore, cost))] : []),
  ];
  // Without groups there is one entry, and it is the total.
  const names = (entry: MetricsEntry) =>
    fields.length === 0 ? ['Total'] : fields.map((field) => entry[field] ?? SEVERAL_VALUES[field]);
  const group = (entry: MetricsEntry, trendWidth: number): Row => ({
    cells: [
      ...names(entry),
      ...money(entry.summary.cost, beforeOf(entry)),
      ...(hasUsage ? [usageText(entry, isExact)] : []),
      sparkline(
        entry.timeseries.map(({ cost }) => Number(cost)),
        trendWidth,
      ),
    ],
    isStrong: fields.length === 0,
  });
  const summary = (label: string, cost: DecimalText, costBefore: DecimalText): Row => ({
    cells: [label, ...fields.slice(1).map(() => ''), ...money(cost, costBefore)],
    isStrong: label === 'Total',
  });
  const totalBefore = before?.response.summary.totalCost ?? ZERO;
  const unread = subtractDecimals(totalCost, sumDecimals(entries.map((entry) => entry.summary.cost)));
  const unreadBefore = subtractDecimals(totalBefore, sumDecimals(entries.map(beforeOf)));
  const hasOthers = unread !== ZERO || unreadBefore !== ZERO;
  const others = hasOthers ? [summary('(other groups)', unread, unreadBefore)] : [];
  const totals = fields.length === 0 ? [] : [...others, summary('Total', totalCost, totalBefore)];
  const numbers = ['COST', 'SHARE', ...(before ? ['BEFORE', 'CHANGE'] : []), ...(hasUsage ? ['USAGE'] : [])];
  return {
    columns: [
      ...(fields.length === 0 ? [{ heading: '' }] : []),
      ...fields.map((field) => ({ heading: FIELD_HEADING[field], least: LEAST_NAME })),
      ...numbers.map((heading) => ({ heading, isNumeric: true })),
      { heading: 'TREND' },
    ],
    rows: (trendWidth: number) => [...entries.map((entry) => group(entry, trendWidth)), ...totals],
  };
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

/** Adds the values up in at most `width` parts of nearly equal length. */
function squeezed(values: readonly number[], width: number): number[] {
  if (values.length <= width) return [...values];
  const sums = new Array<number>(width).fill(0);
  for (const [index, value] of values.entries()) {
    const part = Math.floor((index * width) / values.length);
    sums[part] = (sums[part] ?? 0) + value;
  }
  return sums;
}
