/** The card with the table of groups: its search, pages and exports, and its state while pages are being read. */
import { type Role, sumDecimals } from '@meterline/catalog';
import { lazy, Suspense, useState } from 'react';
import type { ShownAccount } from '../account/use-account-view.js';
import { seriesColor } from '../chart/series-color.js';
import type { EventsPanelProps } from '../events/events-panel.js';
import { rowEventsQuery } from '../events/row-events.js';
import { ExportMenu } from '../export/export-menu.js';
import { CopyMenu } from '../share/copy-menu.js';
import { NotLoaded, ProblemPanel, TableSkeleton } from '../states/panels.js';
import { navigate, replaceView } from '../view/address.js';
import { PAGE_SIZES, type View } from '../view/view.js';
import { CostTable } from './cost-table.js';
import type { Row } from './rows.js';

/** Loaded when the first row is opened. */
const EventsPanel = lazy(() => import('../events/events-panel.js').catch(() => ({ default: NotLoaded })));

/** The row that is open, as it was when it was opened. */
type Explained = Pick<EventsPanelProps, 'name' | 'cost' | 'query'>;

interface TableCardProps {
  readonly account: string;
  readonly role: Role | undefined;
  readonly view: View;
  readonly shown: ShownAccount;
}

export function TableCard({ account, role, view, shown }: TableCardProps) {
  const { breakdown, first, rows, needsAll, further, query, compared, previous, previousCosts } = shown;
  const colorOf = (key: string) => {
    const rank = breakdown?.series.findIndex((series) => series.key === key) ?? -1;
    const series = breakdown?.series[rank];
    return series && seriesColor(series, rank);
  };
  const [explained, setExplained] = useState<Explained>();
  const explain = ({ labels, cost, values }: Row) =>
    setExplained({ name: labels.join(', '), cost, query: rowEventsQuery(query, shown.groupBy, values) });
  const from = (view.page - 1) * view.pageSize;
  const onPage = rows.slice(from, from + view.pageSize);
  const isComplete = needsAll ? !further.isFetching : onPage.length === view.pageSize || !further.hasMore;
  return (
    <section className="card" aria-label="Groups" aria-busy={shown.isStale || !first || !isComplete}>
      <header className="card-header">
        <h2>Groups</h2>
        <div className="card-tools">
          <input
            type="search"
            className="table-search"
            aria-label="Search in the table"
            placeholder="Search"
            value={view.search}
            onChange={({ target }) => replaceView({ ...view, search: target.value, page: 1 })}
          />
          <CopyMenu account={account} query={query} />
          <ExportMenu
            {...{ account, view, query }}
            previous={compared && previousCosts}
            isCompared={compared !== undefined}
            now={shown.asOf}
          />
        </div>
      </header>
      {!first || (!isComplete && !further.error) ? (
        <>
          {first && needsAll && (
            <p className="progress" role="status">
              Reading all groups: {first.data.length + further.entries.length} so far…
            </p>
          )}
          <TableSkeleton />
        </>
      ) : (
        <>
          {further.error && (
            <ProblemPanel error={further.error} account={account} onRetry={() => void further.refetch()} />
          )}
          {needsAll && further.hasMore && (
            <p className="progress">
              Only the {first.data.length + further.entries.length} most expensive groups were read; there are more.
            </p>
          )}
          <section className="scroller" aria-label="Groups and their figures">
            <CostTable
              {...{ view, colorOf }}
              rows={onPage}
              seesWorkspaces={role === 'admin'}
              onExplain={role === 'admin' ? explain : undefined}
              distance={compared?.distance}
              totals={{
                cost: first.summary.totalCost,
                usage: shown.usageUnit && first.summary.totalUsage,
                unit: shown.usageUnit,
                previousCost:
                  compared && previous
                    ? sumDecimals(previous.whole.data.map(({ summary }) => summary.cost))
                    : undefined,
              }}
            />
          </section>
          {role === 'member' && (
            <p className="members-note">An admin of the account can open the events behind each amount.</p>
          )}
          <Paging view={view} known={rows.length} hasMore={further.hasMore && !needsAll} />
        </>
      )}
      {explained && (
        <Suspense>
          <EventsPanel {...explained} account={account} onClose={() => setExplained(undefined)} />
        </Suspense>
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
  const { page, pageSize } = view;
  const from = (page - 1) * pageSize + 1;
  const to = Math.min(page * pageSize, known);
  const isLast = to >= known && !hasMore;
  if (view.search === '' && known <= PAGE_SIZES[0] && !hasMore && page === 1) return null;
  const resize = (text: string) => {
    const size = PAGE_SIZES.find((each) => String(each) === text);
    if (size) navigate({ ...view, pageSize: size, page: 1 });
  };
  return (
    <nav className="paging" aria-label="Pages of the table">
      <span role="status">
        {to < from ? 'No groups' : `${from}–${to} of ${hasMore ? `more than ${known}` : known} groups`}
      </span>
      <select aria-label="Rows on a page" value={pageSize} onChange={({ target }) => resize(target.value)}>
        {PAGE_SIZES.map((size) => (
          <option key={size} value={size}>
            {size} rows
          </option>
        ))}
      </select>
      <button type="button" disabled={page === 1} onClick={() => navigate({ ...view, page: page - 1 })}>
        Previous
      </button>
      <button type="button" disabled={isLast} onClick={() => navigate({ ...view, page: page + 1 })}>
        Next
      </button>
    </nav>
  );
}
