/** What the table offers to take along: files, and its query for use elsewhere. */
import { bucketStart, counted, type EpochMs, isName, parseTimestamp } from '@meterline/catalog';
import { ALL_ACCOUNTS } from '@meterline/client';
import { DEFAULT_PROVIDER, type FocusQuestion } from '@meterline/client/focus';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { localized } from '../breakdown/texts.js';
import { CopyButton, Fault, Field, Popover, Primary, Segments } from '../controls/controls.js';
import { type Choice, Menu, Select } from '../controls/lists.js';
import { monthChoices } from '../period/period.js';
import { browserStorage } from '../shell/embedding.js';
import { useSession } from '../shell/session.js';
import { type ExportedFile, focusFile, type TableKind, type TableSource, tableFile } from './exports.js';
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
    mutationFn: async (wanted: TableKind | FocusQuestion) => {
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
      <Fault>{isError && `Export failed: ${error.message}`}</Fault>
      <Popover label="Export CSV">
        {(close) => {
          const start = (wanted: TableKind | FocusQuestion) => {
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
  readonly onSubmit: (question: FocusQuestion) => void;
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
export function CopyMenu(shared: Omit<SharedQuery, 'origin'>) {
  return <Popover label="Copy as">{() => <CopyPanel shared={{ ...shared, origin: location.origin }} />}</Popover>;
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
