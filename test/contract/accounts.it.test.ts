/** The list of a caller's accounts, and GET /v0/metrics: all of them in one response. Which accounts a token names is in tokens. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ALL_ACCOUNTS, MeterlineClient } from '@meterline/client';
import type { KeyRole } from '@meterline/service/access';
import { z } from 'zod';
import {
  allPages,
  bearer,
  DAY,
  errorOf,
  metricsBody,
  metricsPath,
  NOW,
  startApi,
  type TestApi,
} from '../harness/api.js';
import { event } from '../harness/events.js';
import { startTokenIssuer, type TokenIssuer } from './callers.js';

let api: TestApi;
let issuer: TokenIssuer;
let key: string;
let operator: string;
/** Tokens for acme and globex: of an admin of both, and of one who is a member of the second. */
let admin: string;
let mixed: string;

beforeAll(async () => {
  issuer = await startTokenIssuer(NOW);
  api = await startApi({ tokens: issuer.verifier });
  key = await api.key('acme');
  operator = await api.key('platform', 'operator');
  admin = await token({ acme: 'admin', globex: 'admin' });
  mixed = await token({ acme: 'admin', globex: 'member' });
  const costs = { acme: '3', globex: '2', initech: '100' };
  await api.seed(
    Object.entries(costs).flatMap(([accountId, cost]) => [
      event({ accountId, cost, workspace: 'main', resourceName: 'shared', resourceUuid: `${accountId}-1` }),
      event({ accountId, cost: '1', workspace: `of ${accountId}`, resourceName: `${accountId}-only` }),
    ]),
  );
});
afterAll(async () => {
  await api.stop();
  await issuer.close();
});

const token = (accounts: Readonly<Record<string, KeyRole>>, sub = 'user-1') => issuer.sign({ sub, accounts });

describe('the list of accounts', () => {
  const IDS = Array.from({ length: 120 }, (_, index) => `account-${String(index).padStart(3, '0')}`);
  const NEWEST = Array.from({ length: 12 }, (_, decade) => IDS.slice(110 - decade * 10, 120 - decade * 10)).flat();
  let user: string;
  beforeAll(async () => {
    user = await token(Object.fromEntries(IDS.map((id) => [id, 'member'])));
    for (const [index, id] of IDS.entries()) {
      await api.dependencies.accounts.register(id, new Date(NOW.getTime() + Math.floor(index / 10) * 1_000));
    }
  });

  const list = (query = '', credential = user, version = '2026-04-28') =>
    api.request(`/v0/accounts${query}`, { headers: { ...bearer(credential).headers, 'svc-version': version } });
  const page = z.strictObject({
    data: z.array(z.strictObject({ id: z.string(), name: z.string(), role: z.string(), createdAt: z.string() })),
    meta: z.strictObject({ hasMore: z.boolean(), nextCursor: z.string(), total: z.number() }),
  });
  const readPage = async (query = '', credential?: string) => page.parse((await list(query, credential)).body);
  const ACME = { id: 'acme', name: 'acme', role: 'admin', createdAt: '2025-11-15T12:00:00.000Z' };

  it('the list of accounts is a bare array at 2026-04-16, and an object with data and meta from 2026-04-28 on', async () => {
    expect((await api.request('/v0/accounts', bearer(key))).body).toEqual([ACME]);
    expect(await readPage('', key)).toEqual({ data: [ACME], meta: { hasMore: false, nextCursor: '', total: 1 } });
    expect((await list('', user, '2026-04-16')).body).toHaveLength(120);
  });

  it.each(['2026-04-16', '2026-04-28'])('at %s a workspace is taken, and not looked at', async (version) => {
    const plain = await list('', key, version);
    for (const query of ['?workspace=main', '?workspace=', '?workspace=a&workspace=b']) {
      const { status, text } = await list(query, key, version);
      expect([status, text]).toEqual([200, plain.text]);
    }
  });

  it.each([
    ['', 50],
    ['?limit=201', 120],
    ['?limit=119', 119],
    ['?limit=1', 1],
  ])('the list of accounts%s has %d on its first page', async (limit, count) => {
    const { data, meta } = await readPage(limit);
    expect([data.length, meta.hasMore, meta.total]).toEqual([count, count < 120, 120]);
  });

  it.each([
    ['', NEWEST],
    ['&sort=createdAt:desc', NEWEST],
    ['&sort=createdAt:asc', IDS],
    ['&sort=name:asc', IDS],
    ['&sort=name:desc', [...IDS].reverse()],
  ])('the list of accounts in pages%s has every account once, in order', async (sort, expected) => {
    const pages = await allPages((cursor) => readPage(`?limit=7${sort}&cursor=${cursor}`));
    for (const { meta } of pages) expect(meta.hasMore).toBe(meta.nextCursor !== '');
    expect(pages.flatMap(({ data }) => data.map(({ id }) => id))).toEqual(expected);
  });

  it('the list of accounts has cursors that are bound to caller and sort', async () => {
    const { meta } = await readPage('?limit=7');
    const other = await token({ [IDS[0] ?? '']: 'member' }, 'user-2');
    for (const response of [
      await list(`?sort=name:asc&cursor=${meta.nextCursor}`),
      await list(`?cursor=${meta.nextCursor}`, other),
    ]) {
      expect(errorOf(response).error).toBe('invalid_cursor');
    }
  });

  it('the list of accounts has one without a time where no key of it was ever created', async () => {
    const { body } = await api.request('/v0/accounts', bearer(mixed));
    expect(body).toEqual([ACME, { id: 'globex', name: 'globex', role: 'member' }]);
  });

  it('the list of accounts of an operator has every registered account, as an admin of it', async () => {
    const own = await startApi({ warehouse: api.dependencies.warehouse });
    for (const account of ['acme', 'globex', 'umbrella *?[]']) await own.key(account, 'member');
    const body = (await own.request('/v0/accounts', bearer(await own.key('platform', 'operator')))).body;
    await own.stop();
    expect(body).toMatchObject(['acme', 'globex', 'platform', 'umbrella *?[]'].map((id) => ({ id, role: 'admin' })));
  });
});

