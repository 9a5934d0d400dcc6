/** Renders the events behind a row of the table of groups. */
import {
  compareDecimals,
  counted,
  type DecimalText,
  DIMENSIONS,
  formatUsage,
  priceText,
  replacedText,
  sumDecimals,
} from '@meterline/catalog/plain';
import type { EventPage, EventResponse, EventRevision, EventsQuery } from '@meterline/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { OutlineButton, Sheet } from '../controls/controls.js';
import { Select } from '../controls/lists.js';
import { Export, eventsFile } from '../export/files.js';
import { localized } from '../format/locale.js';
import { exactText, scopeText, valueLabel } from '../format/texts.js';
import { useSession } from '../shell/session.js';
import { ProblemPanel, RetryBanner, Skeleton } from '../states/panels.js';

const PAGE_SIZE = 100;

const ORDERS = [
  { value: 'oldest', label: 'Oldest first', orderBy: 'timestamp', order: 'asc' },
  { value: 'newest', label: 'Newest first', orderBy: 'timestamp', order: 'desc' },
  { value: 'highest', label: 'Highest cost first', orderBy: 'cost', order: 'desc' },
  { value: 'lowest', label: 'Lowest cost first', orderBy: 'cost', order: 'asc' },
] as const;

export interface EventsPanelProps {
  readonly account: string;
  readonly name: string;
  readonly cost: DecimalText;
  readonly query: EventsQuery;
  readonly onClose: () => void;
}

export function EventsPanel({ account, name, cost, query: selection, onClose }: EventsPanelProps) {
  const { client } = useSession();
  const [chosen, setChosen] = useState('oldest');
  const { orderBy, order } = ORDERS.find(({ value }) => value === chosen) ?? ORDERS[0];
  const query = { ...selection, orderBy, order };
  const pages = useInfiniteQuery({
    queryKey: ['events', account, query],
    queryFn: ({ pageParam: cursor, signal }) =>
      client.events(account, { ...query, limit: PAGE_SIZE, cursor }, { signal }),
    initialPageParam: '',
    getNextPageParam: (last: EventPage) => last.meta.nextCursor || undefined,
  });
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = pages;
  const events = data?.pages.flatMap((page) => page.data);
  return (
    <Sheet className="events" title={`Events behind ${name}`} hint={scopeText(query)} onClose={onClose}>
      <div className="card-tools events-tools">
        <Select label="Order" labelPosition="inside" value={chosen} choices={ORDERS} onChange={setChosen} />
        <Export>
          {(start) => (
            <OutlineButton onClick={() => start((job) => eventsFile(job, account, query))}>Export CSV</OutlineButton>
          )}
        </Export>
      </div>
      {error && !isFetchingNextPage && (
        <ProblemPanel error={error} account={account} onRetry={() => void (events ? fetchNextPage() : refetch())} />
      )}
      <RetryBanner />
      {!events && !error && <Skeleton of="table" />}
      {events && (
        <>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and nothing in it can be focused */}
          <section className="scroller" aria-label="Events" tabIndex={0}>
            <EventsTable events={events} />
          </section>
          <footer className="events-end">
            <p role="status">{sumText(events, cost, hasNextPage)}</p>
            {hasNextPage && (
              <OutlineButton disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
                {isFetchingNextPage ? 'Loading…' : 'Load more'}
              </OutlineButton>
            )}
          </footer>
        </>
      )}
    </Sheet>
  );
}

function sumText(events: readonly EventResponse[], cost: DecimalText, hasMore: boolean): string {
  const sum = sumDecimals(events.map((event) => event.cost));
  const shown = localized(counted(events.length, 'event'));
  if (hasMore) return `The first ${shown}: ${exactText(sum, undefined)} of ${exactText(cost, undefined)}.`;
  const added = `${shown}: ${exactText(sum, undefined)} in total`;
  if (compareDecimals(sum, cost) === 0) return `${added}, which matches the table.`;
  return `${added}. The table showed ${exactText(cost, undefined)} at its last refresh.`;
}

/** Shows each event, followed by the earlier payloads that it replaced. */
function EventsTable({ events }: { readonly events: readonly EventResponse[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Time (UTC) and event ID</th>
          <th scope="col">Resource</th>
          <th scope="col" className="number">
            Usage
          </th>
          <th scope="col" className="number">
            Price
          </th>
          <th scope="col" className="number">
            Cost (USD)
          </th>
        </tr>
      </thead>
      {events.map(({ eventId, history, ...newest }) => (
        <tbody key={`${newest.timestamp} ${eventId}`}>
          <tr>
            <th scope="row">
              {newest.timestamp.replace('T', ' ').replace('Z', '')}
              <code>{eventId}</code>
            </th>
            <PayloadCells payload={newest} />
          </tr>
          {history.map((replaced) => (
            <tr key={`${replaced.revision} ${replaced.priceRevision} ${replaced.priceBook}`} className="replaced">
              <th scope="row">{replacedText(replaced)}</th>
              <PayloadCells payload={replaced} />
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}

function PayloadCells({ payload }: { readonly payload: EventRevision }) {
  const { workspace, resourceName, resourceUuid, billingDimension, usage, cost, voided, price, priceBook } = payload;
  const { unit } = DIMENSIONS[billingDimension];
  const details = [
    workspace,
    valueLabel('billingDimension', billingDimension),
    valueLabel('resourceUuid', resourceUuid),
  ];
  return (
    <>
      <td>
        <span className="event-resource">{resourceName}</span>
        <span className="detail">{details.join(' · ')}</span>
      </td>
      <td className="number">{localized(formatUsage(usage, unit))}</td>
      <td className="number">
        {price ? localized(priceText(price, unit)) : 'unknown'}
        <span className="detail">
          price book {priceBook}
          {price && `, since ${price.effectiveFrom.slice(0, 10)}`}
        </span>
      </td>
      <td className="number">{voided ? 'voided' : exactText(cost, undefined)}</td>
    </>
  );
}
