import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createRedis, type TokenVerifier } from '@meterline/api';
import { ApiKeyStore } from '@meterline/service/access';
import { createWarehouse } from '@meterline/warehouse';
import { bearer, DAY, errorOf, metricsPath, startApi, type TestApi, type TestResponse } from '../harness/api.js';
import { testDatabase } from '../harness/test-database.js';

/** Nothing can listen on port 1 without the system's permission. */
const NOWHERE = '127.0.0.1:1';
const RESOURCE_TYPES = `/v0/accounts/acme/metrics/enums/resource-types?${new URLSearchParams(DAY)}`;

const GROUP_BY = '/v0/accounts/acme/metrics/enums/group-by';
const METRICS = metricsPath('acme', DAY);

const database = testDatabase();

/** The status, and the code of an error. One that may be over soon says when to try again, and nothing of servers. */
function outcomeOf(response: TestResponse): string {
  if (response.status < 400) return String(response.status);
  if (response.status === 503) expect(response.headers.get('retry-after')).toBe('5');
  expect(response.text).not.toMatch(/ECONNREFUSED|127\.0\.0\.1/);
  return `${response.status} ${errorOf(response).error}`;
}

describe('while ClickHouse is away', () => {
  let api: TestApi;
  let key: string;
  const warehouse = createWarehouse({
    ...{ url: `http://${NOWHERE}`, user: 'default', password: '', database: 'meterline' },
    application: 'meterline-test',
  });

  beforeAll(async () => {
    api = await startApi({ warehouse });
    key = await api.key('acme');
  });
  afterAll(async () => {
    await api.stop();
    await warehouse.close();
  });

  it.each([
    [METRICS, '503 storage_unavailable'],
    [RESOURCE_TYPES, '503 storage_unavailable'],
    // What does not need it still answers, and a mistake of the caller is reported first.
    ['/v0/accounts', '200'],
    [GROUP_BY, '200'],
    ['/healthz', '200'],
    [metricsPath('acme', {}), '400 invalid_parameter'],
  ])('while ClickHouse is away, %s is %s', async (path, outcome) => {
    expect(outcomeOf(await api.request(path, bearer(key)))).toBe(outcome);
  });

  it('while ClickHouse is away, the log has the cause, and /readyz names it', async () => {
    api.log.length = 0;
    await api.request(METRICS, bearer(key));
    expect(api.log).toMatchObject([{ event: 'request_failed', status: 503, account: 'acme' }]);
    expect(JSON.stringify(api.log)).toContain('ECONNREFUSED');
    const { code, error, message } = errorOf(await api.request('/readyz'));
    expect([code, error, message]).toEqual([503, 'not_ready', 'Not answering: ClickHouse.']);
  });
});

describe('while Redis is away', () => {
  let api: TestApi;
  const redis = createRedis(`redis://${NOWHERE}`);
  /** Any token is an admin of acme; which accounts a real token names is in tokens.it.test.ts. */
  const tokens: TokenVerifier = {
    verify: async (id) => ({ id, scopes: new Set(['admin', 'apiKey:list']), roles: new Map([['acme', 'admin']]) }),
  };
  const KEY = `mlk_${'0'.repeat(24)}_${'0'.repeat(64)}`;
  const AWAY = '503 auth_unavailable';

  beforeAll(async () => {
    redis.on('error', () => undefined);
    await expect(redis.connect()).rejects.toThrow();
    const keys = new ApiKeyStore(redis);
    const { accounts } = keys;
    api = await startApi({ warehouse: database.warehouse, accounts, keys, tokens, pingRedis: () => redis.ping() });
  });
  afterAll(async () => {
    redis.disconnect();
    await api.stop();
  });

  it.each([
    ...['/v0/accounts', METRICS, RESOURCE_TYPES].map((path) => [path, 'an API key', KEY, AWAY] as const),
    ...[METRICS, GROUP_BY, RESOURCE_TYPES].map((path) => [path, 'a token', 'token', '200'] as const),
    // The accounts and the keys are in Redis.
    ...['/v0/accounts', '/v0/service_accounts/robot/api_keys'].map((path) => [path, 'a token', 'token', AWAY] as const),
    ['/v0/accounts', 'nothing', undefined, '401 unauthorized'],
    ['/healthz', 'nothing', undefined, '200'],
  ] as const)('while Redis is away, %s with %s is %s', async (path, _what, credential, outcome) => {
    expect(outcomeOf(await api.request(path, credential === undefined ? {} : bearer(credential)))).toBe(outcome);
  });

  it('while Redis is away, /readyz is 503 and names it', async () => {
    expect(errorOf(await api.request('/readyz')).message).toBe('Not answering: Redis.');
  });
});

it('a bug is 500 that says nothing internal, and is logged with its cause', async () => {
  const clock = () => {
    throw new Error('the clock is broken in a secret way');
  };
  const api = await startApi({ warehouse: database.warehouse, clock });
  try {
    const { key, keyId } = await api.keys.create({ account: 'acme', role: 'admin', clientId: 'c' }, new Date());
    const path = `/v0/service_accounts/c/api_keys/${keyId}`;
    const response = await api.request(path, { method: 'DELETE', ...bearer(key) });
    expect(outcomeOf(response)).toBe('500 internal_error');
    expect(response.text).not.toContain('clock');
    expect(JSON.stringify(api.log)).toContain('the clock is broken in a secret way');
  } finally {
    await api.stop();
  }
});

const FULL = 'is full: API keys cannot be created or revoked, and producers cannot add events';
const UNKNOWN = 'does not say whether it is full';

it.each([
  ['both answer', async () => false, undefined],
  ['Redis is full, and says what that refuses', async () => true, FULL],
  ['Redis does not say whether it is full', () => Promise.reject(new Error('NOPERM')), UNKNOWN],
])('/readyz is 200 while %s', async (_what, isRedisFull, message) => {
  const api = await startApi({ warehouse: database.warehouse, isRedisFull });
  try {
    const { status, body } = await api.request('/readyz');
    const degraded = message === undefined ? {} : { degraded: [{ server: 'Redis', message }] };
    expect([status, body]).toEqual([200, { status: 'ready', ...degraded }]);
  } finally {
    await api.stop();
  }
});
