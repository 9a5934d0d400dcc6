/** Limits of requests and statements, and the response cache: which requests are computed, and when. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { RateLimiter, type RateLimits } from '@meterline/api';
import { Admission, type AdmissionLimits } from '@meterline/query';
import { createWarehouse, sealNext, type Warehouse } from '@meterline/warehouse';
import {
  allPages,
  bearer,
  DAY,
  errorOf,
  metricsBody,
  metricsPath,
  NO_LIMITS,
  type Query,
  startApi,
  type TestApi,
  type TestResponse,
} from '../harness/api.js';
import { event } from '../harness/events.js';
import { pausing } from '../harness/interleaving.js';
import { select, storeEvents } from '../harness/stack.js';
import { testDatabase } from '../harness/test-database.js';

/** So slow that no request becomes available during a test. */
const ONCE_A_DAY = { requests: 2, seconds: 200_000 };

const database = testDatabase();
/** The APIs of the current test. */
const running: TestApi[] = [];
afterEach(async () => {
  for (const api of running.splice(0).reverse()) await api.stop();
});

/** Holds statements that compute a response until the test lets them go or their client disconnects. */
function gated(warehouse: Warehouse) {
  let waiting: (() => void)[] = [];
  const pass = () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve);
    });
  return {
    warehouse: pausing(warehouse, async (name) => {
      if (name === 'read_metrics') await pass();
    }),
    begun: async (count: number) => {
      while (waiting.length < count) await delay(5);
    },
    count: () => waiting.length,
    letGo: () => {
      for (const go of waiting) go();
      waiting = [];
    },
  };
}

/** Starts an API with these limits. */
async function start(
  limits: Partial<AdmissionLimits & RateLimits>,
  { warehouse = database.warehouse }: { warehouse?: Warehouse } = {},
): Promise<TestApi> {
  const all = { ...NO_LIMITS, ...limits };
  const admission = new Admission({ limits: all, rates: new RateLimiter({ limits: all }), warehouse });
  const api = await startApi({ warehouse, admission });
  running.push(api);
  return api;
}

const ask = (api: TestApi, key: string, account = 'acme'): Promise<TestResponse> =>
  api.request(metricsPath(account, DAY), bearer(key));

/** The status, and the code of an error. */
function outcomeOf(response: TestResponse): string {
  return response.status === 200 ? '200' : `${response.status} ${errorOf(response).error}`;
}
const TOO_MANY = '429 too_many_requests';

it('requests of a caller are limited, with the RateLimit headers of the draft', async () => {
  const limits = { callerRate: ONCE_A_DAY, accountRate: { requests: 9, seconds: 1e6 } };
  const one = await start(limits);
  const [ann, alex] = [await one.key('acme', 'admin', 'ann'), await one.key('acme', 'admin', 'alex')];
  const namesake = await one.key('zeta', 'admin', 'ann');
  const first = await ask(one, ann);
  expect(first.headers.get('ratelimit-policy')).toBe('"account";q=9;w=1000000, "caller";q=2;w=200000');
  expect(first.headers.get('ratelimit')).toBe('"account";r=8;t=1000000, "caller";r=1;t=200000');
  expect((await one.request('/v0/accounts', bearer(ann))).status).toBe(200);
  const refused = await ask(one, ann);
  expect(outcomeOf(refused)).toBe(TOO_MANY);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(199_000);
  expect(refused.headers.get('ratelimit')).toMatch(/^"caller";r=0;t=\d+$/);
  expect(errorOf(refused).message).toBe(
    'You may send 2 requests in 200000 seconds; retry after the seconds in Retry-After.',
  );
  // Requests that are denied to a caller do not count for its account.
  expect((await ask(one, alex)).headers.get('ratelimit')).toMatch(/^"account";r=6;t=\d+, "caller";r=1;t=\d+$/);
  expect((await ask(one, namesake, 'zeta')).headers.get('ratelimit')).toMatch(/"caller";r=1;/);
});

