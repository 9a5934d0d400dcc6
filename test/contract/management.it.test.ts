/**
 * The management API: the list of accounts, API keys, and provisioning. alerts.it.test.ts covers alerts, authorisation.it.test.ts who may do
 * what, and errors.it.test.ts the errors.
 */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { TooManyApiKeys } from '@meterline/service/access';
import { z } from 'zod';
import { allPages, bearer, errorOf, NOW, startApi, type TestApi } from '../harness/api.js';
import { startTokenIssuer, type TokenIssuer } from './callers.js';

let api: TestApi;
let issuer: TokenIssuer;
let admin: string;
beforeAll(async () => {
  issuer = await startTokenIssuer(NOW);
  api = await startApi({ tokens: issuer.verifier }, 'away');
  admin = await api.key('acme');
});
afterAll(async () => {
  await api.stop();
  await issuer.close();
});

describe('the list of accounts', () => {
  const IDS = Array.from({ length: 120 }, (_, index) => `account-${String(index).padStart(3, '0')}`);
  const NEWEST = Array.from({ length: 12 }, (_, decade) => IDS.slice(110 - decade * 10, 120 - decade * 10)).flat();
  let user: string;
  beforeAll(async () => {
    user = await issuer.sign({ accounts: IDS });
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
    expect((await api.request('/v0/accounts', bearer(admin))).body).toEqual([ACME]);
    expect(await readPage('', admin)).toEqual({ data: [ACME], meta: { hasMore: false, nextCursor: '', total: 1 } });
    expect((await list('', user, '2026-04-16')).body).toHaveLength(120);
  });

  it.each(['2026-04-16', '2026-04-28'])(
    'the list of accounts at %s ignores the parameter workspace',
    async (version) => {
      const plain = await list('', admin, version);
      for (const query of ['?workspace=main', '?workspace=', '?workspace=a&workspace=b']) {
        const { status, text } = await list(query, admin, version);
        expect([status, text]).toEqual([200, plain.text]);
      }
    },
  );

  it.each([
    ['', 50],
    ['?limit=201', 120],
    ['?limit=119', 119],
    ['?limit=1', 1],
  ])('the list of accounts%s has %d entries on its first page', async (limit, count) => {
    const { data, meta } = await readPage(limit);
    expect([data.length, meta.hasMore, meta.total]).toEqual([count, count < 120, 120]);
  });

  it.each([
    ['', NEWEST],
    ['&sort=createdAt:desc', NEWEST],
    ['&sort=createdAt:asc', IDS],
    ['&sort=name:asc', IDS],
    ['&sort=name:desc', [...IDS].reverse()],
  ])('the list of accounts in pages%s contains every account once, in order', async (sort, expected) => {
    const pages = await allPages((cursor) => readPage(`?limit=7${sort}&cursor=${cursor}`));
    for (const { meta } of pages) expect(meta.hasMore).toBe(meta.nextCursor !== '');
    expect(pages.flatMap(({ data }) => data.map(({ id }) => id))).toEqual(expected);
  });

  it('the list of accounts has cursors that are bound to the caller and the order', async () => {
    const { meta } = await readPage('?limit=7');
    const other = await issuer.sign({ sub: 'user-2', accounts: [IDS[0]] });
    for (const response of [
      await list(`?sort=name:asc&cursor=${meta.nextCursor}`),
      await list(`?cursor=${meta.nextCursor}`, other),
    ]) {
      expect(errorOf(response).error).toBe('invalid_cursor');
    }
  });

  it('the list of accounts has an account without createdAt if no key of it was ever created', async () => {
    const { body } = await api.request(
      '/v0/accounts',
      bearer(await issuer.sign({ accounts: { acme: 'admin', globex: 'member' } })),
    );
    expect(body).toEqual([ACME, { id: 'globex', name: 'globex', role: 'member' }]);
  });
});

