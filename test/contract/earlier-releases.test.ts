/**
 * What earlier releases have written is read by this one. Each record is literally what a release wrote: change none of
 * them, add to them when a form changes. What may change how: CONTRIBUTING, "What is kept between releases".
 */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AccountDirectory, ApiKeyStore } from '@meterline/access';
import { eventsOfJob, parseUsageEvent } from '@meterline/catalog';
import { Redis } from 'ioredis';
import { execute, testRedisUrl, uniquePrefix } from '../stack.js';
import { bearer, DAY, errorOf, metricsPath, NOW, readMetrics, startApi, type TestApi } from './fixture.js';

const KEY_ID = 'a91abab490f1f78e7281f42d';
const KEY = `mlk_${KEY_ID}_${'ab'.repeat(32)}`;
const KEY_RECORD = {
  secretHash: '271a413bd339c5709fdceaec41f14f11e9fbfb5042d72d331c65f32b284cd09a',
  clientId: 'c1',
  account: 'acme',
  role: 'admin',
  createdAt: '2025-11-14T07:07:50.886Z',
};
/** Since keys may expire, say when they were last used, and are in an index of their account. */
const ENDING_KEY_ID = '5c7d0e8f1b2a39c46d80e172';
const ENDING_KEY_RECORD = {
  ...{ secretHash: KEY_RECORD.secretHash, clientId: 'c2', account: 'acme', role: 'member' },
  createdAt: '2025-11-14T09:00:00.000Z',
  expiresAt: '2025-11-15T12:00:00.001Z',
  lastUsedAt: '2025-11-15T11:00:00.000Z',
  revokedAt: '2025-11-15T11:59:00.000Z',
};
const ACCOUNT_RECORD = { name: 'acme', createdAt: '2025-11-14T07:07:50.886Z' };

/** Of the table's first migration: the columns that were added since have defaults. */
const EVENT_ROW = {
  account_id: 'acme',
  event_id: '054f6dd5-0311-4615-836f-d73f0030d0f0',
  timestamp: '2025-10-01 10:00:00.000',
  workspace: 'w',
  resource_type: 'sandbox',
  resource_name: 'box-12',
  resource_uuid: 'u-12',
  billing_dimension: 'sandbox_compute_runtime_gbs',
  usage: 1012,
  revision: 0,
  voided: false,
  cost: '0.011638',
  price_revision: 0,
  price_book: 0,
};

const redis = new Redis(testRedisUrl());
const prefix = uniquePrefix();
let api: TestApi;

beforeAll(async () => {
  await redis.hset(`${prefix}:api-key:${KEY_ID}`, KEY_RECORD);
  await redis.zadd(`${prefix}:api-keys`, 1_763_104_070_886, KEY_ID);
  await redis.hset(`${prefix}:api-key:${ENDING_KEY_ID}`, ENDING_KEY_RECORD);
  await redis.zadd(`${prefix}:api-keys`, 1_763_110_800_000, ENDING_KEY_ID);
  await redis.hset(`${prefix}:api-keys-of:acme`, ENDING_KEY_ID, 'c2');
  await redis.set(`${prefix}:api-keys-indexed`, '1');
  await redis.hset(`${prefix}:account:acme`, ACCOUNT_RECORD);
  const accounts = new AccountDirectory(redis, prefix);
  api = await startApi({ accounts, keys: new ApiKeyStore(redis, accounts, prefix) });
  const { warehouse } = api.dependencies;
  await execute(warehouse, `INSERT INTO usage_events FORMAT JSONEachRow ${JSON.stringify(EVENT_ROW)}`);
});
afterAll(async () => {
  await api.stop();
  redis.disconnect();
});

const BY_NAME = { ...DAY, groupBy: 'resource_name' };

