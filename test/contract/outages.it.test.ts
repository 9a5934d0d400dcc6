import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createRedis, type TokenVerifier } from '@meterline/api';
import { AccountDirectory, ApiKeyStore } from '@meterline/service/access';
import { createWarehouse } from '@meterline/warehouse';
import { bearer, DAY, errorOf, metricsPath, startApi, type TestApi } from '../harness/api.js';
import { createTestDatabase, type TestDatabase } from '../harness/stack.js';

/** Nothing can listen on port 1 without the system's permission. */
const NOWHERE = '127.0.0.1:1';
const RESOURCE_TYPES = `/v0/accounts/acme/metrics/enums/resource-types?${new URLSearchParams(DAY)}`;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('while ClickHouse is away', () => {
  let api: TestApi;
  let key: string;
  const warehouse = createWarehouse({
    url: `http://${NOWHERE}`,
    user: 'default',
    password: '',
    database: 'meterline',
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

  it.each([metricsPath('acme', DAY), RESOURCE_TYPES])(
    'while ClickHouse is away, %s is 503, with a time to try again',
    async (path) => {
      const answer = await api.request(path, bearer(key));
      expect([answer.status, errorOf(answer).error]).toEqual([503, 'storage_unavailable']);
      expect(answer.headers.get('retry-after')).toBe('5');
      expect(answer.text).not.toMatch(/ECONNREFUSED|127\.0\.0\.1/);
    },
  );

  it('while ClickHouse is away, the log has the cause', async () => {
    api.log.length = 0;
    await api.request(metricsPath('acme', DAY), bearer(key));
    expect(api.log).toMatchObject([{ event: 'request_failed', status: 503, account: 'acme' }]);
    expect(JSON.stringify(api.log)).toContain('ECONNREFUSED');
  });

  it('while ClickHouse is away, what does not need it still answers', async () => {
    expect((await api.request('/v0/accounts', bearer(key))).status).toBe(200);
    expect((await api.request('/v0/accounts/acme/metrics/enums/group-by', bearer(key))).status).toBe(200);
    expect((await api.request('/healthz')).status).toBe(200);
  });

  it('while ClickHouse is away, a mistake of the caller is still reported first', async () => {
    expect((await api.request(metricsPath('acme', {}), bearer(key))).status).toBe(400);
  });

  it('while ClickHouse is away, /readyz is 503 and names it', async () => {
    const answer = await api.request('/readyz');
    const { code, error, message } = errorOf(answer);
    expect([code, error, message]).toEqual([503, 'not_ready', 'Not answering: ClickHouse.']);
  });
});

describe('while Redis is away', () => {
  let api: TestApi;
  const redis = createRedis(`redis://${NOWHERE}`);
  const accounts = new AccountDirectory(redis, 'away');
  /** Any token is an admin of acme; which accounts a real token names is in tokens.it.test.ts. */
  const tokens: TokenVerifier = {
    verify: async (id) => ({ id, scopes: new Set(['admin', 'apiKey:list']), roles: new Map([['acme', 'admin']]) }),
  };
  const wellFormed = `mlk_${'0'.repeat(24)}_${'0'.repeat(64)}`;

  beforeAll(async () => {
    redis.on('error', () => undefined);
    await expect(redis.connect()).rejects.toThrow();
    const keys = new ApiKeyStore(redis, accounts, 'away');
    api = await startApi({ warehouse: database.warehouse, accounts, keys, tokens, pingRedis: () => redis.ping() });
  });
  afterAll(async () => {
    redis.disconnect();
    await api.stop();
  });

  it.each(['/v0/accounts', metricsPath('acme', DAY), RESOURCE_TYPES])(
    'while Redis is away, %s is 503, not 401',
    async (path) => {
      const answer = await api.request(path, bearer(wellFormed));
      expect([answer.status, errorOf(answer).error]).toEqual([503, 'auth_unavailable']);
      expect(answer.headers.get('retry-after')).toBe('5');
    },
  );

  it.each([metricsPath('acme', DAY), '/v0/accounts/acme/metrics/enums/group-by', RESOURCE_TYPES])(
    'while Redis is away, %s still answers to a token',
    async (path) => {
      expect((await api.request(path, bearer('token'))).status).toBe(200);
    },
  );

  it.each(['/v0/accounts', '/v0/service_accounts/robot/api_keys'])(
    'while Redis is away, %s does not answer, whose entries are in Redis',
    async (path) => {
      const answer = await api.request(path, bearer('token'));
      expect([answer.status, errorOf(answer).error]).toEqual([503, 'auth_unavailable']);
    },
  );

  it('while Redis is away, a request without credentials is 401', async () => {
    expect((await api.request('/v0/accounts')).status).toBe(401);
  });

  it('while Redis is away, /readyz is 503 and names it; /healthz is 200', async () => {
    expect(errorOf(await api.request('/readyz')).message).toBe('Not answering: Redis.');
    expect((await api.request('/healthz')).body).toEqual({ status: 'ok' });
  });
});

it('a bug is 500 that says nothing internal, and is logged with its cause', async () => {
  const api = await startApi({
    warehouse: database.warehouse,
    clock: () => {
      throw new Error('the clock is broken in a secret way');
    },
  });
  try {
    const key = await api.keys.create({ account: 'acme', role: 'admin', clientId: 'c' }, new Date());
    const answer = await api.request(`/v0/service_accounts/c/api_keys/${key.keyId}`, {
      method: 'DELETE',
      ...bearer(key.key),
    });
    expect([answer.status, errorOf(answer).error]).toEqual([500, 'internal_error']);
    expect(answer.text).not.toContain('clock');
    expect(JSON.stringify(api.log)).toContain('the clock is broken in a secret way');
  } finally {
    await api.stop();
  }
});

describe('/readyz', () => {
  const FULL = 'is full: API keys cannot be created or revoked, and producers cannot add events';

  it.each([
    ['is full, and says what that refuses', async () => true, FULL],
    ['does not say whether it is full', () => Promise.reject(new Error('NOPERM')), 'does not say whether it is full'],
  ])('/readyz is 200 while Redis %s', async (_what, isRedisFull, message) => {
    const api = await startApi({ warehouse: database.warehouse, isRedisFull });
    try {
      const answer = await api.request('/readyz');
      expect([answer.status, answer.body]).toEqual([
        200,
        { status: 'ready', degraded: [{ server: 'Redis', message }] },
      ]);
    } finally {
      await api.stop();
    }
  });

  it('/readyz is 200 while both answer', async () => {
    const api = await startApi({ warehouse: database.warehouse });
    try {
      const answer = await api.request('/readyz');
      expect([answer.status, answer.body]).toEqual([200, { status: 'ready' }]);
    } finally {
      await api.stop();
    }
  });
});
