/** What one account or caller may ask, and that nobody else notices when it asks for more. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createRedis, RateLimiter, type RateLimits, type TokenVerifier } from '@meterline/api';
import { Admission, type AdmissionLimits } from '@meterline/query';
import { createWarehouse, type Warehouse } from '@meterline/warehouse';
import { type Answer, bearer, DAY, errorOf, metricsPath, NO_LIMITS, startApi, type TestApi } from '../harness/api.js';
import { pausing } from '../harness/interleaving.js';
import { createTestDatabase, select, type TestDatabase, testRedisUrl, uniquePrefix } from '../harness/stack.js';

/** So slow that the next request is not allowed before the test has ended. */
const ONCE_A_DAY = { requests: 2, seconds: 200_000 };

let database: TestDatabase;
const redis = createRedis(testRedisUrl());
beforeAll(async () => {
  database = await createTestDatabase();
  await redis.connect();
});
afterAll(async () => {
  redis.disconnect();
  await database.drop();
});

/** Statements that compute an answer begin when the test says so, and end then or when their client goes. */
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

/** APIs with these limits, as processes that share a Redis. */
async function startApis(
  count: number,
  limits: Partial<AdmissionLimits & RateLimits>,
  warehouse: Warehouse = database.warehouse,
) {
  const prefix = uniquePrefix();
  const all = { ...NO_LIMITS, ...limits };
  const apis: TestApi[] = [];
  for (let index = 0; index < count; index += 1) {
    const rates = new RateLimiter({ redis, prefix, limits: all });
    const admission = new Admission({ limits: all, rates, warehouse });
    const [first] = apis;
    const { keys, accounts } = first?.dependencies ?? {};
    apis.push(await startApi({ warehouse, admission, ...(keys && accounts && { keys, accounts }) }));
  }
  const [one, other = one] = apis;
  if (!one || !other) throw new Error('there is none');
  return { one, other, stop: () => Promise.all([...apis].reverse().map((api) => api.stop())) };
}

const ask = (api: TestApi, key: string, account = 'acme'): Promise<Answer> =>
  api.request(metricsPath(account, DAY), bearer(key));

function refusalOf(answer: Answer) {
  return [answer.status, errorOf(answer).error];
}

it('requests of a caller are limited over all processes, with the fields of the draft', async () => {
  const { one, other, stop } = await startApis(2, {
    callerRate: ONCE_A_DAY,
    accountRate: { requests: 9, seconds: 1e6 },
  });
  const [ann, alex] = [await one.key('acme', 'admin', 'ann'), await one.key('acme', 'admin', 'alex')];
  const namesake = await one.key('zeta', 'admin', 'ann');
  const first = await ask(one, ann);
  expect(first.headers.get('ratelimit-policy')).toBe('"account";q=9;w=1000000, "caller";q=2;w=200000');
  expect(first.headers.get('ratelimit')).toBe('"account";r=8;t=1000000, "caller";r=1;t=200000');
  expect((await other.request('/v0/accounts', bearer(ann))).status).toBe(200);
  const refused = await ask(one, ann);
  expect(refusalOf(refused)).toEqual([429, 'too_many_requests']);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(199_000);
  expect(refused.headers.get('ratelimit')).toMatch(/^"caller";r=0;t=\d+$/);
  expect(errorOf(refused).message).toBe('You may send 2 requests in 200000 seconds; wait as long as Retry-After says.');
  for (const api of [one, other]) expect(refusalOf(await ask(api, ann))).toEqual([429, 'too_many_requests']);
  // What a caller is refused does not count for its account.
  expect((await ask(other, alex)).headers.get('ratelimit')).toMatch(/^"account";r=6;t=\d+, "caller";r=1;t=\d+$/);
  expect((await ask(one, namesake, 'zeta')).headers.get('ratelimit')).toMatch(/"caller";r=1;/);
  await stop();
});

it('requests of an account are limited for all its callers, and for nobody else', async () => {
  const { one, stop } = await startApis(1, { accountRate: ONCE_A_DAY });
  const [ann, alex] = [await one.key('acme', 'admin', 'ann'), await one.key('acme', 'admin', 'alex')];
  const ben = await one.key('zeta', 'admin', 'ann');
  expect([(await ask(one, ann)).status, (await ask(one, alex)).status]).toEqual([200, 200]);
  expect(refusalOf(await ask(one, ann))).toEqual([429, 'too_many_requests']);
  expect((await ask(one, ben, 'zeta')).status).toBe(200);
  await stop();
});

