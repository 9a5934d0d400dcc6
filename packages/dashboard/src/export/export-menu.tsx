/** Renders two menus: one exports the table as a file, and the other one copies the query of the table as a command. */
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
import { CopyButton, ErrorText, Field, Popover, PrimaryButton, Segments } from '../controls/controls.js';
import { type Choice, Menu, Select } from '../controls/lists.js';
import { localized } from '../format/locale.js';
import { monthChoices } from '../period/period.js';
import { serviceAddress } from '../shell/service.js';
import { useSession } from '../shell/session.js';
import { browserStorage } from '../shell/storage.js';
import { previousCostIn, rowOf, searchRows, sortRows } from '../table/rows.js';
import type { View } from '../view/view.js';
import { cliCommand, curlCommand, type SharedQuery } from './snippets.js';

interface ExportMenuProps extends TableSource {
  readonly now: EpochMs;
}

const KINDS: readonly Choice<TableKind>[] = [
  { value: 'groups', label: 'Groups', hint: 'one row per group' },
  { value: 'series', label: 'Time series', hint: 'one row per group and bar' },
];

export function ExportMenu({ now, ...source }: ExportMenuProps) {
  const { client, lifetime } = useSession();
  const { signal } = lifetime;
  const { account, query } = source;
  const [progress, setProgress] = useState('');
  const { mutate, isPending, isError, error } = useMutation({
    mutationFn: async (requested: TableKind | FocusQuery) => {
      setProgress('');
      const reportAs = (unit: string) => (count: number) => setProgress(` ${localized(counted(count, unit))}`);
      const file =
        typeof requested === 'string'
          ? await tableFile(client, source, requested, reportAs('group'), signal)
          : await focusFile(client, requested, reportAs('row'), signal);
      download(file);
    },
  });
  if (isPending) return <span className="control">Exporting…{progress}</span>;
  return (
    <>
      <ErrorText>{isError && `Export failed: ${error.message}`}</ErrorText>
      <Popover label="Export CSV">
        {(close) => {
          const start = (requested: TableKind | FocusQuery) => {
            mutate(requested);
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

const PROVIDER_KEY = 'meterline.provider';

interface FocusFormProps {
  readonly account: string;
  readonly during: EpochMs;
  readonly now: EpochMs;
  readonly onSubmit: (query: FocusQuery) => void;
}

function FocusForm({ account, during, now, onSubmit }: FocusFormProps) {
  const suggested = bucketStart(during, 'monthly');
  const [month, setMonth] = useState(suggested);
  const [resolution, setResolution] = useState<'daily' | 'hourly'>('daily');
  const [provider, setProvider] = useState(browserStorage.getItem(PROVIDER_KEY) ?? '');
  const name = provider.trim();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name === '') browserStorage.removeItem(PROVIDER_KEY);
    else browserStorage.setItem(PROVIDER_KEY, name);
    onSubmit({ account, month, resolution, provider: isName(name) ? name : undefined });
  };
  return (
    <form className="form focus-form" onSubmit={submit}>
      <p className="form-title">FOCUS 1.2</p>
      <p className="hint">
        The FinOps standard for cost data. The file has all usage of the account in a month, without the filters of this
        view.
      </p>
      <Select
        label="Month"
        value={String(month)}
        choices={monthChoices(now, suggested)}
        onChange={(chosen) => setMonth(Number(chosen))}
      />
      <Select
        label="Rows"
        value={resolution}
        choices={[
          { value: 'daily', label: 'One per resource and day' },
          { value: 'hourly', label: 'One per resource and hour' },
        ]}
        onChange={setResolution}
      />
      <Field
        label="Provider name"
        value={provider}
        maxLength={256}
        placeholder={DEFAULT_PROVIDER}
        onChange={setProvider}
      />
      <PrimaryButton type="submit">Export FOCUS</PrimaryButton>
    </form>
  );
}

const FORMATS: Readonly<Record<string, (shared: SharedQuery) => string>> = {
  curl: curlCommand,
  'Command line': cliCommand,
};

/** Copies the query of the table as a command. The command is also visible, because a page without HTTPS has no clipboard. */
export function CopyMenu(shared: Omit<SharedQuery, 'baseUrl'>) {
  return <Popover label="Copy as">{() => <CopyPanel shared={{ ...shared, baseUrl: serviceAddress() }} />}</Popover>;
}

function CopyPanel({ shared }: { readonly shared: SharedQuery }) {
  const [chosen, setChosen] = useState('curl');
  const text = FORMATS[chosen]?.(shared) ?? '';
  return (
    <div className="copy">
      <Segments legend="Format" choices={Object.keys(FORMATS)} chosen={chosen} onChoose={setChosen} />
      <pre>
        <code>{text}</code>
      </pre>
      <div className="choices-end">
        <span className="hint">Set METERLINE_API_KEY to your API key before you run this.</span>
        <CopyButton key={text} text={text} className="primary" />
      </div>
    </div>
  );
}

interface ExportedFile {
  readonly name: string;
  readonly content: Blob;
}

/** The rows of a file: one row for each group, or one row for each group and bucket. */
type TableKind = 'groups' | 'series';

interface TableSource {
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
  const [from, to] = [query.startTime, query.endTime].map((time) => String(time).slice(0, 10));
  const parts = [
    account === ALL_ACCOUNTS ? 'all-accounts' : account,
    from,
    'to',
    to,
    ...view.groupBy,
    ...(kind === 'series' ? ['series'] : []),
  ];
  return { name: fileName(parts), content: new Blob([...lines], { type: CSV_TYPE }) };
}

/** Writes a month in the FOCUS 1.2 format. The file is byte for byte the output of `meterline export focus`. */
async function focusFile(
  client: MeterlineClient,
  query: FocusQuery,
  onRead: (rows: number) => void,
  signal: AbortSignal,
): Promise<ExportedFile> {
  const open = () => {
    // Use a blob for each part. Browsers may store blobs on disk, so a large file does not fill the memory.
    const parts = [new Blob([focusCsvHeading()])];
    let rows = 0;
    const write = (charges: Parameters<typeof focusCsvLines>[0]) => {
      parts.push(new Blob([focusCsvLines(charges)]));
      rows += charges.length;
      onRead(rows);
    };
    return { parts, write };
  };
  const { sink } = await exportFocus(client, query, open, { signal });
  const month = formatTimestamp(query.month).slice(0, 7);
  return { name: fileName([query.account, month, 'focus']), content: new Blob(sink.parts, { type: CSV_TYPE }) };
}

/** Replaces characters that a file system may not allow. */
function fileName(parts: readonly (string | undefined)[]): string {
  return `${['meterline', ...parts].join('-').replace(/[^\w.-]+/g, '_')}.csv`;
}