describe('of earlier releases', () => {
  it('an API key and its account are good', async () => {
    const answer = await api.request('/v0/accounts', bearer(KEY));
    expect(answer.body).toEqual([{ id: 'acme', ...ACCOUNT_RECORD, role: 'admin' }]);
    const path = `/v0/service_accounts/c1/api_keys/${KEY_ID}`;
    const store = new ApiKeyStore(redis, new AccountDirectory(redis, prefix), prefix);
    expect(await store.list()).toMatchObject([{ keyId: KEY_ID, clientId: 'c1' }, { keyId: ENDING_KEY_ID }]);
    expect((await api.request(path.replace('c1', 'c2'), { method: 'DELETE', ...bearer(KEY) })).status).toBe(404);
  });

  it('API keys are listed over HTTP, whether they are in the index of their account or not', async () => {
    const listed = async (clientId: string) =>
      (await api.request(`/v0/service_accounts/${clientId}/api_keys`, bearer(KEY))).body;
    const entry = { id: ENDING_KEY_ID, account: 'acme', role: 'member', revoked: true };
    const { createdAt, expiresAt, lastUsedAt } = ENDING_KEY_RECORD;
    expect(await listed('c2')).toEqual([{ ...entry, createdAt, expiresAt, lastUsedAt }]);
    expect(await listed('c1')).toMatchObject([{ id: KEY_ID, createdAt: KEY_RECORD.createdAt, revoked: false }]);
    // By now both are in the index.
    expect(await redis.get(`${prefix}:api-keys-indexed`)).toBe('2');
    expect(await redis.hgetall(`${prefix}:api-keys-of:acme`)).toEqual({ [KEY_ID]: 'c1', [ENDING_KEY_ID]: 'c2' });
    expect(await listed('c2')).toEqual([{ ...entry, createdAt, expiresAt, lastUsedAt }]);
  });

  it('a row of an event counts', async () => {
    const { data, summary } = await readMetrics(api, 'acme', KEY, BY_NAME);
    expect(summary).toEqual({ totalCost: 0.011638 });
    expect(data).toEqual([
      expect.objectContaining({ resourceName: 'box-12', workspace: 'w', resourceType: 'sandbox' }),
    ]);
  });

  it.each([
    ['one event', (event: object) => event],
    ['a list', (event: object) => ({ events: [event] })],
  ])('a job that waits is taken: %s', (_form, jobOf) => {
    const event = {
      eventId: '49cce4fa-7f48-4d7f-ad10-fe56587de700',
      accountId: 'acme',
      workspace: 'w',
      resourceType: 'sandbox',
      resourceName: 'box-0',
      resourceUuid: 'u-0',
      billingDimension: 'sandbox_compute_runtime_gbs',
      usage: 1000,
      timestamp: '2025-10-02T10:00:00Z',
    };
    const events = eventsOfJob(jobOf(event));
    if (!events.ok) throw new Error(events.message);
    expect(events.value.map((input) => parseUsageEvent(input, NOW.getTime()).ok)).toEqual([true]);
  });

  describe('a cursor', () => {
    /** As {@link position} was signed for this question. */
    const cursorOf = async (position: unknown) => {
      await execute(
        api.dependencies.warehouse,
        `INSERT INTO usage_events FORMAT JSONEachRow ${JSON.stringify(OTHER_ROW)}`,
      );
      const { meta } = await readMetrics(api, 'acme', KEY, { ...BY_NAME, limit: '1' });
      const { binding } = JSON.parse(Buffer.from(meta.nextCursor.split('.')[0] ?? '', 'base64url').toString());
      const content = { issuedAt: NOW.getTime(), binding, position };
      const text = Buffer.from(JSON.stringify(content)).toString('base64url');
      const { cursorSecret } = api.dependencies;
      return `${text}.${createHmac('sha256', cursorSecret).update(text).digest('base64url')}`;
    };
    const OTHER_ROW = { ...EVENT_ROW, event_id: '05a34895-4786-4ced-bcec-7912f1e94a0f', resource_name: 'box-13' };

    it.each([
      [
        'into an answer stored with its first page',
        { resultId: '6d87e354-d9ce-433a-b197-660610720aea', storedAt: NOW.getTime(), after: 1 },
      ],
      ['after the values of a group', { cost: '0.01173', values: ['box-20'] }],
      ['of no form that is known', { offset: 10 }],
      ['without a position', undefined],
    ])('%s is refused as one, and is no defect', async (_form, position) => {
      const cursor = await cursorOf(position);
      const answer = await api.request(metricsPath('acme', { ...BY_NAME, cursor }), bearer(KEY));
      expect([answer.status, errorOf(answer).error]).toEqual([400, 'invalid_cursor']);
    });
  });
});
