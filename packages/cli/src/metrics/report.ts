/** Renders a response as a table. An additional row sums the groups on other pages, so that the rows add up to the total. */
import {
  canonicalGroupBy,
  changeFrom,
  type DecimalText,
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
  unitOf,
  ZERO,
} from '@meterline/catalog';
import { ALL_ACCOUNTS, type MetricsEntry, type MetricsResponse } from '@meterline/client';
import { type Row, type TableLayout, tableWidth, textTable } from '../output/table.js';

export interface Report {
  readonly account: string;
  readonly groupBy: readonly MetricsDimension[];
  /** Whether the API omits workspaces because the caller is a member. */
  readonly hidesWorkspace: boolean;
  /** Any page of the response. The summary of each page covers the whole window. */
  readonly response: Omit<MetricsResponse, 'data'>;
  readonly entries: readonly MetricsEntry[];
  /** The previous period, or undefined without --compare. */
  readonly before: Before | undefined;
}

export interface Before {
  readonly response: Pick<MetricsResponse, 'startTime' | 'endTime' | 'summary'>;
  /** How far back the previous period is, such as `4 weeks earlier`. */
  readonly distance: string;
  /** The groups of the previous period, by `groupKey`. A group that is missing here cost nothing in that period. */
  readonly entries: ReadonlyMap<string, MetricsEntry>;
}

export interface ReportLayout extends Required<TableLayout> {
  readonly isExact: boolean;
}

const MIN_NAME_WIDTH = 8;
const MIN_TREND_WIDTH = 8;
const MAX_TREND_WIDTH = 40;

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
  const heading = [style('bold', `${name}: ${startTime} to ${endTime} (UTC), ${resolution}`)];
  if (before)
    heading.push(`Previous period: ${before.response.startTime} to ${before.response.endTime}, ${before.distance}`);
  if (entries.length === 0 && (!before || before.response.summary.totalCost === ZERO)) {
    return [...heading, '', 'No usage in this window.'].join('\n');
  }
  const widthOf = (table: Table) => tableWidth(table.columns, table.rows(MIN_TREND_WIDTH));
  let table = tableOf(report, shownFields(report), isExact);
  // On a narrow terminal, remove the fields that --group-by does not name. Names are shortened only if that is not enough.
  if (width !== undefined && widthOf(table) > width) {
    const requested = groupBy.map((dimension) => ENTRY_FIELD[dimension]);
    table = tableOf(report, requested, isExact);
  }
  const room = width === undefined ? MAX_TREND_WIDTH : width - widthOf(table) + MIN_TREND_WIDTH;
  const buckets = entries[0]?.timeseries.length ?? 0;
  const trendWidth = Math.min(buckets, MAX_TREND_WIDTH, Math.max(MIN_TREND_WIDTH, room));
  return [...heading, '', textTable(table.columns, table.rows(trendWidth), { width, style })].join('\n');
}

function shownFields({ groupBy, hidesWorkspace }: Report): MetricsField[] {
  const enriched = enrichedDimensions(groupBy).filter((dimension) => dimension !== 'workspace' || !hidesWorkspace);
  return canonicalGroupBy([...groupBy, ...enriched]).map((dimension) => ENTRY_FIELD[dimension]);
}

/** The columns, and a function that creates their rows. The width of the sparklines depends on the width of the other columns. */
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
  // Without --group-by, the response has a single entry: the total.
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
  const numbers = ['COST', 'SHARE', ...(before ? ['PREVIOUS', 'CHANGE'] : []), ...(hasUsage ? ['USAGE'] : [])];
  return {
    columns: [
      ...(fields.length === 0 ? [{ heading: '' }] : []),
      ...fields.map((field) => ({ heading: FIELD_HEADING[field], minWidth: MIN_NAME_WIDTH })),
      ...numbers.map((heading) => ({ heading, isNumeric: true })),
      { heading: 'TREND' },
    ],
    rows: (trendWidth: number) => [...entries.map((entry) => group(entry, trendWidth)), ...totals],
  };
}

function usageText({ billingDimension, summary: { usage } }: MetricsEntry, isExact: boolean): string {
  if (usage === undefined || billingDimension === undefined) return '';
  return formatUsage(usage, unitOf(billingDimension), isExact ? undefined : 2);
}

const BARS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;
/** Stands for zero, which must look different from the lowest bar. */
const NOTHING = '·';

/** Draws a bar per bucket, or per several buckets if there are more than `width`. The highest bar is the maximum. No value is negative. */
export function sparkline(values: readonly number[], width: number): string {
  const bars = squeezed(values, Math.max(1, width));
  const highest = Math.max(...bars);
  return bars.map((value) => (value === 0 ? NOTHING : BARS[Math.ceil((value / highest) * BARS.length) - 1])).join('');
}

/** Splits the values into at most `width` parts of nearly equal length, and returns the sum of each part. */
function squeezed(values: readonly number[], width: number): number[] {
  if (values.length <= width) return [...values];
  const sums = new Array<number>(width).fill(0);
  for (const [index, value] of values.entries()) {
    const part = Math.floor((index * width) / values.length);
    sums[part] = (sums[part] ?? 0) + value;
  }
  return sums;
}