type Parameters = readonly (readonly [name: string, value: string])[];

function ask(credential: string, ...query: Parameters) {
  const parameters = [...Object.entries(DAY), ...query.map(([name, value]) => [name, value])];
  return api.request(`/v0/metrics?${new URLSearchParams(parameters)}`, bearer(credential));
}

async function read(credential: string, ...query: Parameters) {
  const response = await ask(credential, ...query);
  if (response.status !== 200) throw new Error(response.text);
  return metricsBody.parse(response.body);
}

const costsBy = async (credential: string, member: 'account' | 'workspace' | 'resourceName', ...query: Parameters) =>
  (await read(credential, ...query)).data.map((entry) => [entry[member], entry.summary.cost]);
const BY_ACCOUNT = ['groupBy', 'account'] as const;
const BY_NAME = ['groupBy', 'resource_name'] as const;

it('the metrics of all accounts have the accounts of the caller and no other, by cost', async () => {
  expect(await costsBy(admin, 'account', BY_ACCOUNT)).toEqual([
    ['acme', 4],
    ['globex', 3],
  ]);
  expect((await read(admin)).summary).toEqual({ totalCost: 7 });
  expect((await read(await token({}))).summary).toEqual({ totalCost: 0 });
  expect(await costsBy(key, 'account', BY_ACCOUNT)).toEqual([['acme', 4]]);
  for (const account of ['acme', 'globex', 'initech']) await api.key(account, 'member');
  expect(await costsBy(operator, 'account', BY_ACCOUNT, ['excludeAccount', 'acme'])).toEqual([
    ['initech', 101],
    ['globex', 3],
  ]);
});

it('the metrics of all accounts have a dimension more, the first of three', async () => {
  const groupBy = ['groupBy', 'billing_dimension,account,resource_name'] as const;
  const { data } = await read(admin, groupBy, ['resourceName', 'shared']);
  const entry = (account: string, cost: number) => ({
    ...{ account, workspace: 'main', resourceType: 'sandbox', resourceName: 'shared' },
    billingDimension: 'sandbox_compute_runtime_gbs',
    summary: { cost, usage: 1 },
  });
  expect(data.map(({ timeseries: _, ...fields }) => fields)).toEqual([entry('acme', 3), entry('globex', 2)]);
});