it('requests are not spent by callers of other accounts', async () => {
  const { one, stop } = await startApis(1, { accountRate: ONCE_A_DAY });
  const [ann, ben] = [await one.key('acme'), await one.key('zeta')];
  for (let index = 0; index < 4; index += 1) expect((await ask(one, ben, 'acme')).status).toBe(403);
  expect((await ask(one, ann)).status).toBe(200);
  await stop();
});

it('requests of an operator about an account count for itself alone', async () => {
  const { one, stop } = await startApis(1, { accountRate: ONCE_A_DAY });
  const [ann, operator] = [await one.key('acme'), await one.key('platform', 'operator')];
  expect((await ask(one, operator)).status).toBe(200);
  expect((await one.request(`/v0/metrics?${new URLSearchParams(DAY)}`, bearer(operator))).status).toBe(200);
  expect(refusalOf(await ask(one, operator))).toEqual([429, 'too_many_requests']);
  expect([(await ask(one, ann)).status, (await ask(one, ann)).status]).toEqual([200, 200]);
  await stop();
});

it('requests are refused before any statement', async () => {
  const gate = gated(database.warehouse);
  const { one, stop } = await startApis(1, { callerRate: { ...ONCE_A_DAY, requests: 1 } }, gate.warehouse);
  const key = await one.key('acme');
  const first = ask(one, key);
  await gate.begun(1);
  expect(refusalOf(await ask(one, key))).toEqual([429, 'too_many_requests']);
  expect(gate.count()).toBe(1);
  gate.letGo();
  expect((await first).status).toBe(200);
  await stop();
});

it('requests do not stand in the way of revoking a key', async () => {
  const { one, stop } = await startApis(1, { accountRate: { ...ONCE_A_DAY, requests: 1 } });
  const { key, keyId, clientId } = await one.keys.create({ account: 'acme', role: 'admin', clientId: 'c' }, new Date());
  expect((await ask(one, key)).status).toBe(200);
  expect((await ask(one, key)).status).toBe(429);
  const path = `/v0/service_accounts/${clientId}/api_keys/${keyId}`;
  expect((await one.request(path, { method: 'DELETE', ...bearer(key) })).status).toBe(200);
  await stop();
});