describe('API keys', () => {
  const keyId = (key: string) => key.split('_')[1] ?? '';
  const revoke = (caller: string, clientId: string, id: string, query = '') =>
    api.request(`/v0/service_accounts/${encodeURIComponent(clientId)}/api_keys/${encodeURIComponent(id)}${query}`, {
      method: 'DELETE',
      ...bearer(caller),
    });
  const isValid = async (key: string) => (await api.request('/v0/accounts', bearer(key))).status === 200;

  const create = (caller: string, body: unknown, clientId = 'robot', query = '') =>
    api.request(`/v0/service_accounts/${encodeURIComponent(clientId)}/api_keys${query}`, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...bearer(caller),
    });
  const created = z.strictObject({
    id: z.string(),
    clientId: z.string(),
    account: z.string(),
    role: z.string(),
    createdAt: z.string(),
    expiresAt: z.string().optional(),
    revoked: z.boolean(),
    key: z.string(),
  });
  const END = '2025-11-16T00:00:00Z';

  it('a new key is shown once and is valid immediately', async () => {
    const { key, ...entry } = created.parse((await create(admin, { role: 'member' }, 'new robot')).body);
    expect(entry).toEqual({
      id: keyId(key),
      clientId: 'new robot',
      account: 'acme',
      role: 'member',
      createdAt: '2025-11-15T12:00:00.000Z',
      revoked: false,
    });
    const accounts = await api.request('/v0/accounts', bearer(key));
    expect(accounts.body).toMatchObject([{ id: 'acme', role: 'member' }]);
    const listed = await api.request('/v0/service_accounts/new%20robot/api_keys', bearer(admin));
    expect(listed.body).toEqual([{ ...entry, lastUsedAt: '2025-11-15T12:00:00.000Z' }]);
    expect(listed.text).not.toContain(key.split('_')[2]);
  });

  it('a key is rejected from its expiration time on, with a message that names the time', async () => {
    const response = created.parse((await create(admin, { role: 'admin', expiresAt: END })).body);
    expect(response.expiresAt).toBe('2025-11-16T00:00:00.000Z');
    try {
      api.clock.now = new Date(Date.parse(END) - 1);
      expect(await isValid(response.key)).toBe(true);
      api.clock.now = new Date(END);
      const refused = await api.request('/v0/accounts', bearer(response.key));
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

  it('the log has the id and the account of a new key, and not the key', async () => {
    api.log.length = 0;
    const response = await create(admin, { role: 'member' }, 'logged');
    const { id, key } = created.parse(response.body);
    const said = { event: 'request', method: 'POST', caller: 'admin of acme', account: 'acme', keyId: id };
    expect(api.log).toContainEqual(expect.objectContaining(said));
    expect(JSON.stringify(api.log)).not.toContain(key.split('_')[2]);
    // The request counts for the account like any other.
    expect(response.headers.get('ratelimit')).toMatch(/^"account"/);
  });

  it('a new key is 409 if the account has the maximum number of keys, with a message that says what to do', async () => {
    jest.spyOn(api.keys, 'create').mockRejectedValueOnce(new TooManyApiKeys());
    const { status, body } = await create(admin, { role: 'member' });
    const message = expect.stringMatching(/already has the maximum number of valid API keys; revoke unused keys/);
    expect([status, body]).toMatchObject([409, { error: 'too_many_api_keys', message }]);
  });

  const page = z.strictObject({
    data: z.array(z.looseObject({ id: z.string(), revoked: z.boolean(), lastUsedAt: z.string().optional() })),
    meta: z.strictObject({ hasMore: z.boolean(), nextCursor: z.string(), total: z.number() }),
  });
  const list = (query = '', { clientId = 'walked', caller = admin, version = '2026-04-28' } = {}) =>
    api.request(`/v0/service_accounts/${clientId}/api_keys${query}`, {
      headers: { ...bearer(caller).headers, 'svc-version': version },
    });
  const readPage = async (query = '', options = {}) => page.parse((await list(query, options)).body);

  it('the list of keys contains the keys of the account once, in pages and in order, and marks revoked keys', async () => {
    const ids: string[] = [];
    for (let minute = 0; minute < 5; minute += 1) {
      const at = new Date(NOW.getTime() - minute * 60_000);
      ids.push((await api.keys.create({ account: 'acme', role: 'member', clientId: 'walked' }, at)).keyId);
    }
    await api.keys.revoke(ids[4] ?? '', NOW);
    await api.key('globex', 'member', 'walked');
    for (const [sort, expected] of [
      ['', ids],
      ['&sort=createdAt:asc', ids.toReversed()],
    ] as const) {
      const pages = await allPages((cursor) => readPage(`?limit=2${sort}&cursor=${cursor}`));
      for (const { meta } of pages) expect(meta.total).toBe(5);
      expect(pages.flatMap(({ data }) => data.map(({ id }) => id))).toEqual(expected);
    }
    const { data } = await readPage();
    expect(data.map(({ revoked }) => revoked)).toEqual([false, false, false, false, true]);
    expect((await list('', { version: '2026-04-16' })).body).toEqual(data);
  });

  it('the list of keys has cursors that another admin of the account may use, but not for another service account', async () => {
    for (let keys = 0; keys < 2; keys += 1) await api.key('acme', 'member', 'paged');
    const { meta } = await readPage('?limit=1', { clientId: 'paged' });
    const next = `?limit=1&cursor=${meta.nextCursor}`;
    const other = await api.key('acme', 'admin', 'second admin');
    expect((await list(next, { clientId: 'paged', caller: other })).status).toBe(200);
    expect(errorOf(await list(next, { clientId: 'robot' })).error).toBe('invalid_cursor');
  });

  it('an admin of the account revokes a key with 200 and no body, and revoking it again keeps the first time', async () => {
    const key = await api.key('acme', 'member', 'robot');
    const response = await revoke(admin, 'robot', keyId(key));
    expect([response.status, response.text, await isValid(key)]).toEqual([200, '', false]);
    api.clock.now = new Date(NOW.getTime() + 60_000);
    expect((await revoke(admin, 'robot', keyId(key))).status).toBe(200);
    api.clock.now = NOW;
    expect((await api.keys.find(keyId(key)))?.revokedAt).toBe(NOW.toISOString());
  });

  it('revoking a key of another service account, or without the right, is 404 like a key that does not exist', async () => {
    const key = await api.key('acme', 'member', 'robot');
    const others = [await api.key('acme', 'member'), await api.key('globex'), await api.key('acme', 'member', 'robot')];
    const responses = [await revoke(admin, 'other robot', keyId(key))];
    for (const caller of others) responses.push(await revoke(caller, 'robot', keyId(key)));
    const missing = errorOf(await revoke(admin, 'robot', 'none'));
    for (const response of responses)
      expect([response.status, errorOf(response).message]).toEqual([404, missing.message]);
    expect(await isValid(key)).toBe(true);
  });

  it('creating and revoking a key ignore the parameter workspace', async () => {
    const response = await create(admin, { role: 'member' }, 'robot', '?workspace=main');
    const { id, key } = created.parse(response.body);
    expect((await revoke(admin, 'robot', id, '?workspace=main')).status).toBe(200);
    expect(await isValid(key)).toBe(false);
  });

  it('a key of any role may revoke itself', async () => {
    for (const [account, role] of [
      ...(['admin', 'member', 'emitter'] as const).map((role) => ['acme', role] as const),
      ...(['operator', 'provisioner', 'emitter'] as const).map((role) => [undefined, role] as const),
    ]) {
      const key = await api.key(account, role, 'leaving');
      const leave = () => revoke(key, 'leaving', keyId(key));
      expect([(await leave()).status, (await leave()).status]).toEqual([200, 401]);
    }
  });
});

describe('provisioning', () => {
  let provisioner: string;
  beforeAll(async () => {
    provisioner = await api.key(undefined, 'provisioner');
  });

  const send = (method: string, path: string, body?: unknown, caller = provisioner, version = '2026-04-28') =>
    api.request(path, {
      method,
      headers: { ...bearer(caller).headers, 'svc-version': version },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const keysOf = (client: string) => `/v0/service_accounts/${client}/api_keys`;
  const created = z.looseObject({ id: z.string(), key: z.string() });

  it('a provisioner names an account that nobody knows, and renames it; its age stays', async () => {
    const first = await send('PUT', '/v0/accounts/tenant%20%C3%BC', { name: 'Tenant' });
    const account = { id: 'tenant ü', name: 'Tenant', role: 'provisioner', createdAt: NOW.toISOString() };
    expect([first.status, first.body]).toEqual([200, account]);
    api.clock.now = new Date(NOW.getTime() + 60_000);
    const second = await send('PUT', '/v0/accounts/tenant%20%C3%BC', { name: 'Tenant, Inc.' });
    api.clock.now = NOW;
    expect(second.body).toEqual({ ...account, name: 'Tenant, Inc.' });
    const { body } = await send('GET', '/v0/accounts', undefined, provisioner, '2026-04-16');
    expect(body).toContainEqual({ ...account, name: 'Tenant, Inc.' });
  });

  it.each([
    ['x'.repeat(257), { name: 'Tenant' }, 'accountId must be 1 to 256 characters'],
    ['tenant', {}, 'name is missing'],
    ['tenant', { name: '' }, 'name is missing; it must be 1 to 256 characters'],
    ['tenant', { name: 'Tenant', plan: 'free' }, '"plan" is not a field'],
    ['tenant', [], 'The body must be a JSON object'],
  ])('naming %.10j as %j is refused with the reason', async (id, body, reason) => {
    const { status, text } = await send('PUT', `/v0/accounts/${id}`, body);
    expect([status, text.replaceAll('\\"', '"')]).toEqual([400, expect.stringContaining(reason)]);
  });

  it('a provisioner creates the first key of an account, sees the keys of every account, and revokes them', async () => {
    const ids = new Map<string, string>();
    for (const account of ['hooli', 'initech']) {
      const { body } = await send('POST', keysOf('runtime'), { role: 'emitter', account });
      const { id, key } = created.parse(body);
      ids.set(account, id);
      expect(await api.keys.authenticate(key, NOW)).toMatchObject({ account, role: 'emitter', clientId: 'runtime' });
    }
    await api.key(undefined, 'operator', 'runtime');
    await api.keys.create({ account: 'hooli', role: 'member', clientId: 'reports' }, NOW);
    const ofClient = await send('GET', `${keysOf('runtime')}?account=hooli`);
    expect(ofClient.body).toMatchObject({ data: [{ id: ids.get('hooli') }], meta: { total: 1 } });
    const ofOther = await send('GET', `${keysOf('runtime')}?account=initech`, undefined, provisioner, '2026-04-16');
    expect(ofOther.body).toMatchObject([{ id: ids.get('initech') }]);
    expect((await send('GET', `${keysOf('reports')}?account=initech`)).status).toBe(404);
    const ofAccount = await send('GET', '/v0/accounts/hooli/api_keys?sort=createdAt:asc');
    expect(ofAccount.body).toMatchObject({ meta: { total: 2 } });
    expect(ofAccount.text).toContain('"clientId":"reports"');
    expect((await send('GET', '/v0/accounts/nobody/api_keys')).body).toMatchObject({ data: [] });
    const id = ids.get('hooli') ?? '';
    expect((await send('DELETE', `${keysOf('runtime')}/${id}`)).status).toBe(200);
    expect((await send('GET', '/v0/accounts/hooli/api_keys')).body).toMatchObject({
      data: expect.arrayContaining([expect.objectContaining({ id, revoked: true, revokedAt: NOW.toISOString() })]),
    });
  });

  it.each(['2026-04-16', '2026-04-28'])(
    'a provisioner must name the account of the keys of a service account at version %s',
    async (version) => {
      const { status, text } = await send('GET', keysOf('runtime'), undefined, provisioner, version);
      expect([status, text]).toEqual([400, expect.stringContaining('account is missing; set it to the account')]);
      expect(text).toContain('/v0/accounts/{accountId}/api_keys');
    },
  );

  it('the pages of all accounts come from one reading, which is at most five seconds old, and names at once what this process registers', async () => {
    const { accounts } = api.dependencies;
    const names = async () => {
      const { body } = await send('GET', '/v0/accounts', undefined, provisioner, '2026-04-16');
      return z
        .array(z.object({ id: z.string(), name: z.string() }))
        .parse(body)
        .map(({ name }) => name);
    };
    await send('PUT', '/v0/accounts/cached', { name: 'Cached' });
    expect(await names()).toContain('Cached');
    await accounts.register('cached', NOW, 'Renamed elsewhere');
    api.clock.now = new Date(NOW.getTime() + 4_999);
    expect(await names()).not.toContain('Renamed elsewhere');
    api.clock.now = new Date(NOW.getTime() + 5_000);
    expect(await names()).toContain('Renamed elsewhere');
    await send('PUT', '/v0/accounts/cached', { name: 'Renamed here' });
    expect(await names()).toContain('Renamed here');
    await send('POST', keysOf('runtime'), { role: 'emitter', account: 'registered by a key' });
    expect(await names()).toContain('registered by a key');
    api.clock.now = NOW;
  });

  it('a provisioner must name the account of a new key, and cannot create or revoke keys for all accounts', async () => {
    const unnamed = await send('POST', keysOf('runtime'), { role: 'admin' });
    expect([unnamed.status, unnamed.text]).toEqual([400, expect.stringContaining('account is missing')]);
    for (const role of ['operator', 'provisioner']) {
      const { status, text } = await send('POST', keysOf('runtime'), { role, account: 'hooli' });
      expect([status, text]).toEqual([
        400,
        expect.stringContaining('create keys for all accounts with the command line'),
      ]);
    }
    const operator = await api.key(undefined, 'operator', 'watch');
    const revoked = await send('DELETE', `${keysOf('watch')}/${operator.split('_')[1]}`);
    expect(revoked.status).toBe(404);
  });

  it('a provisioner is told to use another key for usage', async () => {
    const { status, text } = await send(
      'GET',
      '/v0/accounts/acme/metrics?startTime=2025-10-01T00:00:00Z&endTime=2025-10-02T00:00:00Z',
    );
    expect([status, text]).toEqual([403, expect.stringContaining('role provisioner, which may only name accounts')]);
  });
});
