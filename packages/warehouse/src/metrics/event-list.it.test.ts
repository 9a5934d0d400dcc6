import { beforeAll, expect, it } from '@jest/globals';
import { pricedEvent } from '../../../../test/harness/events.js';
import { execute } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { insertUsageEvents } from '../events/usage-events.js';
import {
  EVENT_LIST_LIMITS,
  type EventListLimits,
  type EventListPage,
  type EventListQuery,
  type EventPlace,
  readEventList,
} from './event-list.js';

const START = Date.UTC(2025, 9, 1);
const HOUR = 3_600_000;
const EVENTS = 30;
/** One for each of three payloads of an event. */
const ROWS = 3 * EVENTS;
const id = (index: number) => `018f0000-0000-7000-8000-${String(index).padStart(12, '0')}`;

const database = testDatabase();
beforeAll(async () => {
  await execute(database.warehouse, 'SYSTEM STOP MERGES usage_events');
  const event = (index: number, revision: number) =>
    pricedEvent({
      eventId: id(index),
      timestamp: START + (index % 3) * HOUR + index,
      resourceName: index % 5 === 4 ? 'rare' : 'common',
      workspace: 'w'.repeat(200),
      // Every cost is the cost of two events in different hours.
      cost: BigInt(Math.floor(((index * 7) % EVENTS) / 2)),
      revision,
    });
  for (const revision of [0, 1, 2]) {
    const events = Array.from({ length: EVENTS }, (_, index) => event(index, revision));
    await insertUsageEvents(database.warehouse, events);
  }
});

interface Requested {
  readonly limit?: number;
  readonly limits?: Partial<EventListLimits>;
  readonly filters?: EventListQuery['filters'];
  readonly orderBy?: EventListQuery['orderBy'];
  readonly order?: EventListQuery['order'];
}

const DEFAULTS = { accountId: 'acme', filters: {}, includesVoided: false, limit: 1_000 };
const OLDEST_FIRST = { orderBy: 'timestamp', order: 'asc' } as const;

/** The ids on each page of a list, and how many payloads of each event are shown. */
async function allEvents({ limits, ...requested }: Requested) {
  const pages: string[][] = [];
  const costs: number[] = [];
  const histories = new Set<number>();
  let after: EventPlace | undefined;
  do {
    const window = { startTime: START, endTime: START + 24 * HOUR };
    const query = { ...DEFAULTS, ...OLDEST_FIRST, ...requested, window, after };
    const page: EventListPage | undefined = await readEventList(database.warehouse, query, {
      ...EVENT_LIST_LIMITS,
      ...limits,
    });
    if (!page) throw new Error('too many rows to sort');
    pages.push(page.events.map(({ newest }) => newest.id));
    for (const { newest, replaced } of page.events) {
      histories.add(replaced.length);
      costs.push(Number(newest.cost));
    }
    after = page.next;
  } while (after);
  return { pages, ids: pages.flat(), costs, histories: [...histories] };
}

const RARE = { resource_name: ['rare'] };

it('a page of events ends after a number of rows, however few of them the filters select, and all pages have every event once', async () => {
  const whole = await allEvents({});
  expect([whole.pages.length, whole.ids.length, new Set(whole.ids).size]).toEqual([1, EVENTS, EVENTS]);
  const rare = await allEvents({ filters: RARE });
  expect([rare.pages.length, rare.ids]).toEqual([1, [9, 24, 4, 19, 14, 29].map(id)]);
  for (const examined of [7, ROWS - 1, ROWS, ROWS + 1]) {
    const bounded = await allEvents({ filters: RARE, limits: { examined } });
    expect(bounded.pages.length).toBeGreaterThanOrEqual(Math.floor(ROWS / (examined + 3)));
    expect(bounded.ids).toEqual(rare.ids);
    if (examined === 7) expect(bounded.pages).toContainEqual([]);
    expect((await allEvents({ limits: { examined }, limit: 11 })).ids).toEqual(whole.ids);
  }
});

it('a page of events has fewer events when their histories are long, and each history is whole', async () => {
  const { pages, ids, histories } = await allEvents({ limits: { payloads: 31 } });
  expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(10);
  expect([ids, histories]).toEqual([(await allEvents({})).ids, [2]]);
  // Never fewer than one event.
  expect((await allEvents({ limits: { payloads: 1 } })).ids).toHaveLength(EVENTS);
});

it('a page of events has fewer events when their names are long', async () => {
  const { pages } = await allEvents({ limits: { textLength: 5_000 } });
  // Three payloads of 206 characters each.
  expect(pages.map((page) => page.length)).toEqual([8, 8, 8, 6]);
  const single = await allEvents({ filters: RARE, limits: { textLength: 1 } });
  expect(single.pages.map((page) => page.length)).toEqual([1, 1, 1, 1, 1, 1]);
});

it('each order of the list has every event once on pages of any size, and descending is the reverse of ascending', async () => {
  for (const orderBy of ['timestamp', 'cost'] as const) {
    const ascending = await allEvents({ orderBy });
    const descending = await allEvents({ orderBy, order: 'desc' });
    expect(new Set(ascending.ids).size).toBe(EVENTS);
    expect(descending.ids).toEqual([...ascending.ids].reverse());
    if (orderBy === 'cost') expect(ascending.costs).toEqual([...ascending.costs].sort((a, b) => a - b));
    for (const order of ['asc', 'desc'] as const) {
      const { ids } = order === 'asc' ? ascending : descending;
      const bounded = await allEvents({ orderBy, order, limit: 11, limits: { examined: 40, payloads: 31 } });
      expect(bounded.ids).toEqual(ids);
      const { ids: rare } = await allEvents({ orderBy, order, filters: RARE, limit: 2, limits: { examined: 20 } });
      expect(rare).toEqual(ids.filter((each) => Number(each.slice(-12)) % 5 === 4));
    }
  }
});

it('the list by cost sorts at most a number of rows, whatever the filters and the page', async () => {
  const window = { startTime: START, endTime: START + 24 * HOUR };
  const query = { ...DEFAULTS, order: 'asc', window, filters: RARE, after: undefined } as const;
  for (const [orderBy, sorted, isListed] of [
    ['cost', ROWS - 1, false],
    ['cost', ROWS, true],
    ['timestamp', 1, true],
  ] as const) {
    const page = await readEventList(database.warehouse, { ...query, orderBy }, { ...EVENT_LIST_LIMITS, sorted });
    expect(page !== undefined).toBe(isListed);
  }
});
