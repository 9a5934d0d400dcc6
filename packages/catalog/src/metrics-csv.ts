/** Formats metrics as CSV, in the same way for the command line and the web page. Source: RFC 4180; OWASP, "CSV Injection". */
import { percentOf, subtractDecimals } from './amounts.js';
import type { MetricsEntry, MetricsResponse } from './api/responses.js';
import { type DecimalText, ZERO } from './decimal.js';
import {
  canonicalGroupBy,
  ENTRY_FIELD,
  enrichedDimensions,
  type MetricsDimension,
  showsUsage,
  unitOf,
} from './dimensions.js';

/** `spreadsheet` adds a byte order mark, and an apostrophe before text that looks like a formula. `plain` leaves the data unchanged. */
export type CsvForm = 'spreadsheet' | 'plain';

/** A string may come from untrusted people, so it is checked for formulas. A `number` was written by Meterline and stays as it is. */
type CsvCell = string | { readonly number: string };

interface CsvColumn<Row> {
  readonly name: string;
  readonly cell: (row: Row) => CsvCell;
}

/** A group and its amounts, in the whole window or in one bucket. */
interface AmountsRow {
  readonly entry: MetricsEntry;
  readonly amounts: Pick<MetricsEntry['summary'], 'cost' | 'usage'>;
}

interface GroupRow extends AmountsRow {
  readonly response: Pick<MetricsResponse, 'startTime' | 'endTime' | 'summary'>;
  readonly before: DecimalText;
}

interface BucketRow extends AmountsRow {
  readonly timestamp: string;
  readonly resolution: MetricsResponse['resolution'];
}

const COMPARISON_COLUMNS: readonly CsvColumn<GroupRow>[] = [
  { name: 'previousCostUsd', cell: ({ before }) => ({ number: before }) },
  { name: 'changeUsd', cell: (row) => ({ number: differenceOf(row) }) },
  { name: 'changePercent', cell: (row) => percentCell(differenceOf(row), row.before) },
];

function differenceOf({ amounts, before }: GroupRow): DecimalText {
  return subtractDecimals(amounts.cost, before);
}

const SHARE_DIGITS = 6;

function percentCell(part: DecimalText, whole: DecimalText): CsvCell {
  return { number: percentOf(part, whole, SHARE_DIGITS) ?? '' };
}

/** Returns a column for each dimension of groupBy, and for those that entries also show. An empty response has the same columns. */
function nameColumns(groupBy: readonly MetricsDimension[]): CsvColumn<AmountsRow>[] {
  return canonicalGroupBy([...groupBy, ...enrichedDimensions(groupBy)]).map((dimension) => {
    const field = ENTRY_FIELD[dimension];
    return { name: field, cell: ({ entry }) => entry[field] ?? '' };
  });
}

/** Returns a column for the cost in USD with every digit. If every group has a single unit, adds columns for usage and its unit. */
function amountColumns(groupBy: readonly MetricsDimension[]): CsvColumn<AmountsRow>[] {
  const cost: CsvColumn<AmountsRow> = { name: 'costUsd', cell: ({ amounts }) => ({ number: amounts.cost }) };
  if (!showsUsage(groupBy)) return [cost];
  return [
    cost,
    { name: 'usage', cell: ({ amounts }) => ({ number: amounts.usage ?? '' }) },
    { name: 'unit', cell: ({ entry: { billingDimension = '' } }) => unitOf(billingDimension) },
  ];
}

/**
 * Returns the heading and a line for each group.
 * @param response provides the window, and the total cost for the shares
 * @param costBefore returns a group's cost in the previous period. If undefined, there is no comparison.
 */
