/** The files that the page can write. Loaded when the first is asked for. */
import { formatTimestamp } from '@meterline/catalog';
import type { MeterlineClient, MetricsAnswer, MetricsEntry, MetricsQuery } from '@meterline/client';
import { exportFocus, type FocusQuestion, focusCsvHeading, focusCsvLines } from '@meterline/client/focus';
import { type PreviousCosts, rowOf, searchRows, sortRows } from '../table/rows.js';
import type { View } from '../view/view.js';
import { type CsvSource, seriesCsv, tableCsv } from './metrics-csv.js';

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
  /** Undefined while comparing: not read yet. */
  readonly previous: PreviousCosts;
}

const TYPE = 'text/csv;charset=utf-8';
const WRITE = { groups: tableCsv, series: seriesCsv } as const;

/**
 * Reads every page again, so that the file shows one moment, and writes the rows that the table shows.
 * @param onRead called with the number of groups so far
 */
export async function tableFile(
  client: MeterlineClient,
  { account, view, query, previous }: TableSource,
  kind: TableKind,
  onRead: (groups: number) => void,
): Promise<ExportedFile> {
  const entries: MetricsEntry[] = [];
  let answer: MetricsAnswer | undefined;
  for await (const page of client.metricsPages(account, query)) {
    entries.push(...page.data);
    answer ??= page;
    onRead(entries.length);
  }
  if (!answer) throw new Error('There was no answer.');
  const all = entries.map((entry) => rowOf(entry, view.groupBy, previous));
  const rows = searchRows(sortRows(all, view.sort), view.search);
  const source: CsvSource = { rows, groupBy: query.groupBy ?? [], answer, isCompared: previous !== undefined };
  const [from, to] = [query.startTime, query.endTime].map((time) => String(time).slice(0, 10));
  const parts = [account, from, 'to', to, ...view.groupBy, ...(kind === 'series' ? ['series'] : [])];
  return { name: fileName(parts), content: new Blob([WRITE[kind](source)], { type: TYPE }) };
}

/**
 * A month as FOCUS 1.2, with the bytes that `meterline export focus` writes.
 * @param onRead called with the number of rows so far
 */
export async function focusFile(
  client: MeterlineClient,
  question: FocusQuestion,
  onRead: (rows: number) => void,
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
  const { sink } = await exportFocus(client, question, open);
  const month = formatTimestamp(question.month).slice(0, 7);
  return { name: fileName([question.account, month, 'focus']), content: new Blob(sink.parts, { type: TYPE }) };
}

/** File systems allow fewer characters than names do. */
function fileName(parts: readonly (string | undefined)[]): string {
  return `${['meterline', ...parts].join('-').replace(/[^\w.-]+/g, '_')}.csv`;
}
