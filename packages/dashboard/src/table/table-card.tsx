/** The card with the table of groups: its search, pages and exports, and its state while pages are being read. */
import { counted, grouped } from '@meterline/catalog/plain';
import { ALL_ACCOUNTS, MOST_RESTARTS } from '@meterline/client';
import { useCallback, useLayoutEffect, useRef, useState } from 'react';
import type { ShownAccount } from '../account/use-account-view.js';
import { localized } from '../breakdown/texts.js';
import { Control } from '../controls/controls.js';
import { Select } from '../controls/lists.js';
import { CopyMenu, ExportMenu } from '../export/export-menu.js';
import { rowEventsQuery } from '../metrics/query.js';
import { useSession } from '../shell/session.js';
import { ProblemPanel, Skeleton } from '../states/panels.js';
import { isCursorGone } from '../states/problem.js';
import { changeView, replaceView } from '../view/address.js';
import { PAGE_SIZES, type View } from '../view/view.js';
import { CostTable } from './cost-table.js';
import { EventsPanel, type EventsPanelProps } from './events-panel.js';
import type { Row } from './rows.js';

/** The row that is open, as it was when it was opened. */
type Explained = Pick<EventsPanelProps, 'name' | 'cost' | 'query'>;

export function TableCard({ shown }: { readonly shown: ShownAccount }) {
  const { account, role, view, first, rows, isReading, needsAll, further, query, previousQuery } = shown;
  const [explained, setExplained] = useState<Explained>();
  const session = useSession();
  const { refetch: readFirst } = shown.result;
  const { refetch: readFurther } = further;
  const cursor = first?.meta.nextCursor;
  const readAgain = useCallback(async () => {
    // The service's memory may have the cursor that is too old.
    session.maxAgeSeconds = 0;
    const { data } = await readFirst();
    // With another cursor the further pages are other queries.
    if (data?.first.meta.nextCursor === cursor) await readFurther();
  }, [session, readFirst, readFurther, cursor]);
  const [isRestarting, setRestarting] = useState(false);
  const restarts = useRef({ of: '', count: 0 });
  const list = JSON.stringify([account, query]);
  // Before the problem is shown.
  useLayoutEffect(() => {
    if (restarts.current.of !== list) restarts.current = { of: list, count: 0 };
    if (!isCursorGone(further.error) || restarts.current.count === MOST_RESTARTS) return;
    restarts.current.count += 1;
    setRestarting(true);
    void readAgain().finally(() => setRestarting(false));
  }, [list, further.error, readAgain]);
  const isBusy = isRestarting || (isReading && !further.error);
  const explain = ({ labels, cost, entry }: Row) =>
    setExplained({ name: labels.join(', '), cost, query: rowEventsQuery(query, shown.shownView, entry) });
  const search = view.search.trim();
  const read = localized(grouped(String((first?.data.length ?? 0) + further.entries.length)));
  return (
    <section className="card" aria-label="Groups" aria-busy={shown.isStale || !first || isBusy}>
      <header className="card-header">
        <h2>Groups</h2>
        <div className="card-tools">
          <input
            type="search"
            className="field table-search"
            aria-label="Search in the table"
            placeholder="Search"
            value={view.search}
            onChange={({ target }) => changeView({ search: target.value, page: 1 }, replaceView)}
          />
          <CopyMenu {...{ account, query, previousQuery }} />
          <ExportMenu {...{ account, view, query, previousQuery }} now={shown.asOf} />
        </div>
      </header>
      {!first || isBusy ? (
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
            <ProblemPanel
              error={further.error}
              account={account}
              onRetry={() => void (isCursorGone(further.error) ? readAgain() : readFurther())}
            />
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
              {...{ shown, first }}
              onExplain={shown.seesWorkspaces && account !== ALL_ACCOUNTS ? explain : undefined}
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
  const range = `${grouped(String(from))}–${grouped(String(to))} of ${hasMore ? 'more than ' : ''}${counted(known, 'group')}`;
  const place = `Page ${grouped(String(page))}${hasMore ? '' : ` of ${grouped(String(pages))}`}`;
  return (
    <nav className="paging" aria-label="Pages of the table">
      <span role="status">{to < from ? 'No groups' : localized(`${place} · ${range}`)}</span>
      <Select
        label="Rows on a page"
        labelled="hidden"
        value={String(pageSize)}
        choices={PAGE_SIZES.map((size) => ({ value: String(size), label: `${size} rows` }))}
        onChange={(text) =>
          changeView({ pageSize: PAGE_SIZES.find((size) => String(size) === text) ?? pageSize, page: 1 })
        }
      />
      <Control disabled={page === 1} onClick={() => changeView({ page: page - 1 })}>
        Previous
      </Control>
      <Control disabled={to >= known && !hasMore} onClick={() => changeView({ page: page + 1 })}>
        Next
      </Control>
    </nav>
  );
}