it('requests of an account are limited for all its callers together, and callers of other accounts do not use them up', async () => {
  const api = await start({ accountRate: ONCE_A_DAY });
  const [ann, alex] = [await api.key('acme', 'admin', 'ann'), await api.key('acme', 'admin', 'alex')];
  const ben = await api.key('zeta', 'admin', 'ann');
  for (let index = 0; index < 4; index += 1) expect((await ask(api, ben, 'acme')).status).toBe(403);
  expect([outcomeOf(await ask(api, ann)), outcomeOf(await ask(api, alex))]).toEqual(['200', '200']);
  const refused = await ask(api, ann);
  expect([outcomeOf(refused), outcomeOf(await ask(api, ben, 'zeta'))]).toEqual([TOO_MANY, '200']);
  expect(errorOf(refused).message).toMatch(/^All callers of this account together may send 2 requests/);
});

it('requests of an operator about an account count only for the operator', async () => {
  const api = await start({ accountRate: ONCE_A_DAY });
  const [ann, operator] = [await api.key('acme'), await api.key(undefined, 'operator')];
  expect((await ask(api, operator)).status).toBe(200);
  expect((await api.request(`/v0/metrics?${new URLSearchParams(DAY)}`, bearer(operator))).status).toBe(200);
  expect(outcomeOf(await ask(api, operator))).toBe(TOO_MANY);
  expect([(await ask(api, ann)).status, (await ask(api, ann)).status]).toEqual([200, 200]);
});

it('requests are denied before any statement, and a key can still be revoked', async () => {
  const gate = gated(database.warehouse);
  const api = await start({ callerRate: { ...ONCE_A_DAY, requests: 1 } }, { warehouse: gate.warehouse });
  const { key, keyId, clientId } = await api.keys.create({ account: 'acme', role: 'admin', clientId: 'c' }, new Date());
  const first = ask(api, key);
  await gate.begun(1);
  expect(outcomeOf(await ask(api, key))).toBe(TOO_MANY);
  expect(gate.count()).toBe(1);
  gate.letGo();
  expect((await first).status).toBe(200);
  const path = `/v0/service_accounts/${clientId}/api_keys/${keyId}`;
  expect((await api.request(path, { method: 'DELETE', ...bearer(key) })).status).toBe(200);
});

it.each<[string, Partial<AdmissionLimits>, string, string]>([
  ['too many for one caller', { caller: 1, maxWaitMs: 200 }, 'acme', '429 too_many_statements'],
  ['held back by those of others', { process: 1, maxWaitMs: 200 }, 'zeta', '503 overloaded'],
])(
  'statements that are %s are denied after the maximum wait, with Retry-After',
  async (_what, limits, account, outcome) => {
    const gate = gated(database.warehouse);
    const api = await start(limits, { warehouse: gate.warehouse });
    const first = ask(api, await api.key('acme'));
    await gate.begun(1);
    const refused = await ask(api, await api.key(account), account);
    expect([outcomeOf(refused), refused.headers.get('retry-after')]).toEqual([outcome, '5']);
    expect((await api.request('/readyz')).status).toBe(200);
    gate.letGo();
    expect((await first).status).toBe(200);
  },
);

it.each<[string, Partial<AdmissionLimits>, string[], string]>([
  ['of its account', { caller: 1, maxWaitingOfAccount: 1 }, ['a', 'a'], '429 too_many_statements'],
  // An account without waiting statements may always wait.
  ['of the process', { process: 1, maxWaiting: 2 }, ['a', 'a', 'b', 'c'], '503 overloaded'],
])('statements are denied immediately while too many wait %s', async (_whose, limits, accounts, outcome) => {
  const gate = gated(database.warehouse);
  const api = await start(limits, { warehouse: gate.warehouse });
  const { permits } = api.dependencies.admission;
  const requested: Promise<TestResponse>[] = [];
  for (const account of accounts) {
    requested.push(ask(api, await api.key(account), account));
    while (permits.inUse + permits.waiting < requested.length) await delay(5);
  }
  expect(outcomeOf(await ask(api, await api.key('a'), 'a'))).toBe(outcome);
  for (const _ of requested) {
    await gate.begun(1);
    gate.letGo();
  }
  expect(new Set((await Promise.all(requested)).map(({ status }) => status))).toEqual(new Set([200]));
});

