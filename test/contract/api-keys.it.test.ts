import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { bearer, errorOf, NOW, startApi, type TestApi } from '../harness/api.js';

let api: TestApi;
let admin: string;

beforeAll(async () => {
  api = await startApi();
  admin = await api.key('acme');
});
afterAll(() => api.stop());

const keyId = (key: string) => key.split('_')[1] ?? '';
const revoke = (caller: string, clientId: string, id: string, query = '') =>
  api.request(`/v0/service_accounts/${encodeURIComponent(clientId)}/api_keys/${encodeURIComponent(id)}${query}`, {
    method: 'DELETE',
    ...bearer(caller),
  });
const isValid = async (key: string) => (await api.request('/v0/accounts', bearer(key))).status === 200;

const KEYS = '/v0/service_accounts/robot/api_keys';
const create = (caller: string, body: unknown, clientId = 'robot', query = '') =>
  api.request(`/v0/service_accounts/${encodeURIComponent(clientId)}/api_keys${query}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...bearer(caller),
  });
const created = z.strictObject({
  id: z.string(),
  account: z.string(),
  role: z.string(),
  createdAt: z.string(),
  expiresAt: z.string().optional(),
  revoked: z.boolean(),
  key: z.string(),
});
const END = '2025-11-16T00:00:00Z';

it('a key that is created is shown once, and is valid at once', async () => {
  const { key, ...entry } = created.parse((await create(admin, { role: 'member' }, 'new robot')).body);
  expect(entry).toEqual({
    id: keyId(key),
    account: 'acme',
    role: 'member',
    createdAt: '2025-11-15T12:00:00.000Z',
    revoked: false,
  });
  const accounts = await api.request('/v0/accounts', bearer(key));
  expect(accounts.body).toMatchObject([{ id: 'acme', role: 'member' }]);
  const list = await api.request('/v0/service_accounts/new%20robot/api_keys', bearer(admin));
  expect(list.body).toEqual([{ ...entry, lastUsedAt: '2025-11-15T12:00:00.000Z' }]);
  expect(list.text).not.toContain(key.split('_')[2]);
});

it('a key with an end is refused from then on, with a message that says so', async () => {
  const answer = created.parse((await create(admin, { role: 'admin', expiresAt: END })).body);
  expect(answer.expiresAt).toBe('2025-11-16T00:00:00.000Z');
  try {
    api.clock.now = new Date(Date.parse(END) - 1);
    expect(await isValid(answer.key)).toBe(true);
    api.clock.now = new Date(END);
    const refused = await api.request('/v0/accounts', bearer(answer.key));
    const { code, error, message } = errorOf(refused);
    expect([code, error]).toEqual([401, 'unauthorized']);
    expect(message).toBe(
      'The API key expired at 2025-11-16T00:00:00.000Z; ask an admin of the account for another one.',
    );
    expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"');
  } finally {
    api.clock.now = NOW;
  }
});

it('the log has the id and the account of a key that is created, and the key nowhere', async () => {
  api.log.length = 0;
  const { id, key } = created.parse((await create(admin, { role: 'member' }, 'logged')).body);
  expect(api.log).toContainEqual(
    expect.objectContaining({
      event: 'request',
      method: 'POST',
      caller: 'admin of acme',
      account: 'acme',
      keyId: id,
    }),
  );
  expect(JSON.stringify(api.log)).not.toContain(key.split('_')[2]);
});

it('a request that creates a key is counted as other requests of the account are', async () => {
  const { headers } = await create(admin, { role: 'member' });
  expect(headers.get('ratelimit')).toMatch(/^"account"/);
  expect((await api.request(KEYS, bearer(admin))).headers.get('ratelimit')).toMatch(/^"account"/);
});

it('an account that has a thousand valid keys gets 409 for another, until one is revoked', async () => {
  const full = await api.key('full');
  // One after the other: a thousand at once wait in one connection, longer than a command may.
  for (let others = 0; others < 998; others += 1) await api.key('full', 'member', 'robot');
  const { id } = created.parse((await create(full, { role: 'member' })).body);
  const answer = await create(full, { role: 'member' });
  expect([answer.status, errorOf(answer).error]).toEqual([409, 'too_many_api_keys']);
  expect((await revoke(full, 'robot', id)).status).toBe(200);
  expect((await create(full, { role: 'member' })).status).toBe(200);
});

describe('listing the keys of a service account', () => {
  const page = z.strictObject({
    data: z.array(z.looseObject({ id: z.string(), createdAt: z.string() })),
    meta: z.strictObject({ hasMore: z.boolean(), nextCursor: z.string(), total: z.number() }),
  });
  const list = (query: string, caller = admin, version = '2026-04-28') =>
    api.request(`/v0/service_accounts/walked/api_keys${query}`, {
      headers: { ...bearer(caller).headers, 'svc-version': version },
    });
  const ids: string[] = [];
  beforeAll(async () => {
    for (let minute = 0; minute < 5; minute += 1) {
      const at = new Date(NOW.getTime() - minute * 60_000);
      ids.push((await api.keys.create({ account: 'acme', role: 'member', clientId: 'walked' }, at)).keyId);
    }
    await api.keys.revoke(ids[4] ?? '', NOW);
    await api.key('globex', 'member', 'walked');
  });

  it('the list of keys is an array at 2026-04-16', async () => {
    const { body } = await list('', admin, '2026-04-16');
    expect(
      z
        .array(z.looseObject({ id: z.string() }))
        .parse(body)
        .map(({ id }) => id),
    ).toEqual(ids);
  });

  it('the list of keys shows all of the account’s, and no other account’s, once, in pages and in order', async () => {
    for (const [sort, expected] of [
      ['', ids],
      ['&sort=createdAt:asc', ids.toReversed()],
    ] as const) {
      const found: string[] = [];
      let cursor = '';
      do {
        const { data, meta } = page.parse((await list(`?limit=2${sort}&cursor=${cursor}`)).body);
        expect(meta.total).toBe(5);
        found.push(...data.map(({ id }) => id));
        cursor = meta.nextCursor;
      } while (cursor !== '');
      expect(found).toEqual(expected);
    }
  });

  it('the list of keys says which are revoked, and when they were last used, to the hour', async () => {
    const { data } = page.parse((await list('')).body);
    expect(data.map((entry) => entry['revoked'])).toEqual([false, false, false, false, true]);
    expect(data.map((entry) => 'lastUsedAt' in entry)).toEqual([false, false, false, false, false]);
    const used = await api.key('acme', 'admin', 'used');
    const lastUse = async () => {
      const { body } = await api.request('/v0/service_accounts/used/api_keys', bearer(admin));
      return z.array(z.looseObject({ lastUsedAt: z.string().optional() })).parse(body)[0]?.lastUsedAt;
    };
    expect(await lastUse()).toBeUndefined();
    try {
      for (const [at, shown] of [
        ['2025-11-15T12:59:59.999Z', '2025-11-15T12:00:00.000Z'],
        ['2025-11-15T14:30:00Z', '2025-11-15T14:00:00.000Z'],
      ] as const) {
        api.clock.now = new Date(at);
        expect(await isValid(used)).toBe(true);
        // The requests' commands follow the write on the same connection.
        expect(await lastUse()).toBe(shown);
      }
    } finally {
      api.clock.now = NOW;
    }
  });

  it('the list of keys goes on for another admin of the account, and not for another service account', async () => {
    const { meta } = page.parse((await list('?limit=2')).body);
    const other = await api.key('acme', 'admin', 'second admin');
    expect((await list(`?limit=2&cursor=${meta.nextCursor}`, other)).status).toBe(200);
    const elsewhere = await api.request(`${KEYS}?cursor=${meta.nextCursor}`, {
      headers: { ...bearer(admin).headers, 'svc-version': '2026-04-28' },
    });
    expect(errorOf(elsewhere).error).toBe('invalid_cursor');
  });
});

it('an admin of the owning account revokes with 200 and no body, and the key is invalid at once', async () => {
  const key = await api.key('acme', 'member', 'robot');
  const answer = await revoke(admin, 'robot', keyId(key));
  expect([answer.status, answer.text]).toEqual([200, '']);
  expect(await isValid(key)).toBe(false);
});

it('an admin of the owning account revokes again with 200, and the first time stays', async () => {
  const id = keyId(await api.key('acme', 'member', 'robot'));
  await revoke(admin, 'robot', id);
  api.clock.now = new Date(NOW.getTime() + 60_000);
  expect((await revoke(admin, 'robot', id)).status).toBe(200);
  api.clock.now = NOW;
  expect((await api.keys.find(id))?.revokedAt).toBe(NOW.toISOString());
});

it('an admin of the owning account gets 404 under another client id', async () => {
  const key = await api.key('acme', 'member', 'robot');
  expect((await revoke(admin, 'other robot', keyId(key))).status).toBe(404);
  expect(await isValid(key)).toBe(true);
});

it('a workspace is taken, and not looked at, where a key is created or revoked', async () => {
  expect((await create(admin, { role: 'member' }, 'robot', '?workspace=main')).status).toBe(200);
  const key = await api.key('acme', 'member', 'robot');
  expect((await revoke(admin, 'robot', keyId(key), '?workspace=main')).status).toBe(200);
  expect(await isValid(key)).toBe(false);
});

it('everyone else gets the 404 of a key that does not exist', async () => {
  const key = await api.key('acme', 'member', 'robot');
  const member = await api.key('acme', 'member');
  const foreignAdmin = await api.key('globex');
  const sameClient = await api.key('acme', 'member', 'robot');
  for (const caller of [member, foreignAdmin, sameClient]) {
    const [existing, missing] = [await revoke(caller, 'robot', keyId(key)), await revoke(caller, 'robot', 'none')];
    expect([existing.status, errorOf(existing).message]).toEqual([404, errorOf(missing).message]);
  }
  expect(await isValid(key)).toBe(true);
});

it('a key may revoke itself, whatever its role', async () => {
  for (const role of ['admin', 'member', 'emitter'] as const) {
    const key = await api.key('acme', role, 'leaving');
    const leave = () => revoke(key, 'leaving', keyId(key));
    expect([(await leave()).status, (await leave()).status]).toEqual([200, 401]);
  }
});
