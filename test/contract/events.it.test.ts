/** The events behind a figure: which, in what order and pages, at what price, and what they replaced. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import {
  DEFAULT_PRICE_BOOK,
  DEFAULT_PRICE_BOOK_FILE,
  eventPageSchema,
  PriceBook,
  readExactJson,
} from '@meterline/catalog';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import { allPages, bearer, DAY, errorOf, type Query, readMetrics, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { execute, uniquePrefix } from '../harness/stack.js';

const OVERRIDDEN = new PriceBook({
  ...DEFAULT_PRICE_BOOK_FILE,
  version: 7,
  overrides: [
    {
      accountId: 'acme|west',
      billingDimension: 'sandbox_compute_runtime_gbs',
      effectiveFrom: '2025-06-01T00:00:00Z',
      amount: '3.5',
      per: '1000',
    },
  ],
});
const id = (index: number) => `018f0000-0000-7000-8000-${String(index).padStart(12, '0')}`;

let api: TestApi;
const keys = new Map<string, string>();
beforeAll(async () => {
  api = await startApi();
  const { warehouse } = api.dependencies;
  await registerPriceBook(oneServer(warehouse), DEFAULT_PRICE_BOOK);
  await registerPriceBook(oneServer(warehouse), OVERRIDDEN);
  // Merges would remove what the histories show.
  await execute(warehouse, 'SYSTEM STOP MERGES usage_events');
  for (const account of ['acme', 'globex', 'acme|west']) keys.set(account, await api.key(account));
  const late = { eventId: id(1), at: '2025-10-01T10:59:59.999Z', resourceName: 'late', usage: '3', cost: '3' };
  await api.seed([
    event({ eventId: id(3), at: '2025-10-01T11:00:00Z', resourceUuid: 'box', usage: '0.5', cost: '0.00000575' }),
    event({ eventId: id(2), at: '2025-10-01T10:00:00Z', usage: '2', cost: '2' }),
    event({ ...late, usage: '1', cost: '1' }),
    event({ eventId: id(4), at: '2025-10-01T12:00:00Z', usage: '4', cost: '4' }),
    event({ eventId: id(5), at: '2025-10-02T00:00:00Z' }),
    event({ eventId: id(1), accountId: 'globex' }),
    event({ eventId: id(6), accountId: 'acme|west', usage: '2000', cost: '7', priceBook: 7 }),
  ]);
  // The same event again, a correction, a second price, and a void: one by one, because of one insert ClickHouse keeps the last.
  const later = [
    event({ ...late, usage: '1', cost: '1' }),
    event({ ...late, usage: '2', cost: '2', revision: 1 }),
    event({ ...late, revision: 1, priceRevision: 1, priceBook: 9 }),
    event({ eventId: id(4), at: '2025-10-01T12:00:00Z', usage: '4', cost: '4', revision: 1, voided: true }),
  ];
  for (const one of later) await api.seed([one]);
});
afterAll(() => api.stop());

function path(account: string, query: Query | string): string {
  return `/v0/accounts/${encodeURIComponent(account)}/events?${new URLSearchParams(query)}`;
}

async function read(account: string, query: Query) {
  const { status, text } = await api.request(path(account, query), bearer(keys.get(account) ?? ''));
  if (status !== 200) throw new Error(`${status}: ${text}`);
  return eventPageSchema.parse(readExactJson(text));
}

/** From pages of one event. */
async function idsInPages(account: string): Promise<string[]> {
  const pages = await allPages((cursor) => read(account, { ...DAY, limit: '1', cursor }));
  return pages.flatMap(({ data }) => data.map(({ eventId }) => eventId));
}

it('the list of events has each event of the window once, as it counts now, by hour and then by id', async () => {
  const { data, meta } = await read('acme', DAY);
  expect(data.map(({ eventId, cost, revision }) => [eventId, cost, revision])).toEqual([
    [id(1), '3', 1],
    [id(2), '2', 0],
    [id(3), '0.00000575', 0],
  ]);
  expect(meta).toEqual({ hasMore: false, nextCursor: '' });
});

it('the list of events adds up to the figure that the same window and filters give', async () => {
  for (const filter of [
    {},
    { resourceName: 'late' },
    { withoutResourceUuid: 'true' },
    { excludeResourceName: 'late' },
  ]) {
    const window = { startTime: '2025-10-01T10:00:00.001Z', endTime: '2025-10-01T11:00:00.001Z' };
    const { data } = await read('acme', { ...window, ...filter });
    const figure = await readMetrics(api, 'acme', keys.get('acme') ?? '', { ...window, ...filter });
    expect(data.reduce((sum, { cost }) => sum + Number(cost), 0)).toBe(figure.summary.totalCost);
  }
});

it('the list of events says what an event replaced, the newest first, and what was sent twice once', async () => {
  const { data } = await read('acme', { ...DAY, resourceName: 'late' });
  const [late] = data;
  expect([late?.revision, late?.priceRevision, late?.priceBook, late?.usage]).toEqual([1, 1, 9, '3']);
  expect(
    late?.history.map(({ revision, priceRevision, usage, cost }) => [revision, priceRevision, usage, cost]),
  ).toEqual([
    [1, 0, '2', '2'],
    [0, 0, '1', '1'],
  ]);
});

it('the list of events gives the price in force, and none where the book is not on record', async () => {
  const [late, other] = (await read('acme', DAY)).data;
  expect([late?.price, other?.price]).toEqual([
    undefined,
    { amount: '0.0000115', per: '1', effectiveFrom: '1970-01-01T00:00:00Z' },
  ]);
  const { data } = await read('acme|west', DAY);
  expect(data.map(({ price, priceBook }) => [price, priceBook])).toEqual([
    [{ amount: '3.5', per: '1000', effectiveFrom: '2025-06-01T00:00:00Z' }, 7],
  ]);
});

it('the list of events has voided events only if they are asked for', async () => {
  const { data } = await read('acme', { ...DAY, includeVoided: 'true' });
  expect(data.map(({ eventId, voided }) => [eventId, voided])).toEqual([
    [id(1), false],
    [id(2), false],
    [id(3), false],
    [id(4), true],
  ]);
  expect(data[3]?.history.map(({ voided, cost }) => [voided, cost])).toEqual([[false, '4']]);
});

it('the list of events comes in pages that show every event once, also where an hour is split', async () => {
  expect(await idsInPages('acme')).toEqual([id(1), id(2), id(3)]);
});

it('the list of events has pages after ids of every version and variant, as producers may choose them', async () => {
  const ids = ['0', '1', '9', 'f'].map((digit) => `00000000-0000-${digit}000-${digit}000-000000000001`);
  const account = uniquePrefix();
  keys.set(account, await api.key(account));
  await api.seed(ids.map((eventId) => event({ eventId, accountId: account })));
  expect(await idsInPages(account)).toEqual(ids);
});

it('a cursor of another query is refused', async () => {
  const { meta } = await read('acme', { ...DAY, limit: '1' });
  const foreign = { ...DAY, limit: '1', cursor: meta.nextCursor, resourceName: 'late' };
  const response = await api.request(path('acme', foreign), bearer(keys.get('acme') ?? ''));
  expect([response.status, errorOf(response).error]).toEqual([400, 'invalid_cursor']);
});
