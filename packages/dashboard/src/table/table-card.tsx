/** The card with the table of groups: its page, its export, and its state while pages are being read. */
import { sumDecimals } from '@meterline/catalog';
import type { ShownAccount } from '../account/use-account-view.js';
import { paletteOf, seriesColor } from '../chart/palette.js';
import { ExportButton } from '../export/export-button.js';
import { useTheme } from '../shell/theme.js';
import { ProblemPanel, TableSkeleton } from '../states/panels.js';
import { navigate } from '../view/address.js';
import type { View } from '../view/view.js';
import { CostTable } from './cost-table.js';
import { isServerOrder, PAGE_ROWS } from './rows.js';

interface TableCardProps {
  readonly account: string;
  readonly view: View;
  readonly shown: ShownAccount;
}

export function TableCard({ account, view, shown }: TableCardProps) {
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
            <p className="progress">Only the {rows.length} most expensive groups are sorted; there are more.</p>
          )}
          <section className="scroller" aria-label="Groups and their figures">
            <CostTable
              {...{ view, colorOf }}
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
          <Paging view={view} known={rows.length} hasMore={further.hasMore} />
        </>
      )}
    </section>
  );
}

interface PagingProps {
  readonly view: View;
  /** Groups read so far. */
  readonly known: number;
  /** There are more that have not been read. */
  readonly hasMore: boolean;
}

function Paging({ view, known, hasMore }: PagingProps) {
  const { page } = view;
  const from = (page - 1) * PAGE_ROWS + 1;
  const to = Math.min(page * PAGE_ROWS, known);
  const isLast = to >= known && !hasMore;
  if (page === 1 && isLast) return null;
  return (
    <nav className="paging" aria-label="Pages of the table">
      <span role="status">
        {to < from ? 'No more groups' : `${from}–${to} of ${hasMore ? `more than ${known}` : known} groups`}
      </span>
      <button type="button" disabled={page === 1} onClick={() => navigate({ ...view, page: page - 1 })}>
        Previous
      </button>
      <button type="button" disabled={isLast} onClick={() => navigate({ ...view, page: page + 1 })}>
        Next
      </button>
    </nav>
  );
}
