import { beforeAll, expect, it } from '@jest/globals';
import { pricedEvent } from '../../../../test/harness/events.js';
import { execute } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { EVENT_LIST_LIMITS, type EventListLimits, type EventPlace, readEventList } from './event-list.js';

const START = Date.UTC(2025, 9, 1);
const HOUR = 3_600_000;
const id = (index: number) => `018f0000-0000-7000-8000-${String(index).padStart(12, '0')}`;

const database = testDatabase();
beforeAll(async () => {
  await execute(database.warehouse, 'SYSTEM STOP MERGES usage_events');
  const event = (index: number, revision: number) =>
    pricedEvent({
      eventId: id(index),
      timestamp: START + (index % 3) * HOUR + index,
      resourceName: index % 10 === 9 ? 'rare' : 'common',
      workspace: 'w'.repeat(200),
      revision,
    });
  for (const revision of [0, 1, 2]) {
    const events = Array.from({ length: 60 }, (_, index) => event(index, revision));
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

it('a page of events stops after so many rows, however few of them the filters select, and all pages have every event once', async () => {
  const whole = await allEvents({});
  expect([whole.pages.length, whole.ids.length, new Set(whole.ids).size]).toEqual([1, 60, 60]);
  const rare = await allEvents({ filters: RARE });
  expect([rare.pages.length, rare.ids]).toEqual([1, [9, 39, 19, 49, 29, 59].map(id)]);
  for (const examined of [7, 20, 179, 180, 181]) {
    const bounded = await allEvents({ filters: RARE, limits: { examined } });
    // 180 rows: three of each event.
    expect(bounded.pages.length).toBeGreaterThanOrEqual(Math.floor(180 / (examined + 3)));
    expect(bounded.ids).toEqual(rare.ids);
    expect((await allEvents({ limits: { examined }, limit: 11 })).ids).toEqual(whole.ids);
  }
  expect((await allEvents({ filters: RARE, limits: { examined: 20 } })).pages).toContainEqual([]);
});

it('a page of events has fewer events when their histories are long, and each history is whole', async () => {
  const { pages, ids, histories } = await allEvents({ limits: { payloads: 31 } });
  expect(Math.max(...pages.map((page) => page.length))).toBe(10);
  expect([ids, histories]).toEqual([(await allEvents({})).ids, [2]]);
  // Never fewer than one event.
  expect((await allEvents({ limits: { payloads: 1 } })).ids).toHaveLength(60);
});

it('a page of events has fewer events when their names are long', async () => {
  const { pages, ids } = await allEvents({ limits: { textLength: 5_000 } });
  // Three payloads of 206 characters each.
  expect(pages.map((page) => page.length)).toEqual([...Array.from({ length: 7 }, () => 8), 4]);
  expect(ids).toHaveLength(60);
  expect((await allEvents({ limits: { textLength: 1 } })).pages.every((page) => page.length <= 1)).toBe(true);
});
