import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  bearer,
  DAY,
  errorOf,
  type MetricsBody,
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

async function pages(query: Record<string, string>, token = key): Promise<MetricsBody[]> {
  const found: MetricsBody[] = [];
  let cursor = '';
  do {
    const page: MetricsBody = await readMetrics(api, 'acme', token, { ...query, cursor });
    found.push(page);
    cursor = page.meta.nextCursor;
  } while (cursor !== '');
  return found;
}

async function refusal(cursor: string, query: Record<string, string> = {}, token = key, account = 'acme') {
  const answer = await api.request(metricsPath(account, { ...BY_NAME, limit: '10', ...query, cursor }), bearer(token));
  expect(answer.status).toBe(400);
  return errorOf(answer).error;
}

const firstCursor = async () => (await readMetrics(api, 'acme', key, { ...BY_NAME, limit: '10' })).meta.nextCursor;

it.each([
  ['100', [100, 100, 50]],
  ['7', [...Array(35).fill(7), 5]],
  ['125', [100, 100, 50]],
  ['50', Array(5).fill(50)],
])('pages of %s hold every group once, in order', async (limit, sizes) => {
  const all = await pages({ ...BY_NAME, limit });
  expect(all.map(({ data }) => data.length)).toEqual(sizes);
  expect(all.flatMap(({ data }) => data.map((entry) => entry.resourceName))).toEqual(NAMES);
  expect(all.map(({ meta }) => meta.hasMore)).toEqual(sizes.map((_, index) => index < sizes.length - 1));
  for (const { summary } of all) expect(summary).toEqual({ totalCost: 750, totalUsage: 250 });
});

it('pages are of 100 by default', async () => {
  const page = await readMetrics(api, 'acme', key, BY_NAME);
  expect([page.data.length, page.meta.hasMore]).toEqual([100, true]);
});

it('pages have fewer groups when they have many buckets, and still every group once', async () => {
  const decades = { startTime: '2005-01-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z', resolution: 'monthly' };
  const all = await pages({ ...decades, groupBy: 'resource_name' });
  // 250 months: 80 groups make 20,000 points.
  expect(all.map(({ data }) => data.length)).toEqual([80, 80, 80, 10]);
  expect(all.every(({ data }) => data.every(({ timeseries }) => timeseries.length === 250))).toBe(true);
  expect(all.flatMap(({ data }) => data.map((entry) => entry.resourceName))).toEqual(NAMES);
});

it('a single aggregated entry is never paged', async () => {
  const page = await readMetrics(api, 'acme', key, { ...DAY, limit: '1' });
  expect(page.meta).toEqual({ hasMore: false, nextCursor: '' });
});

it('an empty cursor is the first page', async () => {
  const page = await readMetrics(api, 'acme', key, { ...BY_NAME, cursor: '' });
  expect(page.data[0]?.resourceName).toBe('box-000');
});

it('a cursor goes on with another limit', async () => {
  const page = await readMetrics(api, 'acme', key, { ...BY_NAME, limit: '3', cursor: await firstCursor() });
  expect(page.data.map((entry) => entry.resourceName)).toEqual(['box-010', 'box-011', 'box-012']);
});

it('pages of a member are those of an admin, without the workspace', async () => {
  const member = await api.key('acme', 'member');
  const [seen, hidden] = await Promise.all([pages(BY_NAME), pages(BY_NAME, member)]);
  const entries = seen.flatMap(({ data }) => data);
  expect(entries[120]?.workspace).toBe('main');
  expect(hidden.flatMap(({ data }) => data)).toEqual(entries.map(({ workspace: _, ...entry }) => entry));
});

it('a cursor goes on with the same parameters in another spelling', async () => {
  const query = {
    groupBy: 'billing_dimension,resource_name',
    endTime: '2025-10-02T00:00:00.0009+00:00',
    startTime: '2025-10-01T00:00:00.000Z',
    resolution: 'hourly',
    cursor: await firstCursor(),
  };
  expect((await readMetrics(api, 'acme', key, query)).data[0]?.resourceName).toBe('box-010');
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
    expect(await refusal(cursor)).toBe('cursor_expired');
  } finally {
    api.clock.now = NOW;
  }
});