export function groupsCsvLines(
  response: GroupRow['response'],
  groups: readonly MetricsEntry[],
  groupBy: readonly MetricsDimension[],
  costBefore?: (entry: MetricsEntry) => DecimalText | undefined,
  form: CsvForm = 'spreadsheet',
): string[] {
  const columns = groupsCsvColumns(groupBy, costBefore !== undefined);
  const before = (entry: MetricsEntry) => costBefore?.(entry) ?? ZERO;
  const rows = groups.map((entry) => ({ response, entry, amounts: entry.summary, before: before(entry) }));
  return csvLines(columns, rows, form);
}

/** Gives a group that has usage only in the previous period a line with zero amounts. Otherwise, the previous costs would not add up. */
export function groupWithoutUsage(before: MetricsEntry): MetricsEntry {
  const { usage } = before.summary;
  return { ...before, summary: { cost: ZERO, ...(usage !== undefined && { usage: ZERO }) }, timeseries: [] };
}

function groupsCsvColumns(groupBy: readonly MetricsDimension[], isCompared: boolean): CsvColumn<GroupRow>[] {
  return [
    ...nameColumns(groupBy),
    { name: 'startTime', cell: ({ response }) => response.startTime },
    { name: 'endTime', cell: ({ response }) => response.endTime },
    ...amountColumns(groupBy),
    { name: 'sharePercent', cell: ({ response, amounts }) => percentCell(amounts.cost, response.summary.totalCost) },
    ...(isCompared ? COMPARISON_COLUMNS : []),
  ];
}

function seriesCsvColumns(groupBy: readonly MetricsDimension[]): CsvColumn<BucketRow>[] {
  return [
    ...nameColumns(groupBy),
    { name: 'timestamp', cell: ({ timestamp }) => timestamp },
    { name: 'resolution', cell: ({ resolution }) => resolution },
    ...amountColumns(groupBy),
  ];
}

export function seriesCsvLines(
  groups: readonly MetricsEntry[],
  groupBy: readonly MetricsDimension[],
  resolution: MetricsResponse['resolution'],
  form: CsvForm = 'spreadsheet',
): string[] {
  const columns = seriesCsvColumns(groupBy);
  const rows = groups.flatMap((entry) =>
    entry.timeseries.map((point) => ({ entry, amounts: point, timestamp: point.timestamp, resolution })),
  );
  return csvLines(columns, rows, form);
}

/** Without a byte order mark, Excel does not decode the file as UTF-8 but in the system's own encoding. */
export const BYTE_ORDER_MARK = '\uFEFF';

function csvLines<Row>(columns: readonly CsvColumn<Row>[], rows: readonly Row[], form: CsvForm): string[] {
  const mark = form === 'spreadsheet' ? BYTE_ORDER_MARK : '';
  const cellsOf = (row: Row) => columns.map(({ cell }) => cell(row));
  return [mark + csvLine(columns.map(({ name }) => name)), ...rows.map((row) => csvLine(cellsOf(row), form))];
}

/**
 * Matches the beginning of a formula. Blanks and invisible characters may come first, because some spreadsheets remove them. Full-width
 * signs also match, because some spreadsheets treat them like ASCII signs.
 */
const FORMULA = /^(?:[\t\r\n]|[\s\p{Cf}]*[=+\-@|%\uFF1D\uFF0B\uFF0D\uFF20\uFF5C\uFF05])/u;
/** Besides commas, some spreadsheets also split at semicolons and tabs. Some treat a leading apostrophe as a marker of text. */
const NEEDS_QUOTES = /[",;\t\r\n]|^['\s]|\s$/;

/** Returns one line, including its line break. */
export function csvLine(cells: readonly CsvCell[], form: CsvForm = 'spreadsheet'): string {
  // A leading apostrophe makes spreadsheets treat the cell as text, not as a formula.
  const guarded = (text: string) => (form === 'spreadsheet' && FORMULA.test(text) ? `'${text}` : text);
  const texts = cells.map((cell) => (typeof cell === 'string' ? guarded(cell) : cell.number));
  return `${texts.map((text) => (NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(',')}\r\n`;
}
