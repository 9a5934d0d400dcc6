/** The files that the page can write. */
import { csvHeading, csvRow, formatTimestamp, groupsCsvColumns, seriesCsvLines, ZERO } from '@meterline/catalog';
import { ALL_ACCOUNTS, type MeterlineClient, type MetricsQuery } from '@meterline/client';
import { exportFocus, type FocusQuestion, focusCsvHeading, focusCsvLines } from '@meterline/client/focus';
import { previousCostIn, rowOf, searchRows, sortRows } from '../table/rows.js';
import type { View } from '../view/view.js';

export interface ExportedFile {
  readonly name: string;
  readonly content: Blob;
}

/** A line for each group, or for each group and bar. */
export type TableKind = 'groups' | 'series';

export interface TableSource {
  readonly account: string;
  readonly view: View;
  readonly query: MetricsQuery;
  /** Of the period before; undefined: the view is not compared. */
  readonly previousQuery: MetricsQuery | undefined;
}

const TYPE = 'text/csv;charset=utf-8';

/**
 * Reads every page again, so that the file shows one moment, and writes the rows that the table shows.
 * @param onRead called with the number of groups so far
 * @param signal ends the reading
 */
export async function tableFile(
  client: MeterlineClient,
  { account, view, query, previousQuery }: TableSource,
  kind: TableKind,
  onRead: (groups: number) => void,
  signal: AbortSignal,
): Promise<ExportedFile> {
  const answer = await client.allMetrics(account, query, { onRead, signal });
  const read = answer.data.length;
  const further = { onRead: (groups: number) => onRead(read + groups), signal };
  const before = previousQuery && (await client.allMetrics(account, previousQuery, further));
  const previousCost = previousCostIn(before && { entries: before.data, isWhole: true }, view.groupBy);
  const all = answer.data
    .map((entry) => rowOf(entry, view.groupBy))
    .map((row) => ({ ...row, previousCost: previousCost(row.key) }));
  const rows = searchRows(sortRows(all, view.sort), view.search);
  const groupBy = query.groupBy ?? [];
  const columns = groupsCsvColumns(groupBy, before !== undefined);
  const tableLines = () =>
    rows.map((row) =>
      csvRow(columns, { answer, entry: row.entry, amounts: row.entry.summary, before: row.previousCost ?? ZERO }),
    );
  const lines =
    kind === 'groups'
      ? [csvHeading(columns), ...tableLines()]
      : seriesCsvLines(
          rows.map(({ entry }) => entry),
          groupBy,
          answer.resolution,
        );
  const [from, to] = [query.startTime, query.endTime].map((time) => String(time).slice(0, 10));
  const parts = [
    account === ALL_ACCOUNTS ? 'all-accounts' : account,
    from,
    'to',
    to,
    ...view.groupBy,
    ...(kind === 'series' ? ['series'] : []),
  ];
  return { name: fileName(parts), content: new Blob([...lines], { type: TYPE }) };
}

/**
 * A month as FOCUS 1.2, with the bytes that `meterline export focus` writes.
 * @param onRead called with the number of rows so far
 * @param signal ends the reading
 */
export async function focusFile(
  client: MeterlineClient,
  question: FocusQuestion,
  onRead: (rows: number) => void,
  signal: AbortSignal,
): Promise<ExportedFile> {
  const open = () => {
    // A browser may keep the parts of a blob on disk.
    const parts = [new Blob([focusCsvHeading()])];
    let rows = 0;
    const write = (charges: Parameters<typeof focusCsvLines>[0]) => {
      parts.push(new Blob([focusCsvLines(charges)]));
      rows += charges.length;
      onRead(rows);
    };
    return { parts, write };
  };
  const { sink } = await exportFocus(client, question, open, { signal });
  const month = formatTimestamp(question.month).slice(0, 7);
  return { name: fileName([question.account, month, 'focus']), content: new Blob(sink.parts, { type: TYPE }) };
}

/** File systems allow fewer characters than names do. */
function fileName(parts: readonly (string | undefined)[]): string {
  return `${['meterline', ...parts].join('-').replace(/[^\w.-]+/g, '_')}.csv`;
}