it.each(['', 'workspace', 'resource_uuid,billing_dimension'])(
  'the metrics of all accounts are for one account by groupBy=%s to the byte what that account answers',
  async (groupBy) => {
    const query = groupBy === '' ? [] : ([['groupBy', groupBy]] as const);
    const one = await api.request(metricsPath('acme', { ...DAY, ...Object.fromEntries(query) }), bearer(admin));
    for (const credential of [admin, mixed, operator]) {
      expect((await ask(credential, ['account', 'acme'], ...query)).text).toBe(one.text);
    }
  },
);

it('the metrics of all accounts show no workspace where the caller is a member of one of the accounts', async () => {
  const workspaces = async (credential: string, ...query: Parameters) =>
    (await read(credential, BY_NAME, ...query)).data.map(({ workspace }) => workspace);
  expect(await workspaces(admin)).toEqual(['main', 'of acme', 'of globex']);
  expect(await workspaces(mixed)).toEqual([undefined, undefined, undefined]);
  expect(await workspaces(mixed, ['account', 'acme'])).toEqual(['main', 'of acme']);
  expect(await workspaces(mixed, ['excludeAccount', 'globex'])).toEqual(['main', 'of acme']);
  expect(errorOf(await ask(mixed, ['groupBy', 'workspace'])).error).toBe('forbidden');
  expect(await costsBy(mixed, 'workspace', ['groupBy', 'workspace'], ['account', 'acme'])).toHaveLength(2);
});

it('the metrics of all accounts cannot be made to show an account that is not the caller’s', async () => {
  expect(errorOf(await ask(admin, ['account', '\0user-1'])).error).toBe('invalid_parameter');
  for (const query of [
    ['resourceName', 'initech-only'],
    ['resourceUuid', 'initech-1'],
    ['workspace', 'of initech'],
  ] as const) {
    const { text } = await ask(admin, query, ['groupBy', 'account,resource_uuid']);
    expect([query, text.includes('initech')]).toEqual([query, false]);
  }
});

it('the metrics of all accounts have cursors and kept responses for these accounts and roles alone', async () => {
  const query = [BY_ACCOUNT, ['limit', '1']] as const;
  const cursorOf = async (credential: string) =>
    ['cursor', (await read(credential, ...query)).meta.nextCursor] as const;
  const own = await cursorOf(admin);
  for (const [credential, cursor] of [
    [admin, await cursorOf(operator)],
    [mixed, await cursorOf(operator)],
    [mixed, own],
  ] as const) {
    expect(errorOf(await ask(credential, ...query, cursor)).error).toBe('invalid_cursor');
  }
  expect(await costsBy(admin, 'account', ...query, own)).toEqual([['globex', 3]]);

  const cached = async (credential: string) => {
    const headers = { ...bearer(credential).headers, 'cache-control': 'max-age=300' };
    const search = new URLSearchParams({ ...DAY, groupBy: 'resource_name' });
    return (await api.request(`/v0/metrics?${search}`, { headers })).text;
  };
  const texts: string[] = [];
  for (const credential of [admin, mixed, operator, admin, mixed, operator]) texts.push(await cached(credential));
  expect([new Set(texts).size, texts.slice(3)]).toEqual([3, texts.slice(0, 3)]);
});

it('the metrics of all accounts come in pages of one response while events arrive', async () => {
  const window = { startTime: '2025-09-01T00:00:00Z', endTime: '2025-09-02T00:00:00Z' };
  const at = window.startTime;
  const many = Array.from({ length: 250 }, (_, index) =>
    event({ accountId: index % 2 ? 'acme' : 'globex', at, resourceName: `box-${index}` }),
  );
  await api.seed(many);
  const client = new MeterlineClient({ baseUrl: api.url, credential: mixed, retries: 0 });
  const found: string[] = [];
  for await (const page of client.metricsPages(ALL_ACCOUNTS, { ...window, groupBy: ['account', 'resource_name'] })) {
    expect(page.summary.totalCost).toBe('250');
    found.push(...page.data.map(({ account, resourceName }) => `${account} ${resourceName}`));
    await api.seed([event({ accountId: 'acme', at, resourceName: `late-${found.length}` })]);
  }
  expect(found.sort()).toEqual(many.map(({ accountId, resourceName }) => `${accountId} ${resourceName}`).sort());
});
