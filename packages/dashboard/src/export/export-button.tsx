import type { MetricsEntry, MetricsQuery } from '@meterline/client';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { useSession } from '../shell/session.js';
import type { PreviousCosts } from '../table/rows.js';
import type { View } from '../view/view.js';
import { type CostCsvSource, costCsv } from './cost-csv.js';

interface ExportButtonProps {
  readonly account: string;
  readonly view: View;
  readonly query: MetricsQuery;
  /** Undefined while comparing: not read yet. */
  readonly previous: PreviousCosts;
}

/** Reads every page again, so that the file shows one moment. */
export function ExportButton({ account, view, query, previous }: ExportButtonProps) {
  const { client } = useSession();
  const [count, setCount] = useState(0);
  const { mutate, isPending, isError, error } = useMutation({
    mutationFn: async () => {
      setCount(0);
      const entries: MetricsEntry[] = [];
      let totalCost: CostCsvSource['totalCost'] | undefined;
      for await (const page of client.metricsPages(account, query)) {
        entries.push(...page.data);
        totalCost ??= page.summary.totalCost;
        setCount(entries.length);
      }
      if (totalCost === undefined) return;
      const groupBy = query.groupBy ?? [];
      const csv = costCsv({ entries, groupBy, keyBy: view.groupBy, totalCost, previous });
      download(fileName(account, view, query), csv);
    },
  });
  return (
    <span>
      {isError && (
        <span className="fault" role="alert">
          Export failed: {error.message}
        </span>
      )}
      <button
        type="button"
        className="control"
        disabled={isPending || (view.compare && previous === undefined)}
        onClick={() => mutate()}
      >
        {isPending ? `Exporting, ${count} groups…` : 'Export CSV'}
      </button>
    </span>
  );
}

function fileName(account: string, { groupBy }: View, { startTime, endTime }: MetricsQuery): string {
  const day = (time: MetricsQuery['startTime']) => String(time).slice(0, 10);
  const parts = ['meterline', account, day(startTime), 'to', day(endTime), ...groupBy];
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
