/** Renders two menus: one exports the table as a file, and the other one copies the query of the table as a command. */
import { bucketStart, type EpochMs, isName, parseTimestamp } from '@meterline/catalog/plain';
import { ALL_ACCOUNTS } from '@meterline/client';
import { DEFAULT_PROVIDER, type FocusQuery } from '@meterline/client/focus';
import { type FormEvent, useState } from 'react';
import { CopyButton, Field, Popover, PrimaryButton, Segments } from '../controls/controls.js';
import { type Choice, Menu, Select } from '../controls/lists.js';
import { monthChoices } from '../period/period.js';
import { serviceAddress } from '../shell/service.js';
import { browserStorage } from '../shell/storage.js';
import { Export, focusFile, type TableKind, type TableSource, tableFile } from './files.js';
import { cliCommand, curlCommand, type SharedQuery } from './snippets.js';

interface ExportMenuProps extends TableSource {
  readonly now: EpochMs;
}

const KINDS: readonly Choice<TableKind>[] = [
  { value: 'groups', label: 'Groups', hint: 'one row per group' },
  { value: 'series', label: 'Time series', hint: 'one row per group and bar' },
];

export function ExportMenu({ now, ...source }: ExportMenuProps) {
  const { account, query } = source;
  return (
    <Export>
      {(create) => (
        <Popover label="Export CSV">
          {(close) => {
            const start = (requested: TableKind | FocusQuery) => {
              create((job) =>
                typeof requested === 'string' ? tableFile(job, source, requested) : focusFile(job, requested),
              );
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
      )}
    </Export>
  );
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
