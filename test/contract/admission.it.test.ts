/** What one account or caller may ask, and that nobody else notices when it asks for more. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { createRedis, RateLimiter, type RateLimits, type TokenVerifier } from '@meterline/api';
import { Admission, type AdmissionLimits } from '@meterline/query';
import { createWarehouse, type Warehouse } from '@meterline/warehouse';
import {
  bearer,
  DAY,
  errorOf,
  metricsPath,
  NO_LIMITS,
  startApi,
  type TestApi,
  type TestResponse,
} from '../harness/api.js';
import { pausing } from '../harness/interleaving.js';
import { select, testRedisUrl, uniquePrefix } from '../harness/stack.js';
import { testDatabase } from '../harness/test-database.js';

/** A rate so slow that the next request is not allowed before the test has ended. */
const ONCE_A_DAY = { requests: 2, seconds: 200_000 };

const database = testDatabase();
/** The APIs of the test that runs. */
const running: TestApi[] = [];
const redis = createRedis(testRedisUrl());
beforeAll(async () => {
  await redis.connect();
});
afterEach(async () => {
  for (const api of running.splice(0).reverse()) await api.stop();
});
afterAll(async () => {
  redis.disconnect();
});

/** Statements that compute a response begin when the test says so, and end then or when their client goes. */
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

/** An API with these limits, or with `beside` another process of the same service. */
async function start(
  limits: Partial<AdmissionLimits & RateLimits>,
  {
    warehouse = database.warehouse,
    prefix = uniquePrefix(),
    beside,
  }: { warehouse?: Warehouse; prefix?: string; beside?: TestApi } = {},
): Promise<TestApi> {
  const all = { ...NO_LIMITS, ...limits };
  const admission = new Admission({ limits: all, rates: new RateLimiter({ redis, prefix, limits: all }), warehouse });
  const { keys, accounts } = beside?.dependencies ?? {};
  const api = await startApi({ warehouse, admission, ...(keys && accounts && { keys, accounts }) });
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

it('requests of a caller are limited over all processes, with the fields of the draft', async () => {
  const limits = { callerRate: ONCE_A_DAY, accountRate: { requests: 9, seconds: 1e6 } };
  const prefix = uniquePrefix();
  const one = await start(limits, { prefix });
  const other = await start(limits, { prefix, beside: one });
  const [ann, alex] = [await one.key('acme', 'admin', 'ann'), await one.key('acme', 'admin', 'alex')];
  const namesake = await one.key('zeta', 'admin', 'ann');
  const first = await ask(one, ann);
  expect(first.headers.get('ratelimit-policy')).toBe('"account";q=9;w=1000000, "caller";q=2;w=200000');
  expect(first.headers.get('ratelimit')).toBe('"account";r=8;t=1000000, "caller";r=1;t=200000');
  expect((await other.request('/v0/accounts', bearer(ann))).status).toBe(200);
  const refused = await ask(one, ann);
  expect(outcomeOf(refused)).toBe(TOO_MANY);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(199_000);
  expect(refused.headers.get('ratelimit')).toMatch(/^"caller";r=0;t=\d+$/);
  expect(errorOf(refused).message).toBe('You may send 2 requests in 200000 seconds; wait as long as Retry-After says.');
  for (const api of [one, other]) expect(outcomeOf(await ask(api, ann))).toBe(TOO_MANY);
  // What a caller is refused does not count for its account.
  expect((await ask(other, alex)).headers.get('ratelimit')).toMatch(/^"account";r=6;t=\d+, "caller";r=1;t=\d+$/);
  expect((await ask(one, namesake, 'zeta')).headers.get('ratelimit')).toMatch(/"caller";r=1;/);
});

it('requests of an account are limited for all its callers, and are not spent by those of other accounts', async () => {
  const api = await start({ accountRate: ONCE_A_DAY });
  const [ann, alex] = [await api.key('acme', 'admin', 'ann'), await api.key('acme', 'admin', 'alex')];
  const ben = await api.key('zeta', 'admin', 'ann');
  for (let index = 0; index < 4; index += 1) expect((await ask(api, ben, 'acme')).status).toBe(403);
  expect([outcomeOf(await ask(api, ann)), outcomeOf(await ask(api, alex))]).toEqual(['200', '200']);
  const refused = await ask(api, ann);
  expect([outcomeOf(refused), outcomeOf(await ask(api, ben, 'zeta'))]).toEqual([TOO_MANY, '200']);
  expect(errorOf(refused).message).toMatch(/^All callers of this account together may send 2 requests/);
});

it('requests of an operator about an account count for itself alone', async () => {
  const api = await start({ accountRate: ONCE_A_DAY });
  const [ann, operator] = [await api.key('acme'), await api.key('platform', 'operator')];
  expect((await ask(api, operator)).status).toBe(200);
  expect((await api.request(`/v0/metrics?${new URLSearchParams(DAY)}`, bearer(operator))).status).toBe(200);
  expect(outcomeOf(await ask(api, operator))).toBe(TOO_MANY);
  expect([(await ask(api, ann)).status, (await ask(api, ann)).status]).toEqual([200, 200]);
});

it('requests are refused before any statement, and do not stand in the way of revoking a key', async () => {
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
  'statements that are %s are refused after the longest wait, and say when to try again',
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
  // An account that has none waiting may always wait.
  ['of the process', { process: 1, maxWaiting: 2 }, ['a', 'a', 'b', 'c'], '503 overloaded'],
])('statements are refused at once where too many wait %s', async (_whose, limits, accounts, outcome) => {
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

it('a process counts requests alone while Redis is away', async () => {
  const away = createRedis('redis://127.0.0.1:1');
  away.on('error', () => undefined);
  const limits = { ...NO_LIMITS, callerRate: ONCE_A_DAY };
  const rates = new RateLimiter({ redis: away, prefix: 'away', limits });
  const admission = new Admission({ limits, rates, warehouse: database.warehouse });
  const tokens: TokenVerifier = {
    verify: async (id) => ({ id, scopes: new Set(['admin']), roles: new Map([['acme', 'admin']]) }),
  };
  const api = await startApi({ warehouse: database.warehouse, admission, tokens });
  running.push(api);
  const outcomes: string[] = [];
  for (const caller of ['ann', 'ann', 'ann', 'alex']) outcomes.push(outcomeOf(await ask(api, caller)));
  expect(outcomes).toEqual(['200', '200', TOO_MANY, '200']);
  away.disconnect();
});

it('a client that goes takes its statement with it, and gives its permit back', async () => {
  const own = createWarehouse({ ...database.options, application: 'slow-api' });
  /** As slow as a very large account: it never ends by itself. */
  const slow = { function_sleep_max_microseconds_per_block: '1000000000', max_block_size: '1' };
  const never = 'SELECT sum(sleepEachRow(1)) FROM numbers(1000)';
  const slowly = (warehouse: Warehouse): Warehouse => ({
    ...{ run: warehouse.run.bind(warehouse), ping: () => warehouse.ping(), close: () => warehouse.close() },
    read: (statement, row) => warehouse.read({ ...statement, query: never, query_params: {}, settings: slow }, row),
    within: (scope) => slowly(warehouse.within(scope)),
  });
  /** Statements of the API that ClickHouse is working on. */
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
