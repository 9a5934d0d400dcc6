/** What the table offers to take along: files, and its query for use elsewhere. */
import {
  bucketStart,
  counted,
  type EpochMs,
  formatTimestamp,
  groupKey,
  groupsCsvLines,
  groupWithoutUsage,
  isName,
  parseTimestamp,
  seriesCsvLines,
} from '@meterline/catalog/plain';
import { ALL_ACCOUNTS, type MeterlineClient, type MetricsEntry, type MetricsQuery } from '@meterline/client';
import {
  DEFAULT_PROVIDER,
  exportFocus,
  type FocusQuery,
  focusCsvHeading,
  focusCsvLines,
} from '@meterline/client/focus';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { localized } from '../breakdown/texts.js';
import { CopyButton, ErrorText, Field, Popover, Primary, Segments } from '../controls/controls.js';
import { type Choice, Menu, Select } from '../controls/lists.js';
import { monthChoices } from '../period/period.js';
import { serviceAddress } from '../shell/service-address.js';
import { useSession } from '../shell/session.js';
import { browserStorage } from '../shell/storage.js';
import { previousCostIn, rowOf, searchRows, sortRows } from '../table/rows.js';
import type { View } from '../view/view.js';
import { cliCommand, curlCommand, type SharedQuery, typeScriptCode } from './snippets.js';

interface ExportMenuProps extends TableSource {
  readonly now: EpochMs;
}

const KINDS: readonly Choice<TableKind>[] = [
  { value: 'groups', label: 'The table', hint: 'a line for each group' },
  { value: 'series', label: 'The series', hint: 'a line for each group and bar' },
];

export function ExportMenu({ now, ...source }: ExportMenuProps) {
  const { client, over } = useSession();
  const { signal } = over;
  const { account, query } = source;
  const [read, setRead] = useState('');
  const { mutate, isPending, isError, error } = useMutation({
    mutationFn: async (wanted: TableKind | FocusQuery) => {
      setRead('');
      const file =
        typeof wanted === 'string'
          ? await tableFile(
              client,
              source,
              wanted,
              (groups) => setRead(`, ${localized(counted(groups, 'group'))}`),
              signal,
            )
          : await focusFile(client, wanted, (rows) => setRead(`, ${localized(counted(rows, 'row'))}`), signal);
      download(file);
    },
  });
  if (isPending) return <span className="control">Exporting{read}…</span>;
  return (
    <>
      <ErrorText>{isError && `Export failed: ${error.message}`}</ErrorText>
      <Popover label="Export CSV">
        {(close) => {
          const start = (wanted: TableKind | FocusQuery) => {
            mutate(wanted);
            close();
          };
          const during = (parseTimestamp(String(query.endTime)) ?? now) - 1;
          return (
            <>
              <Menu choices={KINDS} onChoose={start} />
              {account !== ALL_ACCOUNTS && <FocusForm {...{ account, now, during }} onSubmit={start} />}
            </>
          );
        }}
      </Popover>
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

/** The browser keeps the provider's name. */
const PROVIDER = 'meterline.provider';

interface FocusFormProps {
  readonly account: string;
  /** An instant of the month that is suggested. */
  readonly during: EpochMs;
  readonly now: EpochMs;
  readonly onSubmit: (metricsQuery: FocusQuery) => void;
}

/** What there is to choose for a FOCUS file. */
function FocusForm({ account, during, now, onSubmit }: FocusFormProps) {
  const suggested = bucketStart(during, 'monthly');
  const [month, setMonth] = useState(suggested);
  const [resolution, setResolution] = useState<'daily' | 'hourly'>('daily');
  const [provider, setProvider] = useState(browserStorage.getItem(PROVIDER) ?? '');
  const name = provider.trim();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name === '') browserStorage.removeItem(PROVIDER);
    else browserStorage.setItem(PROVIDER, name);
    onSubmit({ account, month, resolution, provider: isName(name) ? name : undefined });
  };
  return (
    <form className="form focus-form" onSubmit={submit}>
      <p className="form-title">A month as FOCUS 1.2</p>
      <p className="hint">The common format of cost data: all usage of the account, whatever is filtered here.</p>
      <Select
        label="Month"
        value={String(month)}
        choices={monthChoices(now, suggested)}
        onChange={(chosen) => setMonth(Number(chosen))}
      />
      <Select
        label="A row for each resource and"
        value={resolution}
        choices={[
          { value: 'daily', label: 'day' },
          { value: 'hourly', label: 'hour' },
        ]}
        onChange={setResolution}
      />
      <Field
        label="Name of the provider"
        value={provider}
        maxLength={256}
        placeholder={DEFAULT_PROVIDER}
        onChange={setProvider}
      />
      <Primary type="submit">Export FOCUS</Primary>
    </form>
  );
}

