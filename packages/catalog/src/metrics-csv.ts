/** Metrics as CSV, the same for the command line and the web page. Source: RFC 4180; OWASP, "CSV Injection". */
import { percentOf, subtractDecimals } from './amounts.js';
import type { MetricsEntry, MetricsResponse } from './api/responses.js';
import { type DecimalText, ZERO } from './decimal.js';
import {
  canonicalGroupBy,
  DIMENSIONS,
  ENTRY_FIELD,
  enrichedDimensions,
  type MetricsDimension,
  showsUsage,
} from './dimensions.js';

/** `spreadsheet` has a byte order mark, and texts that no spreadsheet takes for a formula; `plain` has the data as they are. */
export type CsvForm = 'spreadsheet' | 'plain';

/** Text, which other people may have chosen, or a number of ours, which stays a number. */
type CsvCell = string | { readonly number: string };

interface CsvColumn<Row> {
  readonly name: string;
  readonly cell: (row: Row) => CsvCell;
}

/** A line of metrics: a group, and its amounts in the window or in one bucket. */
interface AmountsRow {
  readonly entry: MetricsEntry;
  readonly amounts: Pick<MetricsEntry['summary'], 'cost' | 'usage'>;
}

/** A line for a group: its amounts in the whole window. */
interface GroupRow extends AmountsRow {
  readonly response: Pick<MetricsResponse, 'startTime' | 'endTime' | 'summary'>;
  /** What it cost in the window before; not used where nothing is compared. */
  readonly before: DecimalText;
}

/** A line for a bucket of a group. */
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

/** Empty where there is no percentage. */
function percentCell(part: DecimalText, whole: DecimalText): CsvCell {
  return { number: percentOf(part, whole, SHARE_DIGITS) ?? '' };
}

/** The names of a group: a column for each dimension, enriched ones included. Fixed by groupBy, so an empty response has them too. */
function nameColumns(groupBy: readonly MetricsDimension[]): CsvColumn<AmountsRow>[] {
  return canonicalGroupBy([...groupBy, ...enrichedDimensions(groupBy)]).map((dimension) => {
    const field = ENTRY_FIELD[dimension];
    return { name: field, cell: ({ entry }) => entry[field] ?? '' };
  });
}

/** The cost in USD, every digit; usage and its unit where no group has several units. */
function amountColumns(groupBy: readonly MetricsDimension[]): CsvColumn<AmountsRow>[] {
  const cost: CsvColumn<AmountsRow> = { name: 'costUsd', cell: ({ amounts }) => ({ number: amounts.cost }) };
  if (!showsUsage(groupBy)) return [cost];
  const unitOf = ({ billingDimension: name }: MetricsEntry) => (name ? DIMENSIONS[name].unit : '');
  return [
    cost,
    { name: 'usage', cell: ({ amounts }) => ({ number: amounts.usage ?? '' }) },
    { name: 'unit', cell: ({ entry }) => unitOf(entry) },
  ];
}

/**
 * The heading, and a line for each group.
 * @param response with the window, and the cost that shares are of
 * @param costBefore what a group cost in the window before; undefined: nothing is compared
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

/** A group of the window before that has no usage in this one. Without its line the costs before would not add up. */
export function groupWithoutUsage(before: MetricsEntry): MetricsEntry {
  const { usage } = before.summary;
  return { ...before, summary: { cost: ZERO, ...(usage !== undefined && { usage: ZERO }) }, timeseries: [] };
}

/** The columns of a line for each group: its names, the window, its amounts, its share, and how it compares. */
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

/** The columns of a line for each bucket of each group. */
function seriesCsvColumns(groupBy: readonly MetricsDimension[]): CsvColumn<BucketRow>[] {
  return [
    ...nameColumns(groupBy),
    { name: 'timestamp', cell: ({ timestamp }) => timestamp },
    { name: 'resolution', cell: ({ resolution }) => resolution },
    ...amountColumns(groupBy),
  ];
}

/** The heading, and a line for each bucket of each group. */
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

/** Without it Excel reads UTF-8 as the system's own encoding. */
const BYTE_ORDER_MARK = '\uFEFF';

/** The heading, and a line for each row. */
function csvLines<Row>(columns: readonly CsvColumn<Row>[], rows: readonly Row[], form: CsvForm): string[] {
  const mark = form === 'spreadsheet' ? BYTE_ORDER_MARK : '';
  const cellsOf = (row: Row) => columns.map(({ cell }) => cell(row));
  return [mark + csvLine(columns.map(({ name }) => name)), ...rows.map((row) => csvLine(cellsOf(row), form))];
}

/**
 * What a spreadsheet takes for the beginning of a formula: also behind blanks and invisible characters, which some remove,
 * and full-width signs, which some read as the plain ones.
 */
const FORMULA = /^(?:[\t\r\n]|[\s\p{Cf}]*[=+\-@|%\uFF1D\uFF0B\uFF0D\uFF20\uFF5C\uFF05])/u;
/** Semicolon and tab, because some spreadsheets cut there too; an apostrophe, because it is a sign to some. */
const NEEDS_QUOTES = /[",;\t\r\n]|^['\s]|\s$/;

/** One line with its end. */
export function csvLine(cells: readonly CsvCell[], form: CsvForm = 'spreadsheet'): string {
  // A leading apostrophe says that what follows is text.
  const guarded = (text: string) => (form === 'spreadsheet' && FORMULA.test(text) ? `'${text}` : text);
  const texts = cells.map((cell) => (typeof cell === 'string' ? guarded(cell) : cell.number));
  return `${texts.map((text) => (NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(',')}\r\n`;
}