it('statements of an account run in as many as it may have; the others wait, and another account does not', async () => {
  const gate = gated(database.warehouse);
  const { one, stop } = await startApis(1, { account: 2 }, gate.warehouse);
  const [ann, ben] = [await one.key('acme'), await one.key('zeta')];
  const asked = Array.from({ length: 6 }, () => ask(one, ann));
  await gate.begun(2);
  const polite = ask(one, ben, 'zeta');
  await gate.begun(3);
  expect(gate.count()).toBe(3);
  gate.letGo();
  expect((await polite).status).toBe(200);
  let answered = false;
  const all = Promise.all(asked).then((answers) => {
    answered = true;
    return answers;
  });
  while (!answered) {
    expect(gate.count()).toBeLessThanOrEqual(2);
    gate.letGo();
    await delay(10);
  }
  expect((await all).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
  await stop();
});

it('statements that are too many for one caller are 429 after the longest wait, and name the limit', async () => {
  const gate = gated(database.warehouse);
  const { one, stop } = await startApis(1, { caller: 1, maxWaitMs: 200 }, gate.warehouse);
  const key = await one.key('acme');
  const first = ask(one, key);
  await gate.begun(1);
  const refused = await ask(one, key);
  expect(refusalOf(refused)).toEqual([429, 'too_many_statements']);
  expect(refused.headers.get('retry-after')).toBe('5');
  gate.letGo();
  expect((await first).status).toBe(200);
  await stop();
});

it('statements are 429 at once where too many wait already', async () => {
  const gate = gated(database.warehouse);
  const { one, stop } = await startApis(1, { caller: 1, maxWaitingOfAccount: 1 }, gate.warehouse);
  const key = await one.key('acme');
  const [first, second] = [ask(one, key), ask(one, key)];
  await gate.begun(1);
  while (one.dependencies.admission.permits.waiting < 1) await delay(5);
  expect(refusalOf(await ask(one, key))).toEqual([429, 'too_many_statements']);
  gate.letGo();
  await gate.begun(1);
  gate.letGo();
  expect([(await first).status, (await second).status]).toEqual([200, 200]);
  await stop();
});

it('statements of an account that has none waiting may always wait, however many others do', async () => {
  const gate = gated(database.warehouse);
  const { one, stop } = await startApis(1, { process: 1, maxWaiting: 2 }, gate.warehouse);
  const { permits } = one.dependencies.admission;
  const keys = new Map<string, string>();
  for (const account of ['a', 'b', 'c']) keys.set(account, await one.key(account));
  const asked: Promise<Answer>[] = [];
  for (const account of ['a', 'a', 'b', 'c']) {
    asked.push(ask(one, keys.get(account) ?? '', account));
    while (permits.inUse + permits.waiting < asked.length) await delay(5);
  }
  expect(refusalOf(await ask(one, keys.get('a') ?? '', 'a'))).toEqual([503, 'overloaded']);
  for (let answered = 0; answered < asked.length; answered += 1) {
    await gate.begun(1);
    gate.letGo();
  }
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  await stop();
});

it('statements of others that hold all permits are 503 overloaded after the longest wait', async () => {
  const gate = gated(database.warehouse);
  const { one, stop } = await startApis(1, { process: 1, maxWaitMs: 200 }, gate.warehouse);
  const [ann, ben] = [await one.key('acme'), await one.key('zeta')];
  const first = ask(one, ann);
  await gate.begun(1);
  const refused = await ask(one, ben, 'zeta');
  expect(refusalOf(refused)).toEqual([503, 'overloaded']);
  expect(refused.headers.get('retry-after')).toBe('5');
  expect((await one.request('/readyz')).status).toBe(200);
  gate.letGo();
  expect((await first).status).toBe(200);
  await stop();
});

it('a process counts alone', async () => {
  const away = createRedis('redis://127.0.0.1:1');
  away.on('error', () => undefined);
  const limits = { ...NO_LIMITS, callerRate: ONCE_A_DAY };
  const rates = new RateLimiter({ redis: away, prefix: 'away', limits });
  const admission = new Admission({ limits, rates, warehouse: database.warehouse });
  const tokens: TokenVerifier = {
    verify: async (id) => ({ id, scopes: new Set(['admin']), roles: new Map([['acme', 'admin']]) }),
  };
  const api = await startApi({ warehouse: database.warehouse, admission, tokens });
  expect([(await ask(api, 'ann')).status, (await ask(api, 'ann')).status]).toEqual([200, 200]);
  expect(refusalOf(await ask(api, 'ann'))).toEqual([429, 'too_many_requests']);
  expect((await ask(api, 'alex')).status).toBe(200);
  away.disconnect();
  await api.stop();
});

describe('a client that goes', () => {
  /** Statements of the API that ClickHouse is working on. */
  const running = async () =>
    Number(
      (
        await select<{ n: string }>(
          database.warehouse,
          "SELECT count() AS n FROM system.processes WHERE current_database = currentDatabase() AND startsWith(http_user_agent, 'slow-api')",
        )
      )[0]?.n,
    );

  it('a client that goes takes its statement with it, and gives its permit back', async () => {
    const own = createWarehouse({ ...database.options, application: 'slow-api' });
    /** As slow as a very large account: it never ends by itself. */
    const slow = { function_sleep_max_microseconds_per_block: '1000000000', max_block_size: '1' };
    const never = 'SELECT sum(sleepEachRow(1)) FROM numbers(1000)';
    const slowly = (warehouse: Warehouse): Warehouse => ({
      read: (statement, row) => warehouse.read({ ...statement, query: never, query_params: {}, settings: slow }, row),
      run: (statement, rows) => warehouse.run(statement, rows),
      within: (scope) => slowly(warehouse.within(scope)),
      ping: () => warehouse.ping(),
      close: () => warehouse.close(),
    });
    const { one, stop } = await startApis(1, { caller: 1 }, slowly(own));
    const key = await one.key('acme');
    const path = metricsPath('acme', DAY);
    const socket = connect(Number(new URL(one.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
    while ((await running()) < 1) await delay(20);
    socket.destroy();
    while ((await running()) > 0) await delay(20);
    while (one.dependencies.admission.permits.inUse > 0) await delay(20);
    await stop();
    await own.close();
  });
});
