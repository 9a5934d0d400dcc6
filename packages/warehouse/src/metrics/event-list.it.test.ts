import { beforeAll, expect, it } from '@jest/globals';
import { pricedEvent } from '../../../../test/harness/events.js';
import { execute } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { EVENT_LIST_LIMITS, type EventListLimits, type EventPlace, readEventList } from './event-list.js';

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
  readonly filters?: Parameters<typeof readEventList>[1]['filters'];
}

/** The ids on each page of a list, and how many payloads of each event are shown. */
async function allEvents({ limit = 1_000, limits, filters = {} }: Requested) {
  const pages: string[][] = [];
  const histories = new Set<number>();
  let after: EventPlace | undefined;
  do {
    const window = { startTime: START, endTime: START + 24 * HOUR };
    const query = { accountId: 'acme', filters, window, includesVoided: false, after, limit };
    const page = await readEventList(database.warehouse, query, { ...EVENT_LIST_LIMITS, ...limits });
    pages.push(page.events.map(({ newest }) => newest.id));
    for (const { replaced } of page.events) histories.add(replaced.length);
    after = page.next;
  } while (after);
  return { pages, ids: pages.flat(), histories: [...histories] };
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
  expect(Math.max(...pages.map((page) => page.length))).toBe(10);
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