describe('names of the greatest length', () => {
  const longest = (character: string) => character.repeat(256);
  const accountId = longest('\u{1f3e6}');
  const names = {
    workspace: longest('\u{1f600}'),
    resourceName: longest('\u{1f4e6}'),
    resourceUuid: longest('\u{1f194}'),
  };

  it('names of the greatest length can be filtered by, all at once, and paged through', async () => {
    const admin = await api.key(accountId);
    const types = ['sandbox_compute_runtime_gbs', 'sandbox_image_storage_gbs'] as const;
    await api.seed(types.map((billingDimension) => event({ accountId, ...names, billingDimension })));
    const query = { ...DAY, ...names, groupBy: 'workspace,resource_name,billing_dimension', limit: '1' };
    const first = await readMetrics(api, accountId, admin, query);
    const second = await readMetrics(api, accountId, admin, { ...query, cursor: first.meta.nextCursor });
    expect([...first.data, ...second.data].map((entry) => entry.billingDimension)).toEqual(types);
    expect(second.meta.hasMore).toBe(false);
  });

  it('names of the greatest length can be grouped by, all at once, and paged through', async () => {
    const admin = await api.key(`${accountId.slice(2)}a`);
    const own = { accountId: `${accountId.slice(2)}a`, ...names };
    await api.seed([event(own), event({ ...own, workspace: 'a', cost: '0.5' })]);
    const query = { ...DAY, groupBy: 'workspace,resource_name,resource_uuid', limit: '1' };
    const first = await readMetrics(api, own.accountId, admin, query);
    const second = await readMetrics(api, own.accountId, admin, { ...query, cursor: first.meta.nextCursor });
    expect([...first.data, ...second.data].map((entry) => entry.workspace)).toEqual([names.workspace, 'a']);
  });
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
])('a cursor is refused with another %s', async (name, value) => {
  expect(await refusal(await firstCursor(), { [name]: value })).toBe('invalid_cursor');
});

it('a cursor is refused without groupBy', async () => {
  const answer = await api.request(metricsPath('acme', { ...DAY, cursor: await firstCursor() }), bearer(key));
  expect(errorOf(answer).error).toBe('invalid_cursor');
});

it('a cursor is refused from a caller of another role', async () => {
  expect(await refusal(await firstCursor(), {}, await api.key('acme', 'member'))).toBe('invalid_cursor');
});

it('a cursor is refused from the same caller in another role, which is shown less', async () => {
  const member = await api.key('acme', 'member', 'admin of acme');
  expect(await refusal(await firstCursor(), {}, member)).toBe('invalid_cursor');
});

it('a cursor is refused in another account', async () => {
  const globex = await api.key('globex', 'admin', 'admin of acme');
  expect(await refusal(await firstCursor(), {}, globex, 'globex')).toBe('invalid_cursor');
});

it('a cursor is refused when anything in it was changed', async () => {
  const cursor = await firstCursor();
  const [payload = '', signature = ''] = cursor.split('.');
  const content = Buffer.from(payload, 'base64url').toString();
  const moved = Buffer.from(content.replace('"after":10', '"after":100')).toString('base64url');
  const selfSigned = createHmac('sha256', 'guess').update(moved).digest('base64url');
  const forgeries = [
    `${moved}.${signature}`,
    `${moved}.${selfSigned}`,
    `${payload}.${'A'.repeat(43)}`,
    `${payload}.`,
    `.${signature}`,
    payload,
    `${cursor}A`,
    `${cursor}=`,
    ` ${cursor}`,
    `${payload}.${signature}.${signature}`,
    'x',
    '{}',
    '\u{1f600}',
  ];
  for (const forgery of forgeries) expect(await refusal(forgery)).toBe('invalid_cursor');
});

it('a cursor is refused when it comes from a service with another secret', async () => {
  const { keys, warehouse } = api.dependencies;
  const cursorSecret = 'another secret, which is also long enough';
  const other = await startApi({ keys, warehouse, cursorSecret });
  try {
    const foreign = await readMetrics(other, 'acme', key, { ...BY_NAME, limit: '10' });
    expect(await refusal(foreign.meta.nextCursor)).toBe('invalid_cursor');
  } finally {
    await other.stop();
  }
});
