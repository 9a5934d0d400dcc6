/** Reads all events that an amount was computed from, each event once. */
import { DEFAULT_EVENTS_PAGE, type EventPage, type EventResponse, type EventsQuery } from '@meterline/catalog';
import { COST_SCALE, decimalOfNumberText, toScaled } from '@meterline/catalog/plain';
import type { MeterlineClient, PageOptions } from './client.js';

export interface AllEventsOptions extends PageOptions {
  /** Called with each page of the API once it is read. */
  readonly onPage?: ((page: EventPage) => void) | undefined;
}

/**
 * Iterates over all pages of a query. Each event is on one page. If the query sorts by cost, an event whose cost changes between two
 * requests could be on two pages of the API, or on none. This function then reads all events by timestamp, keeps them in memory, and sorts
 * them at the end.
 * @throws MeterlineError if the query sorts by cost and the window has too many events to sort
 */
export async function* allEvents(
  client: Pick<MeterlineClient, 'events' | 'eventsPages'>,
  account: string,
  query: EventsQuery,
  { onPage, ...options }: AllEventsOptions = {},
): AsyncGenerator<EventPage> {
  const { orderBy, order, limit = DEFAULT_EVENTS_PAGE } = query;
  const isByCost = orderBy === 'cost';
  // Let the API reject a window that has too many events to sort, because only the API knows their number.
  if (isByCost) await client.events(account, { ...query, limit: 1 }, options);
  const found: { readonly event: EventResponse; readonly cost: bigint }[] = [];
  for await (const page of client.eventsPages(account, { ...query, orderBy: 'timestamp' }, options)) {
    onPage?.(page);
    if (!isByCost) yield page;
    else for (const event of page.data) found.push({ event, cost: costOf(event) });
  }
  // Events of the same cost keep their order by timestamp.
  found.sort((a, b) => Number(order === 'desc' ? b.cost - a.cost : a.cost - b.cost));
  for (let at = 0; isByCost && (at === 0 || at < found.length); at += limit) {
    const data = found.slice(at, at + limit).map(({ event }) => event);
    yield { data, meta: { hasMore: at + limit < found.length, nextCursor: '' } };
  }
}

function costOf({ cost }: EventResponse): bigint {
  return toScaled(decimalOfNumberText(cost), COST_SCALE);
}
