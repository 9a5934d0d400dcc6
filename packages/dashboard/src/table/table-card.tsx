/** Renders the card with the table of groups: search, pages, exports, and the progress of loading pages. */
import { counted, grouped, PAGE_SIZES } from '@meterline/catalog/plain';
import { ALL_ACCOUNTS, MAX_RESTARTS } from '@meterline/client';
import { useCallback, useLayoutEffect, useRef, useState } from 'react';
import { useComparison } from '../account/use-comparison.js';
import type { Costs } from '../account/use-costs.js';
import { OutlineButton } from '../controls/controls.js';
import { Select } from '../controls/lists.js';
import { CopyMenu, ExportMenu } from '../export/export-menu.js';
import { localized } from '../format/locale.js';
import { rowEventsQuery } from '../metrics/query.js';
import { useSession } from '../shell/session.js';
import { ComparisonProblem, ProblemPanel, Skeleton } from '../states/panels.js';
import { isCursorExpired } from '../states/problem.js';
import { changeView, replaceView } from '../view/address.js';
import type { View } from '../view/view.js';
import { CostTable } from './cost-table.js';
import { EventsPanel, type EventsPanelProps } from './events-panel.js';
import type { Row } from './rows.js';
import { useTable } from './use-table.js';

/** The row whose events are open, as it was when the user opened it. */
type OpenRow = Pick<EventsPanelProps, 'name' | 'cost' | 'query'>;

export function TableCard({ costs }: { readonly costs: Costs }) {
  const { account, role, view, first, query } = costs;
  const comparison = useComparison(costs);
  const table = useTable(costs, comparison);
  const { rows, isReading, needsAll, further, previousGroups } = table;
  const { previousQuery } = comparison;
  const [openRow, setOpenRow] = useState<OpenRow>();
  const session = useSession();
  const { refetch: readFirst } = costs.result;
  const { refetch: readFurther } = further;
  const cursor = first?.meta.nextCursor;
  const restart = useCallback(async () => {
    // A cached response of the service may contain the expired cursor, so bypass the cache.
    session.maxAgeSeconds = 0;
    const { data } = await readFirst();
    // If the cursor is new, the further pages are new queries, which start by themselves.
    if (data?.first.meta.nextCursor === cursor) await readFurther();
  }, [session, readFirst, readFurther, cursor]);
  const [isRestarting, setRestarting] = useState(false);
  const restarts = useRef({ list: '', count: 0 });
  const list = JSON.stringify([account, query]);
  // A layout effect runs before the browser paints, so the error is never visible.
  useLayoutEffect(() => {
    if (restarts.current.list !== list) restarts.current = { list, count: 0 };
    if (!isCursorExpired(further.error) || restarts.current.count === MAX_RESTARTS) return;
    restarts.current.count += 1;
    setRestarting(true);
    void restart().finally(() => setRestarting(false));
  }, [list, further.error, restart]);
  const isBusy = isRestarting || (isReading && !further.error);
  const explain = ({ labels, cost, entry }: Row) =>
    setOpenRow({ name: labels.join(', '), cost, query: rowEventsQuery(query, costs.shownView, entry) });
  const search = view.search.trim();
  const loaded = localized(grouped(String((first?.data.length ?? 0) + further.entries.length)));
  return (
    <section className="card" aria-label="Groups" aria-busy={costs.isStale || !first || isBusy}>
      <header className="card-header">
        <h2>Groups</h2>
        <div className="card-tools">
          <input
            type="search"
            className="field table-search"
            aria-label="Search groups"
            placeholder="Search"
            value={view.search}
            onChange={({ target }) => changeView({ search: target.value, page: 1 }, replaceView)}
          />
          <CopyMenu {...{ account, query, previousQuery }} />
          <ExportMenu {...{ account, view, query, previousQuery }} now={costs.asOf} />
        </div>
      </header>
      {previousGroups.error && !comparison.error && (
        <ComparisonProblem error={previousGroups.error} account={account} />
      )}
      {!first || isBusy ? (
        <>
          {first && needsAll && (
            <p className="progress" role="status">
              Loading all groups: {loaded} so far…
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
              onRetry={() => void (isCursorExpired(further.error) ? restart() : readFurther())}
            />
          )}
          {needsAll && further.hasMore && (
            <p className="progress">There are more groups. The table has only the {loaded} most expensive ones.</p>
          )}
          {search !== '' && rows.length === 0 && (
            <p className="progress" role="status">
              No groups match “{search}”.
            </p>
          )}
          <section className="scroller" aria-label="Table of groups">
            <CostTable
              {...{ costs, comparison, table, first }}
              onExplain={costs.seesWorkspaces && account !== ALL_ACCOUNTS ? explain : undefined}
            />
          </section>
          {role === 'member' && account !== ALL_ACCOUNTS && (
            <p className="members-note">Account admins can view the events behind each amount.</p>
          )}
          <Paging view={{ ...view, page: table.page }} known={rows.length} hasMore={further.hasMore && !needsAll} />
        </>
      )}
      {openRow && <EventsPanel {...openRow} account={account} onClose={() => setOpenRow(undefined)} />}
    </section>
  );
}

interface PagingProps {
  readonly view: View;
  readonly known: number;
  readonly hasMore: boolean;
}

function Paging({ view, known, hasMore }: PagingProps) {
  const { page, pageSize } = view;
  const from = (page - 1) * pageSize + 1;
  const to = Math.min(page * pageSize, known);
  const pages = Math.ceil(known / pageSize);
  if (view.search === '' && known <= PAGE_SIZES[0] && !hasMore && page === 1) return null;
  const range = `${grouped(String(from))}–${grouped(String(to))} of ${hasMore ? 'more than ' : ''}${counted(known, 'group')}`;
  const position = `Page ${grouped(String(page))}${hasMore ? '' : ` of ${grouped(String(pages))}`}`;
  return (
    <nav className="paging" aria-label="Pages of the table">
      <span role="status">{to < from ? 'No groups' : localized(`${position} · ${range}`)}</span>
      <Select
        label="Rows per page"
        labelPosition="hidden"
        value={String(pageSize)}
        choices={PAGE_SIZES.map((size) => ({ value: String(size), label: `${size} rows` }))}
        onChange={(text) =>
          changeView({ pageSize: PAGE_SIZES.find((size) => String(size) === text) ?? pageSize, page: 1 })
        }
      />
      <OutlineButton disabled={page === 1} onClick={() => changeView({ page: page - 1 })}>
        Previous
      </OutlineButton>
      <OutlineButton disabled={to >= known && !hasMore} onClick={() => changeView({ page: page + 1 })}>
        Next
      </OutlineButton>
    </nav>
  );
}
