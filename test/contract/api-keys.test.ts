import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { bearer, errorOf, NOW, startApi, type TestApi } from './fixture.js';

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

describe('creating a key', () => {
  it('shows it once, and it is valid at once', async () => {
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

  it('with an end gives a key that is refused from then on, with a message that says so', async () => {
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

  it('with the role emitter gives one that may send events, and reads nothing', async () => {
    const { key } = created.parse((await create(admin, { role: 'emitter' }, 'meter')).body);
    const { pathname } = new URL(`${api.url}/v0/accounts/acme/metrics`);
    const window = 'startTime=2025-10-01T00:00:00Z&endTime=2025-10-02T00:00:00Z';
    const paths = ['/v0/accounts', `${pathname}?${window}`, `${pathname}/enums/group-by`, KEYS];
    for (const path of [...paths, `/v0/accounts/acme/events?${window}`]) {
      const answer = await api.request(path, bearer(key));
      expect([path, answer.status, errorOf(answer).message]).toEqual([
        path,
        403,
        expect.stringContaining('role emitter'),
      ]);
    }
    expect((await create(key, { role: 'emitter' })).status).toBe(403);
    const list = await api.request('/v0/service_accounts/meter/api_keys', bearer(admin));
    expect(list.body).toMatchObject([{ role: 'emitter' }]);
    expect((await revoke(key, 'meter', keyId(key))).status).toBe(200);
  });

  it('may name the account, which is not another one', async () => {
    expect(created.parse((await create(admin, { role: 'admin', account: 'acme' })).body).account).toBe('acme');
    const foreign = await create(admin, { role: 'admin', account: 'globex' });
    expect([foreign.status, errorOf(foreign).message]).toEqual([403, 'Access denied']);
  });

  it('has the key’s id and the account in the log, and the key nowhere', async () => {
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

  it.each<[unknown, string, string]>([
    ['', 'body', 'The body must be a JSON object, such as {"role":"member"}.'],
    ['role=member', 'body', 'The body must be a JSON object'],
    ['["member"]', 'body', 'The body must be a JSON object'],
    ['null', 'body', 'The body must be a JSON object'],
    [{}, 'role', 'role is missing; it is required.'],
    [{ role: 'owner' }, 'role', 'role must be one of admin, member, emitter (got "owner").'],
    [
      { role: 'member', expires: END },
      'expires',
      '"expires" is not a member; the members are role, account, expiresAt.',
    ],
    [{ role: 'member', expiresAt: '2026-01-01' }, 'expiresAt', 'expiresAt must be RFC 3339 in UTC'],
    [{ role: 'member', expiresAt: null }, 'expiresAt', 'expiresAt '],
    [{ role: 'member', expiresAt: '2025-11-15T12:00:00Z' }, 'expiresAt', 'expiresAt must lie in the future.'],
    [{ role: 'member', account: '' }, 'account', 'account must be 1 to 256 characters'],
  ])('with the body %j is refused', async (body, parameter, message) => {
    const answer = await create(admin, body, 'refused');
    const { code, error, details } = errorOf(answer);
    expect([code, error, details?.map((fault) => fault['parameter'])]).toEqual([400, 'invalid_body', [parameter]]);
    expect(details?.[0]?.['message']).toContain(message);
  });

  it('names every fault of a body', async () => {
    const { details } = errorOf(await create(admin, { role: 'x', expiresAt: 'x', ttl: 1 }));
    expect(details?.map((fault) => fault['parameter'])).toEqual(['role', 'expiresAt', 'ttl']);
  });

  it('for a service account that cannot be is refused, and so is a parameter', async () => {
    for (const answer of [
      await create(admin, { role: 'member' }, 'x'.repeat(257)),
      await create(admin, { role: 'member' }, 'a\u0000b'),
      await create(admin, { role: 'member' }, 'robot', '?force=1'),
    ]) {
      expect([answer.status, errorOf(answer).error]).toEqual([400, 'invalid_parameter']);
    }
    expect((await create(admin, { role: 'member' }, 'robot', '?workspace=main')).status).toBe(200);
  });

  it('is counted, as other requests of the account are', async () => {
    const { headers } = await create(admin, { role: 'member' });
    expect(headers.get('ratelimit')).toMatch(/^"account"/);
    expect((await api.request(KEYS, bearer(admin))).headers.get('ratelimit')).toMatch(/^"account"/);
  });

  it('of an account that has a thousand valid ones is 409, until one is revoked', async () => {
    const full = await api.key('full');
    // One after the other: a thousand at once wait in one connection, longer than a command may.
    for (let others = 0; others < 998; others += 1) await api.key('full', 'member', 'robot');
    const { id } = created.parse((await create(full, { role: 'member' })).body);
    const answer = await create(full, { role: 'member' });
    expect([answer.status, errorOf(answer).error]).toEqual([409, 'too_many_api_keys']);
    expect((await revoke(full, 'robot', id)).status).toBe(200);
    expect((await create(full, { role: 'member' })).status).toBe(200);
  });
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

  it('is an array at 2026-04-16, and takes no parameters there', async () => {
    const { body } = await list('', admin, '2026-04-16');
    expect(
      z
        .array(z.looseObject({ id: z.string() }))
        .parse(body)
        .map(({ id }) => id),
    ).toEqual(ids);
    expect(errorOf(await list('?limit=2', admin, '2026-04-16')).message).toContain('Svc-Version: 2026-04-28');
  });

  it('shows all of the account’s, and no other account’s, once, in pages and in order', async () => {
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

  it('says which are revoked, and when they were last used, to the hour', async () => {
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

  it('of which the caller’s accounts have no key is 404', async () => {
    const answer = await api.request('/v0/service_accounts/nobody/api_keys', bearer(admin));
    expect([answer.status, errorOf(answer).message]).toEqual([
      404,
      'There is no such service account: no account that you are an admin of has a key of it.',
    ]);
  });

  it.each(['limit=0', 'sort=name:asc', 'sort=', 'page=2', 'limit=1&limit=1'])('with %s is refused', async (query) => {
    expect(errorOf(await list(`?${query}`)).error).toBe('invalid_parameter');
  });

  it('goes on for another admin of the account, and not for another service account', async () => {
    const { meta } = page.parse((await list('?limit=2')).body);
    const other = await api.key('acme', 'admin', 'second admin');
    expect((await list(`?limit=2&cursor=${meta.nextCursor}`, other)).status).toBe(200);
    const elsewhere = await api.request(`${KEYS}?cursor=${meta.nextCursor}`, {
      headers: { ...bearer(admin).headers, 'svc-version': '2026-04-28' },
    });
    expect(errorOf(elsewhere).error).toBe('invalid_cursor');
  });
});
