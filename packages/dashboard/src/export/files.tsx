/** Exports files: the groups or the chart as CSV, the events behind an amount, and a month in the FOCUS format. Shows progress and errors. */
import {
  counted,
  formatTimestamp,
  groupKey,
  groupsCsvLines,
  groupWithoutUsage,
  MAX_EVENTS_PAGE,
  seriesCsvLines,
} from '@meterline/catalog/plain';
import {
  ALL_ACCOUNTS,
  allEvents,
  type EventPage,
  type EventsQuery,
  eventsCsv,
  type MeterlineClient,
  type MetricsEntry,
  type MetricsQuery,
} from '@meterline/client';
import { exportFocus, type FocusQuery, focusCsvHeading, focusCsvLines } from '@meterline/client/focus';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { ErrorText } from '../controls/controls.js';
import { localized } from '../format/locale.js';
import { useSession } from '../shell/session.js';
import { previousCostIn, rowOf, searchRows, sortRows } from '../table/rows.js';
import type { View } from '../view/view.js';

interface ExportJob {
  readonly client: MeterlineClient;
  /** Called with the number of rows read so far, and their singular noun. */
  readonly onRead: (count: number, unit: string) => void;
  readonly signal: AbortSignal;
}

type Create = (job: ExportJob) => Promise<ExportedFile>;

/** Renders its children, which start the export, and replaces them with the progress while it runs. */
export function Export({ children }: { readonly children: (start: (create: Create) => void) => ReactNode }) {
  const { client, lifetime } = useSession();
  const [progress, setProgress] = useState('');
  const { mutate, isPending, isError, error } = useMutation({
    mutationFn: async (create: Create) => {
      setProgress('');
      const onRead = (count: number, unit: string) => setProgress(` ${localized(counted(count, unit))}`);
      download(await create({ client, onRead, signal: lifetime.signal }));
    },
  });
  if (isPending) return <span className="control">Exporting…{progress}</span>;
  return (
    <>
      <ErrorText>{isError && `Export failed: ${error.message}`}</ErrorText>
      {children(mutate)}
    </>
  );
}

function download({ name, content }: ExportedFile): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

interface ExportedFile {
  readonly name: string;
  readonly content: Blob;
}

/** The rows of a file: one row for each group, or one row for each group and bucket. */
export type TableKind = 'groups' | 'series';

export interface TableSource {
  readonly account: string;
  readonly view: View;
  readonly query: MetricsQuery;
  /** The query for the previous period, or undefined if there is no comparison. */
  readonly previousQuery: MetricsQuery | undefined;
}

const CSV_TYPE = 'text/csv;charset=utf-8';

/**
 * Writes the rows of the table to a file. Reads every page again, so that all rows show the same point in time. With a comparison, adds the
 * groups that only the previous period has.
 */
export async function tableFile(
  { client, onRead, signal }: ExportJob,
  { account, view, query, previousQuery }: TableSource,
  kind: TableKind,
): Promise<ExportedFile> {
  const optionsAfter = (read: number) => ({ onRead: (groups: number) => onRead(read + groups, 'group'), signal });
  const response = await client.allMetrics(account, query, optionsAfter(0));
  const further = optionsAfter(response.data.length);
  const previous = previousQuery && (await client.allMetrics(account, previousQuery, further));
  const keyOf = (entry: MetricsEntry) => groupKey(entry, view.groupBy);
  const previousCost = previousCostIn(previous && { entries: previous.data, isComplete: true }, view.groupBy);
  const present = new Set(response.data.map(keyOf));
  const gone = (previous?.data ?? []).filter((entry) => !present.has(keyOf(entry))).map(groupWithoutUsage);
  const all = [...response.data, ...gone]
    .map((entry) => rowOf(entry, view.groupBy))
    .map((row) => ({ ...row, previousCost: previousCost(row.key) }));
  const groups = searchRows(sortRows(all, view.sort), view.search).map(({ entry }) => entry);
  const costBefore = previous && ((entry: MetricsEntry) => previousCost(keyOf(entry)));
  const lines =
    kind === 'groups'
      ? groupsCsvLines(response, groups, query.groupBy ?? [], costBefore)
      : seriesCsvLines(groups, query.groupBy ?? [], response.resolution);
  const parts = [
    account === ALL_ACCOUNTS ? 'all-accounts' : account,
    ...daysOf(query),
    ...view.groupBy,
    ...(kind === 'series' ? ['series'] : []),
  ];
  return { name: fileName(parts), content: new Blob([...lines], { type: CSV_TYPE }) };
}

/** Writes a month in the FOCUS 1.2 format. The file is byte for byte the output of `meterline export focus`. */
export async function focusFile({ client, onRead, signal }: ExportJob, query: FocusQuery): Promise<ExportedFile> {
  const open = () => {
    // Use a blob for each part. Browsers may store blobs on disk, so a large file does not fill the memory.
    const parts = [new Blob([focusCsvHeading()])];
    let rows = 0;
    const write = (charges: Parameters<typeof focusCsvLines>[0]) => {
      parts.push(new Blob([focusCsvLines(charges)]));
      rows += charges.length;
      onRead(rows, 'row');
    };
    return { parts, write };
  };
  const { sink } = await exportFocus(client, query, open, { signal });
  const month = formatTimestamp(query.month).slice(0, 7);
  return { name: fileName([query.account, month, 'focus']), content: new Blob(sink.parts, { type: CSV_TYPE }) };
}

/** Writes all events of a query in its order. The file is byte for byte the output of `meterline explain --all --csv=excel`. */
export async function eventsFile(
  { client, onRead, signal }: ExportJob,
  account: string,
  query: EventsQuery,
): Promise<ExportedFile> {
  const parts: Blob[] = [];
  let events = 0;
  const onPage = ({ data }: EventPage) => {
    events += data.length;
    onRead(events, 'event');
  };
  for await (const { data } of allEvents(client, account, { ...query, limit: MAX_EVENTS_PAGE }, { signal, onPage }))
    parts.push(new Blob([eventsCsv(data, 'spreadsheet', parts.length > 0)]));
  return { name: fileName([account, ...daysOf(query), 'events']), content: new Blob(parts, { type: CSV_TYPE }) };
}

/** Returns the days of a window as parts of a file name. */
function daysOf({ startTime, endTime }: Pick<MetricsQuery, 'startTime' | 'endTime'>): string[] {
  const [from = '', to = ''] = [startTime, endTime].map((time) => String(time).slice(0, 10));
  return [from, 'to', to];
}

/** Replaces characters that a file system may not allow. */
function fileName(parts: readonly (string | undefined)[]): string {
  return `${['meterline', ...parts].join('-').replace(/[^\w.-]+/g, '_')}.csv`;
}
