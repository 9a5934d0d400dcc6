/** The card with the table of groups: its search, pages and exports, and its state while pages are being read. */
import { counted, grouped, type Role, sumDecimals } from '@meterline/catalog';
import { ALL_ACCOUNTS } from '@meterline/client';
import { useState } from 'react';
import type { ShownAccount } from '../account/use-account-view.js';
import { seriesColor } from '../breakdown/breakdown.js';
import { localized } from '../breakdown/texts.js';
import { Select } from '../controls/controls.js';
import { EventsPanel, type EventsPanelProps } from '../events/events-panel.js';
import { rowEventsQuery } from '../events/row-events.js';
import { CopyMenu } from '../export/copy-menu.js';
import { ExportMenu } from '../export/export-menu.js';
import { ProblemPanel, Skeleton } from '../states/panels.js';
import { navigate, replaceView } from '../view/address.js';
import { PAGE_SIZES, type View } from '../view/view.js';
import { CostTable } from './cost-table.js';
import type { Row } from './rows.js';

/** The row that is open, as it was when it was opened. */
type Explained = Pick<EventsPanelProps, 'name' | 'cost' | 'query'>;

interface TableCardProps {
  readonly account: string;
  readonly role: Role | undefined;
  readonly view: View;
  readonly shown: ShownAccount;
}

export function TableCard({ account, role, view, shown }: TableCardProps) {
  const { breakdown, first, rows, from, isReading, needsAll, further, query, compared, previousQuery } = shown;
  const colorOf = (key: string) => {
    const rank = breakdown?.series.findIndex((series) => series.key === key) ?? -1;
    const series = breakdown?.series[rank];
    return series && seriesColor(series, rank);
  };
  const [explained, setExplained] = useState<Explained>();
  const explain = ({ labels, cost, values }: Row) =>
    setExplained({ name: labels.join(', '), cost, query: rowEventsQuery(query, shown.groupBy, values) });
  const search = view.search.trim();
  const read = localized(grouped(String((first?.data.length ?? 0) + further.entries.length)));
  const found = search !== '' && rows.length > 0;
  return (
    <section className="card" aria-label="Groups" aria-busy={shown.isStale || !first || isReading}>
      <header className="card-header">
        <h2>Groups</h2>
        <div className="card-tools">
          <input
            type="search"
            className="field table-search"
            aria-label="Search in the table"
            placeholder="Search"
            value={view.search}
            onChange={({ target }) => replaceView({ ...view, search: target.value, page: 1 })}
          />
          <CopyMenu {...{ account, query, previousQuery }} comparison={view.compare} />
          <ExportMenu {...{ account, view, query, previousQuery }} now={shown.asOf} />
        </div>
      </header>
      {!first || (isReading && !further.error) ? (
        <>
          {first && needsAll && (
            <p className="progress" role="status">
              Reading all groups: {read} so far…
            </p>
          )}
          <Skeleton of="table" />
        </>
      ) : (
        <>
          {further.error && (
            <ProblemPanel error={further.error} account={account} onRetry={() => void further.refetch()} />
          )}
          {needsAll && further.hasMore && (
            <p className="progress">Only the {read} most expensive groups were read; there are more.</p>
          )}
          {search !== '' && rows.length === 0 && (
            <p className="progress" role="status">
              No group’s name contains “{search}”.
            </p>
          )}
          <section className="scroller" aria-label="Groups and their figures">
            <CostTable
              {...{ view, colorOf }}
              rows={rows.slice(from, from + view.pageSize)}
              seesWorkspaces={role === 'admin'}
              onExplain={role === 'admin' && account !== ALL_ACCOUNTS ? explain : undefined}
              distance={compared?.distance}
              isComparing={shown.isComparing}
              found={
                found
                  ? {
                      label: `${localized(counted(rows.length, 'group'))} found`,
                      cost: sumDecimals(rows.map(({ cost }) => cost)),
                    }
                  : undefined
              }
              totals={{
                cost: first.summary.totalCost,
                usage: shown.usageUnit && first.summary.totalUsage,
                unit: shown.usageUnit,
                previousCost: shown.previousTotals?.cost,
              }}
            />
          </section>
          {role === 'member' && account !== ALL_ACCOUNTS && (
            <p className="members-note">An admin of the account can open the events behind each amount.</p>
          )}
          <Paging view={{ ...view, page: shown.page }} known={rows.length} hasMore={further.hasMore && !needsAll} />
        </>
      )}
      {explained && <EventsPanel {...explained} account={account} onClose={() => setExplained(undefined)} />}
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
  const pages = Math.ceil(known / pageSize);
  if (view.search === '' && known <= PAGE_SIZES[0] && !hasMore && page === 1) return null;
  const show = (change: Partial<View>) => () => navigate({ ...view, ...change });
  const range = `${grouped(String(from))}–${grouped(String(to))} of ${hasMore ? 'more than ' : ''}${counted(known, 'group')}`;
  const shown = localized(range);
  return (
    <nav className="paging" aria-label="Pages of the table">
      <span role="status">{to < from ? 'No groups' : `Page ${page}${hasMore ? '' : ` of ${pages}`} · ${shown}`}</span>
      <Select
        label="Rows on a page"
        labelled="hidden"
        value={String(pageSize)}
        choices={PAGE_SIZES.map((size) => ({ value: String(size), label: `${size} rows` }))}
        onChange={(text) => show({ pageSize: PAGE_SIZES.find((size) => String(size) === text) ?? pageSize, page: 1 })()}
      />
      <button type="button" className="control" disabled={page === 1} onClick={show({ page: page - 1 })}>
        Previous
      </button>
      <button type="button" className="control" disabled={to >= known && !hasMore} onClick={show({ page: page + 1 })}>
        Next
      </button>
    </nav>
  );
}
