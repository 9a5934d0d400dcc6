import { afterAll, beforeAll, expect, it } from '@jest/globals';
import {
  allPages,
  bearer,
  DAY,
  errorOf,
  metricsPath,
  NOW,
  readMetrics,
  startApi,
  type TestApi,
} from '../harness/api.js';
import { event } from '../harness/events.js';

const GROUPS = 250;
const NAMES = Array.from({ length: GROUPS }, (_, index) => `box-${String(index).padStart(3, '0')}`);
/** Costs repeat, so that pages end within ties; the most expensive come first. */
const COSTS = NAMES.map((_, index) => 5 - Math.floor(index / 50));

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
  await api.seed(NAMES.map((resourceName, index) => event({ resourceName, cost: String(COSTS[index]) })));
  await api.seed(NAMES.map((resourceName) => event({ accountId: 'globex', resourceName })));
});
afterAll(() => api.stop());

const BY_NAME = { ...DAY, groupBy: 'resource_name,billing_dimension' };

const pages = (query: Record<string, string>, token = key) =>
  allPages((cursor) => readMetrics(api, 'acme', token, { ...query, cursor }));

async function rejection(cursor: string, query: Record<string, string> = BY_NAME, token = key, account = 'acme') {
  const response = await api.request(metricsPath(account, { ...query, cursor }), bearer(token));
  expect(response.status).toBe(400);
  return errorOf(response).error;
}

const firstCursor = async () => (await readMetrics(api, 'acme', key, { ...BY_NAME, limit: '10' })).meta.nextCursor;

it.each([
  [{}, [100, 100, 50]],
  [{ limit: '125' }, [100, 100, 50]],
  [{ limit: '50' }, Array(5).fill(50)],
  [{ limit: '7' }, [...Array(35).fill(7), 5]],
])('pages with %j hold every group once, in order', async (limit, sizes) => {
  const all = await pages({ ...BY_NAME, ...limit });
  expect(all.map(({ data }) => data.length)).toEqual(sizes);
  expect(all.flatMap(({ data }) => data.map((entry) => entry.resourceName))).toEqual(NAMES);
  expect(all.map(({ meta }) => meta.hasMore)).toEqual(sizes.map((_, index) => index < sizes.length - 1));
  for (const { summary } of all) expect(summary).toEqual({ totalCost: 750, totalUsage: 250 });
});

it('pages have fewer groups when they have many buckets, and still every group once', async () => {
  const decades = { startTime: '2005-01-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z', resolution: 'monthly' };
  const all = await pages({ ...decades, groupBy: 'resource_name' });
  // 250 months: 80 groups make 20,000 points.
  expect(all.map(({ data }) => data.length)).toEqual([80, 80, 80, 10]);
  expect(all.every(({ data }) => data.every(({ timeseries }) => timeseries.length === 250))).toBe(true);
  expect(all.flatMap(({ data }) => data.map((entry) => entry.resourceName))).toEqual(NAMES);
});

it.each<[string, Record<string, string>]>([
  ['another limit', { limit: '3' }],
  [
    'the same parameters in another spelling',
    {
      groupBy: 'billing_dimension,resource_name',
      endTime: '2025-10-02T00:00:00.0009+00:00',
      startTime: '2025-10-01T00:00:00.000Z',
      resolution: 'hourly',
    },
  ],
])('a cursor goes on with %s', async (_what, query) => {
  const page = await readMetrics(api, 'acme', key, { ...BY_NAME, ...query, cursor: await firstCursor() });
  expect(page.data.slice(0, 3).map((entry) => entry.resourceName)).toEqual(['box-010', 'box-011', 'box-012']);
});

it('a cursor goes on with another key of the account and role, so that two replicas of a dashboard may share the pages', async () => {
  const replica = await api.key('acme', 'admin', 'another service account');
  await readMetrics(api, 'acme', replica, { ...BY_NAME, cursor: await firstCursor() });
});

it('a cursor goes on up to 24 hours, and not a millisecond longer', async () => {
  const cursor = await firstCursor();
  try {
    api.clock.now = new Date(NOW.getTime() + 86_400_000);
    await readMetrics(api, 'acme', key, { ...BY_NAME, cursor });
    api.clock.now = new Date(NOW.getTime() + 86_400_001);
    expect(await rejection(cursor)).toBe('cursor_expired');
  } finally {
    api.clock.now = NOW;
  }
});

it.each<[string, Record<string, string>]>([
  ['filtered by', { workspace: '\u{1f600}', resourceName: '\u{1f4e6}', resourceUuid: '\u{1f194}' }],
  ['grouped by', {}],
])('names of the greatest length can be %s, all at once, and paged through', async (what, filters) => {
  const longest = (character: string) => character.repeat(256);
  const accountId = `${what}${'\u{1f3e6}'.repeat(246)}`;
  const admin = await api.key(accountId);
  const names = {
    workspace: longest('\u{1f600}'),
    resourceName: longest('\u{1f4e6}'),
    resourceUuid: longest('\u{1f194}'),
  };
  await api.seed([
    event({ accountId, ...names }),
    event({ accountId, ...names, billingDimension: 'sandbox_image_storage_gbs', cost: '0.5' }),
  ]);
  const groupBy = 'workspace,resource_name,billing_dimension';
  const wanted = Object.fromEntries(Object.entries(filters).map(([name, character]) => [name, longest(character)]));
  const query = { ...DAY, ...wanted, groupBy, limit: '1' };
  const first = await readMetrics(api, accountId, admin, query);
  const second = await readMetrics(api, accountId, admin, { ...query, cursor: first.meta.nextCursor });
  expect([...first.data, ...second.data].map((entry) => [entry.workspace, entry.summary.cost])).toEqual([
    [names.workspace, 1],
    [names.workspace, 0.5],
  ]);
  expect(second.meta.hasMore).toBe(false);
});

it.each([
  ['startTime', '2025-10-01T00:00:00.001Z'],
  ['endTime', '2025-10-01T23:59:59.999Z'],
  ['resolution', 'daily'],
  ['groupBy', 'resource_name'],
  ['workspace', 'main'],
  ['resourceType', 'sandbox'],
  ['resourceName', 'box-001'],
  ['resourceUuid', 'u-1'],
  ['withoutResourceUuid', 'true'],
  ['billingDimension', 'sandbox_compute_runtime_gbs'],
  ['excludeWorkspace', 'nobody'],
  ['excludeResourceName', 'nobody'],
  ['excludeWithoutResourceUuid', 'true'],
])('a cursor is rejected with another %s', async (name, value) => {
  expect(await rejection(await firstCursor(), { ...BY_NAME, [name]: value })).toBe('invalid_cursor');
});

it('a cursor is rejected without groupBy, in another account, and from the same caller in another role, who is shown less', async () => {
  const cursor = await firstCursor();
  expect(await rejection(cursor, DAY)).toBe('invalid_cursor');
  const [member, globex] = [
    await api.key('acme', 'member', 'admin of acme'),
    await api.key('globex', 'admin', 'admin of acme'),
  ];
  expect(await rejection(cursor, BY_NAME, member)).toBe('invalid_cursor');
  expect(await rejection(cursor, BY_NAME, globex, 'globex')).toBe('invalid_cursor');
});
