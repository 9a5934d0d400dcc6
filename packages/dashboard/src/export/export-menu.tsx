import { bucketStart, counted, type EpochMs, isName, parseTimestamp } from '@meterline/catalog';
import { ALL_ACCOUNTS } from '@meterline/client';
import { DEFAULT_PROVIDER, type FocusQuestion } from '@meterline/client/focus';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { localized } from '../breakdown/texts.js';
import { Field, Popover, Select } from '../controls/controls.js';
import { browserStorage } from '../embed/embedding.js';
import { monthChoices } from '../period/period-picker.js';
import { useSession } from '../shell/session.js';
import { type ExportedFile, focusFile, type TableKind, type TableSource, tableFile } from './exports.js';

interface ExportMenuProps extends TableSource {
  readonly now: EpochMs;
}

const KINDS = {
  groups: { label: 'The table', hint: 'a line for each group' },
  series: { label: 'The series', hint: 'a line for each group and bar' },
} as const satisfies Record<TableKind, unknown>;

export function ExportMenu({ now, ...source }: ExportMenuProps) {
  const { client } = useSession();
  const { account, query } = source;
  const [read, setRead] = useState('');
  const { mutate, isPending, isError, error } = useMutation({
    mutationFn: async (wanted: TableKind | FocusQuestion) => {
      setRead('');
      const file =
        typeof wanted === 'string'
          ? await tableFile(client, source, wanted, (groups) => setRead(`, ${localized(counted(groups, 'group'))}`))
          : await focusFile(client, wanted, (rows) => setRead(`, ${localized(counted(rows, 'row'))}`));
      download(file);
    },
  });
  if (isPending) return <span className="control">Exporting{read}…</span>;
  return (
    <>
      {isError && (
        <span className="fault" role="alert">
          Export failed: {error.message}
        </span>
      )}
      <Popover label="Export CSV">
        {(close) => (
          <>
            <ul className="menu">
              {(['groups', 'series'] as const).map((kind) => (
                <li key={kind}>
                  <button
                    type="button"
                    onClick={() => {
                      mutate(kind);
                      close();
                    }}
                  >
                    <span>{KINDS[kind].label}</span>
                    <span className="choice-hint">{KINDS[kind].hint}</span>
                  </button>
                </li>
              ))}
            </ul>
            {account !== ALL_ACCOUNTS && (
              <FocusForm
                {...{ account, now }}
                during={(parseTimestamp(String(query.endTime)) ?? now) - 1}
                onSubmit={(question) => {
                  mutate(question);
                  close();
                }}
              />
            )}
          </>
        )}
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
      <button type="submit" className="primary">
        Export FOCUS
      </button>
    </form>
  );
}