it('a client that disconnects cancels its statement and releases its permit', async () => {
  const own = createWarehouse({ ...database.options, application: 'slow-api' });
  /** Settings for a statement that never ends by itself, as if the account were very large. */
  const slow = { function_sleep_max_microseconds_per_block: '1000000000', max_block_size: '1' };
  const never = 'SELECT sum(sleepEachRow(1)) FROM numbers(1000)';
  const slowly = (warehouse: Warehouse): Warehouse => ({
    ...{ run: warehouse.run.bind(warehouse), ping: () => warehouse.ping(), close: () => warehouse.close() },
    read: (statement, row) => warehouse.read({ ...statement, query: never, query_params: {}, settings: slow }, row),
    within: (scope) => slowly(warehouse.within(scope)),
  });
  /** The number of statements of the API that ClickHouse executes. */
  const working = async () => {
    const [row] = await select<{ n: string }>(
      database.warehouse,
      "SELECT count() AS n FROM system.processes WHERE current_database = currentDatabase() AND startsWith(http_user_agent, 'slow-api')",
    );
    return Number(row?.n);
  };
  const api = await start({ caller: 1 }, { warehouse: slowly(own) });
  const key = await api.key('acme');
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`GET ${metricsPath('acme', DAY)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  while ((await working()) < 1) await delay(20);
  socket.destroy();
  while ((await working()) > 0) await delay(20);
  while (api.dependencies.admission.permits.inUse > 0) await delay(20);
  await own.close();
});

// Seals hours of the database, so this part comes last.
describe('the response cache', () => {
  /** The warehouse of the API. Its statements are counted. */
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
    while (await sealNext(database.shards.all, Date.parse(DAY.endTime)));
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

  it('a response contains every event that was acknowledged before its request, unless the request allows an older response', async () => {
    const key = await api.key('acme');
    const first = await ask(key, DAY);
    expect([first.status, first.cost]).toEqual([200, 2]);
    await storeEvents(warehouse, [event({ accountId: 'acme', cost: '5' })]);
    const cached = await ask(key, DAY, CACHED);
    expect([cached.cost, cached.headers.get('age')]).toEqual([2, expect.stringMatching(/^\d+$/)]);
    // A cached response counts as a request and has its own request id.
    expect(cached.headers.get('ratelimit')).not.toBeNull();
    expect(cached.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    expect(computed()).toBe(1);
    const exact = [await ask(key, DAY), await ask(key, DAY, { 'cache-control': 'max-age=0' })];
    expect(exact.map(({ cost, headers }) => [cost, headers.get('age')])).toEqual([
      [7, null],
      [7, null],
    ]);
    // A response that was computed for one request is cached for the next request that allows it.
    expect((await ask(key, DAY, CACHED)).cost).toBe(7);
    expect(computed()).toBe(3);
  });

  it('a cached response belongs to the role, the version and the parameters of its request, in any spelling', async () => {
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

  it('a cached response is not sent to a revoked key', async () => {
    const { key, keyId } = await api.keys.create({ account: 'acme', role: 'admin', clientId: 'gone' }, new Date(0));
    expect((await ask(key, DAY, CACHED)).status).toBe(200);
    await api.keys.revoke(keyId, new Date(0));
    expect((await ask(key, DAY, CACHED)).status).toBe(401);
  });

  it('a cached response is the first of pages that add up', async () => {
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

  it('a request with If-None-Match gets 304 without a body until the response changes', async () => {
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
    // The comparison is weak: a cache may have removed the prefix W/.
    expect((await ask(key, DAY, { 'if-none-match': etag.slice('W/'.length) })).status).toBe(304);
    const other = await ask(key, { ...DAY, groupBy: 'workspace' }, { 'if-none-match': `"x", ${etag}` });
    expect(other.status).toBe(200);
    expect((await ask(key, DAY, { 'if-none-match': `"x", ${etag}` })).status).toBe(304);
    expect((await ask(key, DAY, { 'if-none-match': '*' })).status).toBe(304);
    // A caller without access does not learn whether the response has changed.
    expect((await ask(await api.key('globex'), DAY, { 'if-none-match': etag })).status).toBe(403);
  });
});