const FORMS: Readonly<Record<string, (shared: SharedQuery) => string>> = {
  curl: curlCommand,
  'Command line': cliCommand,
  TypeScript: typeScriptCode,
};

/** The query of the table for use elsewhere. The text is shown too: without https a page has no clipboard. */
export function CopyMenu(shared: Omit<SharedQuery, 'baseUrl'>) {
  return <Popover label="Copy as">{() => <CopyPanel shared={{ ...shared, baseUrl: serviceAddress() }} />}</Popover>;
}

function CopyPanel({ shared }: { readonly shared: SharedQuery }) {
  const [chosen, setChosen] = useState('curl');
  const text = FORMS[chosen]?.(shared) ?? '';
  return (
    <div className="copy">
      <Segments legend="Form" choices={Object.keys(FORMS)} chosen={chosen} onChoose={setChosen} />
      <pre>
        <code>{text}</code>
      </pre>
      <div className="choices-end">
        <span className="hint">Set METERLINE_API_KEY to a key. The key is not part of the text.</span>
        <CopyButton key={text} text={text} className="primary" />
      </div>
    </div>
  );
}

/** A file that the page can write. */
interface ExportedFile {
  readonly name: string;
  readonly content: Blob;
}

/** A line for each group, or for each group and bar. */
type TableKind = 'groups' | 'series';

interface TableSource {
  readonly account: string;
  readonly view: View;
  readonly query: MetricsQuery;
  /** The query for the period before; undefined: the view is not compared. */
  readonly previousQuery: MetricsQuery | undefined;
}

const TYPE = 'text/csv;charset=utf-8';

/**
 * Reads every page again, so that the file shows one moment, and writes the rows that the table shows; with a comparison also the groups
 * that only the period before had.
 * @param onRead called with the number of groups so far
 * @param signal ends the reading
 */
async function tableFile(
  client: MeterlineClient,
  { account, view, query, previousQuery }: TableSource,
  kind: TableKind,
  onRead: (groups: number) => void,
  signal: AbortSignal,
): Promise<ExportedFile> {
  const response = await client.allMetrics(account, query, { onRead, signal });
  const read = response.data.length;
  const further = { onRead: (groups: number) => onRead(read + groups), signal };
  const before = previousQuery && (await client.allMetrics(account, previousQuery, further));
  const keyOf = (entry: MetricsEntry) => groupKey(entry, view.groupBy);
  const previousCost = previousCostIn(before && { entries: before.data, isWhole: true }, view.groupBy);
  const present = new Set(response.data.map(keyOf));
  const gone = (before?.data ?? []).filter((entry) => !present.has(keyOf(entry))).map(groupWithoutUsage);
  const all = [...response.data, ...gone]
    .map((entry) => rowOf(entry, view.groupBy))
    .map((row) => ({ ...row, previousCost: previousCost(row.key) }));
  const groups = searchRows(sortRows(all, view.sort), view.search).map(({ entry }) => entry);
  const costBefore = before && ((entry: MetricsEntry) => previousCost(keyOf(entry)));
  const lines =
    kind === 'groups'
      ? groupsCsvLines(response, groups, query.groupBy ?? [], costBefore)
      : seriesCsvLines(groups, query.groupBy ?? [], response.resolution);
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
async function focusFile(
  client: MeterlineClient,
  metricsQuery: FocusQuery,
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
  const { sink } = await exportFocus(client, metricsQuery, open, { signal });
  const month = formatTimestamp(metricsQuery.month).slice(0, 7);
  return { name: fileName([metricsQuery.account, month, 'focus']), content: new Blob(sink.parts, { type: TYPE }) };
}

/** File systems allow fewer characters than names do. */
function fileName(parts: readonly (string | undefined)[]): string {
  return `${['meterline', ...parts].join('-').replace(/[^\w.-]+/g, '_')}.csv`;
}
