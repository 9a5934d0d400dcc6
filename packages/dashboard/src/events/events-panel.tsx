/** Why a row says what it says: the events behind it. Loaded when the first row is opened. */
import { compareDecimals, counted, type DecimalText, formatUsdExact, sumDecimals } from '@meterline/catalog';
import type { EventAnswer, EventPage, EventsQuery } from '@meterline/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useId, useRef } from 'react';
import { useSession } from '../shell/session.js';
import { ProblemPanel, TableSkeleton } from '../states/panels.js';
import { EventsTable } from './events-table.js';
import { scopeText } from './row-events.js';
import '../styles/events.css';

const EVENTS_ON_PAGE = 100;

export interface EventsPanelProps {
  readonly account: string;
  /** What the row is called. */
  readonly name: string;
  /** What the row says, in USD. */
  readonly cost: DecimalText;
  readonly query: EventsQuery;
  readonly onClose: () => void;
}

export default function EventsPanel({ account, name, cost, query, onClose }: EventsPanelProps) {
  const { client } = useSession();
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const pages = useInfiniteQuery({
    queryKey: ['events', account, query],
    queryFn: ({ pageParam, signal }) =>
      readPage((cursor) => client.events(account, { ...query, limit: EVENTS_ON_PAGE, cursor }, { signal }), pageParam),
    initialPageParam: '',
    getNextPageParam: (last: EventPage) => last.meta.nextCursor || undefined,
  });
  useEffect(() => dialog.current?.showModal(), []);
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = pages;
  const events = data?.pages.flatMap((page) => page.data);
  return (
    <dialog ref={dialog} className="events" aria-labelledby={titleId} onClose={onClose} closedby="any">
      <header className="card-header">
        <div>
          <h2 id={titleId}>Events behind {name}</h2>
          <p className="hint">{scopeText(query)}</p>
        </div>
        <button type="button" className="quiet" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {error && !isFetchingNextPage && (
        <ProblemPanel error={error} account={account} onRetry={() => void (events ? fetchNextPage() : refetch())} />
      )}
      {!events && !error && <TableSkeleton />}
      {events && (
        <>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and nothing in it can be focused */}
          <section className="scroller" aria-label="Events" tabIndex={0}>
            <EventsTable events={events} />
          </section>
          <footer className="events-end">
            <p role="status">{sumText(events, cost, hasNextPage)}</p>
            {hasNextPage && (
              <button
                type="button"
                className="control"
                disabled={isFetchingNextPage}
                onClick={() => void fetchNextPage()}
              >
                {isFetchingNextPage ? 'Reading…' : 'More events'}
              </button>
            )}
          </footer>
        </>
      )}
    </dialog>
  );
}

/** Goes on over pages without events: each looks through a part of what the account has. */
async function readPage(ask: (cursor: string) => Promise<EventPage>, from: string): Promise<EventPage> {
  let page = await ask(from);
  while (page.data.length === 0 && page.meta.hasMore) page = await ask(page.meta.nextCursor);
  return page;
}

function sumText(events: readonly EventAnswer[], cost: DecimalText, hasMore: boolean): string {
  const sum = sumDecimals(events.map((event) => event.cost));
  const shown = counted(events.length, 'event');
  if (hasMore) return `The first ${shown}: ${formatUsdExact(sum)} of ${formatUsdExact(cost)}.`;
  const added = `${shown}: ${formatUsdExact(sum)} in all`;
  if (compareDecimals(sum, cost) === 0) return `${added}, as in the table.`;
  return `${added} by now. The table, as of its last refresh, says ${formatUsdExact(cost)}.`;
}
