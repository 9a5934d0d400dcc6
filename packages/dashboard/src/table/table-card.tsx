import { type EpochMs, sumDecimals } from '@meterline/catalog';
import { paletteOf, seriesColor } from '../chart/palette.js';
import { ExportButton } from '../export/export-button.js';
import { ProblemPanel } from '../states/problem-panel.js';
import { TableSkeleton } from '../states/skeleton.js';
import { useTheme } from '../theme/theme.js';
import type { useAccountView } from '../use-account-view.js';
import type { View } from '../view/view.js';
import { CostTable } from './cost-table.js';
import { PAGE_ROWS, Paging } from './paging.js';
import { isServerOrder } from './sort-rows.js';

interface TableCardProps {
  readonly account: string;
  readonly view: View;
  readonly navigate: (view: View) => void;
  readonly now: EpochMs;
  readonly shown: ReturnType<typeof useAccountView>;
}

export function TableCard({ account, view, navigate, shown }: TableCardProps) {
  const { breakdown, first, rows, further, query, before, previous, previousCosts } = shown;
  const palette = paletteOf(useTheme());
  const colorOf = (key: string) => {
    const rank = breakdown?.series.findIndex((series) => series.key === key) ?? -1;
    const series = breakdown?.series[rank];
    return series && seriesColor(series, rank, palette);
  };
  const from = (view.page - 1) * PAGE_ROWS;
  const onPage = rows.slice(from, from + PAGE_ROWS);
  const isComplete = isServerOrder(view.sort) ? onPage.length === PAGE_ROWS || !further.hasMore : !further.isFetching;
  return (
    <section className="card" aria-label="Groups" aria-busy={shown.isStale || !first || !isComplete}>
      <header className="card-header">
        <h2>Groups</h2>
        <ExportButton account={account} view={view} query={query} previous={before && previousCosts} />
      </header>
      {!first || (!isComplete && !further.error) ? (
        <>
          {first && !isServerOrder(view.sort) && (
            <p className="progress" role="status">
              Reading all groups to sort them: {rows.length} so far…
            </p>
          )}
          <TableSkeleton />
        </>
      ) : (
        <>
          {further.error && (
            <ProblemPanel error={further.error} account={account} onRetry={() => void further.refetch()} />
          )}
          {!isServerOrder(view.sort) && further.hasMore && (
            <p className="progress">Sorted among the {rows.length} groups that cost most; there are more.</p>
          )}
          <section className="scroller" aria-label="Groups and their figures">
            <CostTable
              {...{ view, navigate, colorOf }}
              rows={onPage}
              totals={{
                cost: first.summary.totalCost,
                usage: shown.usageUnit && first.summary.totalUsage,
                unit: shown.usageUnit,
                previousCost:
                  before && previous ? sumDecimals(previous.entries.map(({ summary }) => summary.cost)) : undefined,
              }}
            />
          </section>
          <Paging view={view} known={rows.length} hasMore={further.hasMore} navigate={navigate} />
        </>
      )}
    </section>
  );
}
