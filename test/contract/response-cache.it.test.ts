/** When a response is computed, and when it comes from memory, for admins and members; and what ETag says of it. */
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { createWarehouse, sealNext, type Warehouse } from '@meterline/warehouse';
import { allPages, bearer, DAY, metricsBody, metricsPath, type Query, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { storeEvents } from '../harness/stack.js';
import { testDatabase } from '../harness/test-database.js';

const database = testDatabase();
/** The warehouse of the API, whose statements are counted. */
let warehouse: Warehouse;
let statements: string[] = [];
let api: TestApi;
beforeAll(async () => {
  const observe = (name: string) => {
    statements.push(name);
    return () => undefined;
  };
  warehouse = createWarehouse({ ...database.options, observe });
  api = await startApi({ warehouse });
  await api.seed([event({ accountId: 'acme', workspace: 'a' }), event({ accountId: 'acme', workspace: 'b' })]);
  while (await sealNext([database.warehouse], Date.parse(DAY.endTime)));
});
afterAll(async () => {
  await api.stop();
  await warehouse.close();
});
beforeEach(() => {
  statements = [];
});

const computed = () => statements.filter((name) => name === 'read_metrics').length;

async function ask(key: string, query: Query | string, headers: Record<string, string> = {}) {
  const { headers: authorization } = bearer(key);
  const response = await api.request(metricsPath('acme', query), { headers: { ...authorization, ...headers } });
  return {
    ...response,
    cost: response.status === 200 ? metricsBody.parse(response.body).summary.totalCost : undefined,
  };
}

const CACHED = { 'cache-control': 'max-age=300' };

it('a response has everything that was acknowledged before its request, unless this allows an older one', async () => {
  const key = await api.key('acme');
  const first = await ask(key, DAY);
  expect([first.status, first.cost]).toEqual([200, 2]);
  await storeEvents(warehouse, [event({ accountId: 'acme', cost: '5' })]);
  const cached = await ask(key, DAY, CACHED);
  expect([cached.cost, cached.headers.get('age')]).toEqual([2, expect.stringMatching(/^\d+$/)]);
  // A cached response is counted as a request, and has an id of its own.
  expect(cached.headers.get('ratelimit')).not.toBeNull();
  expect(cached.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
  expect(computed()).toBe(1);
  const exact = [await ask(key, DAY), await ask(key, DAY, { 'cache-control': 'max-age=0' })];
  expect(exact.map(({ cost, headers }) => [cost, headers.get('age')])).toEqual([
    [7, null],
    [7, null],
  ]);
  // What was computed for one request is there for the next that allows it.
  expect((await ask(key, DAY, CACHED)).cost).toBe(7);
  expect(computed()).toBe(3);
});

it('a response from memory belongs to the role, the version and the parameters of its request, however they are written', async () => {
  const [admin, member] = [await api.key('acme', 'admin'), await api.key('acme', 'member')];
  const query = { ...DAY, groupBy: 'resource_name,billing_dimension' };
  await ask(admin, query, CACHED);
  await ask(member, query, CACHED);
  await ask(admin, query, { ...CACHED, 'svc-version': '2026-04-28' });
  await ask(admin, { ...query, limit: '5' }, CACHED);
  expect(computed()).toBe(4);
  await ask(await api.key('acme', 'admin', 'colleague'), query, CACHED);
  await ask(admin, { groupBy: 'billing_dimension,resource_name', ...DAY }, CACHED);
  await ask(admin, { ...query, startTime: DAY.startTime.replace('Z', '.000+00:00') }, CACHED);
  expect(computed()).toBe(4);
  const byWorkspace = { ...DAY, groupBy: 'workspace' };
  expect((await ask(admin, byWorkspace, CACHED)).status).toBe(200);
  expect((await ask(member, byWorkspace, CACHED)).status).toBe(403);
  expect((await ask(await api.key('globex'), query, CACHED)).status).toBe(403);
});

it('a response from memory is refused to a key that was revoked', async () => {
  const { key, keyId } = await api.keys.create({ account: 'acme', role: 'admin', clientId: 'gone' }, new Date(0));
  expect((await ask(key, DAY, CACHED)).status).toBe(200);
  await api.keys.revoke(keyId, new Date(0));
  expect((await ask(key, DAY, CACHED)).status).toBe(401);
});

it('a response from memory begins pages that add up', async () => {
  const names = [1, 2, 3, 4, 5];
  await storeEvents(
    warehouse,
    names.map((n) => event({ accountId: 'pages', resourceName: `box-${n}`, cost: `${n}` })),
  );
  const headers = { ...bearer(await api.key('pages')).headers, ...CACHED };
  for (let times = 0; times < 2; times += 1) {
    const pages = await allPages(async (cursor) => {
      const path = metricsPath('pages', { ...DAY, groupBy: 'resource_name', limit: '2', cursor });
      return metricsBody.parse((await api.request(path, { headers })).body);
    });
    expect(pages.flatMap(({ data }) => data).reduce((sum, { summary }) => sum + summary.cost, 0)).toBe(15);
  }
  expect(computed()).toBe(1);
});

it('a request with If-None-Match gets 304 without a body while the response is the same, and the response when it is another', async () => {
  const key = await api.key('acme');
  const { headers, status } = await ask(key, DAY);
  expect([status, headers.get('cache-control')]).toEqual([200, 'private, no-cache']);
  const etag = headers.get('etag') ?? '';
  expect(etag).toMatch(/^W\/"[\w-]{22}"$/);
  for (const more of [{}, CACHED]) {
    const again = await ask(key, DAY, { 'if-none-match': etag, ...more });
    expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag]);
    expect(again.headers.get('x-request-id')).not.toBeNull();
    expect([headers.get('vary'), again.headers.get('vary')]).toEqual(['Accept-Encoding', 'Accept-Encoding']);
  }
  // The comparison is the weak one: a cache may have left out what says so.
  expect((await ask(key, DAY, { 'if-none-match': etag.slice('W/'.length) })).status).toBe(304);
  const other = await ask(key, { ...DAY, groupBy: 'workspace' }, { 'if-none-match': `"x", ${etag}` });
  expect(other.status).toBe(200);
  expect((await ask(key, DAY, { 'if-none-match': `"x", ${etag}` })).status).toBe(304);
  expect((await ask(key, DAY, { 'if-none-match': '*' })).status).toBe(304);
  // A caller who may not have the response does not learn whether it has changed.
  expect((await ask(await api.key('globex'), DAY, { 'if-none-match': etag })).status).toBe(403);
});
