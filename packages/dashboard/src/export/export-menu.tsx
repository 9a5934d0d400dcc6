import { type EpochMs, parseTimestamp } from '@meterline/catalog';
import type { FocusQuestion } from '@meterline/client/focus';
import { useMutation } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { Popover } from '../controls/popover.js';
import { useSession } from '../shell/session.js';
import { NotLoaded } from '../states/panels.js';
import type { ExportedFile, TableKind, TableSource } from './exports.js';

/** Loaded when the menu opens: few people export in each visit. */
const FocusForm = lazy(() => import('./focus-form.js').catch(() => ({ default: NotLoaded })));

interface ExportMenuProps extends TableSource {
  readonly isCompared: boolean;
  readonly now: EpochMs;
}

const KINDS = {
  groups: { label: 'The table', hint: 'a line for each group' },
  series: { label: 'The series', hint: 'a line for each group and bar' },
} as const satisfies Record<TableKind, unknown>;

export function ExportMenu({ isCompared, now, ...source }: ExportMenuProps) {
  const { client } = useSession();
  const { account, query, previous } = source;
  const [read, setRead] = useState('');
  const { mutate, isPending, isError, error } = useMutation({
    mutationFn: async (wanted: TableKind | FocusQuestion) => {
      setRead('');
      const { focusFile, tableFile } = await import('./exports.js');
      const file =
        typeof wanted === 'string'
          ? await tableFile(client, source, wanted, (groups) => setRead(`, ${groups} groups`))
          : await focusFile(client, wanted, (rows) => setRead(`, ${rows} rows`));
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
      <Popover
        label="Export CSV"
        disabledReason={isCompared && previous === undefined ? 'The period before is still being read.' : undefined}
      >
        {(close) => (
          <>
            <ul className="menu">
              {(['groups', 'series'] as const).map((kind, position) => (
                <li key={kind}>
                  <button
                    type="button"
                    data-autofocus={position === 0 || undefined}
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
            <Suspense fallback={<div className="focus-form-room" />}>
              <FocusForm
                {...{ account, now }}
                during={(parseTimestamp(String(query.endTime)) ?? now) - 1}
                onSubmit={(question) => {
                  mutate(question);
                  close();
                }}
              />
            </Suspense>
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
