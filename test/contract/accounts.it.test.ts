import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Caller, TokenVerifier } from '@meterline/api';
import { z } from 'zod';
import { errorOf, NOW, startApi, type TestApi } from '../harness/api.js';

/** Any token is a caller of its name in 120 accounts; which accounts a real token names is in tokens.it.test.ts. */
const tokens: TokenVerifier = {
  verify: async (token): Promise<Caller> => ({
    id: token,
    scopes: new Set(['admin']),
    roles: new Map(IDS.map((id) => [id, 'member'])),
  }),
};
const IDS = Array.from({ length: 120 }, (_, index) => `account-${String(index).padStart(3, '0')}`);

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi({ tokens });
  key = await api.key('acme');
  for (const [index, id] of IDS.entries()) {
    await api.dependencies.accounts.register(id, new Date(NOW.getTime() + Math.floor(index / 10) * 1_000));
  }
});
afterAll(() => api.stop());

const list = (query = '', version = '2026-04-28', token = 'platform-user') =>
  api.request(`/v0/accounts${query}`, { headers: { authorization: `Bearer ${token}`, 'svc-version': version } });

const page = z.strictObject({
  data: z.array(z.strictObject({ id: z.string(), name: z.string(), role: z.string(), createdAt: z.string() })),
  meta: z.strictObject({ hasMore: z.boolean(), nextCursor: z.string(), total: z.number() }),
});
const readPage = async (query = '', token?: string) => page.parse((await list(query, '2026-04-28', token)).body);

it("the list of accounts at 2026-04-16 is a bare array of the caller's accounts", async () => {
  const answer = await api.request('/v0/accounts', { headers: { authorization: `Bearer ${key}` } });
  expect(answer.body).toEqual([{ id: 'acme', name: 'acme', role: 'admin', createdAt: '2025-11-15T12:00:00.000Z' }]);
});

it('the list of accounts at 2026-04-16 has all of them', async () => {
  expect((await list('', '2026-04-16')).body).toHaveLength(120);
});

it.each(['2026-04-16', '2026-04-28'])('at %s a workspace is taken, and not looked at', async (version) => {
  const plain = await list('', version, key);
  for (const query of ['?workspace=main', '?workspace=', '?workspace=a&workspace=b']) {
    const { status, text } = await list(query, version, key);
    expect([status, text]).toEqual([200, plain.text]);
  }
});

describe('at 2026-04-28', () => {
  it('the list of accounts at 2026-04-28 is an object with data and meta', async () => {
    expect(await readPage('', key)).toEqual({
      data: [{ id: 'acme', name: 'acme', role: 'admin', createdAt: '2025-11-15T12:00:00.000Z' }],
      meta: { hasMore: false, nextCursor: '', total: 1 },
    });
  });

  it('the list of accounts at 2026-04-28 has pages of 50 by default', async () => {
    const { data, meta } = await readPage();
    expect([data.length, meta.hasMore, meta.total]).toEqual([50, true, 120]);
  });

  it.each([
    ['201', 120],
    ['200', 120],
    ['119', 119],
    ['1', 1],
  ])('the list of accounts at 2026-04-28 with limit=%s has %d', async (limit, count) => {
    expect((await readPage(`?limit=${limit}`)).data).toHaveLength(count);
  });

  const oldestFirst = IDS;
  const newestFirst = Array.from({ length: 12 }, (_, decade) => IDS.slice(110 - decade * 10, 120 - decade * 10)).flat();
  it.each([
    ['', newestFirst],
    ['&sort=createdAt:desc', newestFirst],
    ['&sort=createdAt:asc', oldestFirst],
    ['&sort=name:asc', IDS],
    ['&sort=name:desc', [...IDS].reverse()],
  ])('the list of accounts at 2026-04-28 in pages%s has every account once, in order', async (sort, expected) => {
    const found: string[] = [];
    let cursor = '';
    do {
      const { data, meta } = await readPage(`?limit=7${sort}&cursor=${cursor}`);
      found.push(...data.map(({ id }) => id));
      expect(meta.hasMore).toBe(meta.nextCursor !== '');
      cursor = meta.nextCursor;
    } while (cursor !== '');
    expect(found).toEqual(expected);
  });

  it('the list of accounts at 2026-04-28 has cursors that are bound to caller and sort', async () => {
    const { meta } = await readPage('?limit=7');
    expect(errorOf(await list(`?sort=name:asc&cursor=${meta.nextCursor}`)).error).toBe('invalid_cursor');
    const other = await list(`?cursor=${meta.nextCursor}`, '2026-04-28', 'somebody-else');
    expect(errorOf(other).error).toBe('invalid_cursor');
  });
});
