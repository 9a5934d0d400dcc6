import type { MetricsAnswer, MetricsEntry, MetricsQuery } from '@meterline/client';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Popover } from '../controls/popover.js';
import { useSession } from '../shell/session.js';
import { type PreviousCosts, rowOf, searchRows, sortRows } from '../table/rows.js';
import type { View } from '../view/view.js';
import { type CsvSource, seriesCsv, tableCsv } from './metrics-csv.js';

interface ExportMenuProps {
  readonly account: string;
  readonly view: View;
  readonly query: MetricsQuery;
  /** Undefined while comparing: not read yet. */
  readonly previous: PreviousCosts;
}

const KINDS = {
  groups: { label: 'The table', hint: 'a line for each group', write: tableCsv },
  series: { label: 'The series', hint: 'a line for each group and bar', write: seriesCsv },
} as const;
type Kind = keyof typeof KINDS;

/** Reads every page again, so that the file shows one moment, and writes the rows that the table shows. */
export function ExportMenu({ account, view, query, previous }: ExportMenuProps) {
  const { client } = useSession();
  const [count, setCount] = useState(0);
  const { mutate, isPending, isError, error } = useMutation({
    mutationFn: async (kind: Kind) => {
      setCount(0);
      const entries: MetricsEntry[] = [];
      let answer: MetricsAnswer | undefined;
      for await (const page of client.metricsPages(account, query)) {
        entries.push(...page.data);
        answer ??= page;
        setCount(entries.length);
      }
      if (!answer) return;
      const all = entries.map((entry) => rowOf(entry, view.groupBy, previous));
      const rows = searchRows(sortRows(all, view.sort), view.search);
      const groupBy = query.groupBy ?? [];
      const source: CsvSource = { rows, groupBy, answer, isCompared: previous !== undefined };
      download(fileName(account, view, query, kind), KINDS[kind].write(source));
    },
  });
  if (isPending) return <span className="control">Exporting, {count} groups…</span>;
  return (
    <>
      {isError && (
        <span className="fault" role="alert">
          Export failed: {error.message}
        </span>
      )}
      <Popover
        label="Export CSV"
        disabledReason={view.compare && previous === undefined ? 'The period before is still being read.' : undefined}
      >
        {(close) => (
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
        )}
      </Popover>
    </>
  );
}

function fileName(account: string, { groupBy }: View, { startTime, endTime }: MetricsQuery, kind: Kind): string {
  const day = (time: MetricsQuery['startTime']) => String(time).slice(0, 10);
  const parts = ['meterline', account, day(startTime), 'to', day(endTime), ...groupBy];
  if (kind === 'series') parts.push('series');
  // File systems allow fewer characters than names do.
  return `${parts.join('-').replace(/[^\w.-]+/g, '_')}.csv`;
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
