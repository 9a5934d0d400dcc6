import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { TooManyApiKeys } from '@meterline/service/access';
import { z } from 'zod';
import { allPages, bearer, errorOf, NOW, startApi, type TestApi } from '../harness/api.js';

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
  const listed = await api.request('/v0/service_accounts/new%20robot/api_keys', bearer(admin));
  expect(listed.body).toEqual([{ ...entry, lastUsedAt: '2025-11-15T12:00:00.000Z' }]);
  expect(listed.text).not.toContain(key.split('_')[2]);
});

it('a key with an end is refused from then on, with a message that says so', async () => {
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

it('the log has the id and the account of a key that is created, and the key nowhere', async () => {
  api.log.length = 0;
  const response = await create(admin, { role: 'member' }, 'logged');
  const { id, key } = created.parse(response.body);
  const said = { event: 'request', method: 'POST', caller: 'admin of acme', account: 'acme', keyId: id };
  expect(api.log).toContainEqual(expect.objectContaining(said));
  expect(JSON.stringify(api.log)).not.toContain(key.split('_')[2]);
  // The request is counted as other requests of the account are.
  expect(response.headers.get('ratelimit')).toMatch(/^"account"/);
});

it('an account that has as many keys as it may have gets 409 for another, and is told what to do', async () => {
  jest.spyOn(api.keys, 'create').mockRejectedValueOnce(new TooManyApiKeys());
  const { status, body } = await create(admin, { role: 'member' });
  const message = expect.stringMatching(/as many valid API keys as it may have; revoke those that nobody uses/);
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

it('the list of keys shows all of the account’s, and no other account’s, once, in pages and in order, and which are revoked', async () => {
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

it('the list of keys goes on for another admin of the account, and not for another service account', async () => {
  for (let keys = 0; keys < 2; keys += 1) await api.key('acme', 'member', 'paged');
  const { meta } = await readPage('?limit=1', { clientId: 'paged' });
  const next = `?limit=1&cursor=${meta.nextCursor}`;
  const other = await api.key('acme', 'admin', 'second admin');
  expect((await list(next, { clientId: 'paged', caller: other })).status).toBe(200);
  expect(errorOf(await list(next, { clientId: 'robot' })).error).toBe('invalid_cursor');
});

it('an admin of the owning account revokes with 200 and no body, also again, and the key is invalid from the first time on', async () => {
  const key = await api.key('acme', 'member', 'robot');
  const response = await revoke(admin, 'robot', keyId(key));
  expect([response.status, response.text, await isValid(key)]).toEqual([200, '', false]);
  api.clock.now = new Date(NOW.getTime() + 60_000);
  expect((await revoke(admin, 'robot', keyId(key))).status).toBe(200);
  api.clock.now = NOW;
  expect((await api.keys.find(keyId(key)))?.revokedAt).toBe(NOW.toISOString());
});

it('a key of another service account, or of callers who may not revoke it, is 404 like one that does not exist', async () => {
  const key = await api.key('acme', 'member', 'robot');
  const others = [await api.key('acme', 'member'), await api.key('globex'), await api.key('acme', 'member', 'robot')];
  const responses = [await revoke(admin, 'other robot', keyId(key))];
  for (const caller of others) responses.push(await revoke(caller, 'robot', keyId(key)));
  const missing = errorOf(await revoke(admin, 'robot', 'none'));
  for (const response of responses)
    expect([response.status, errorOf(response).message]).toEqual([404, missing.message]);
  expect(await isValid(key)).toBe(true);
});

it('a workspace is taken, and not looked at, where a key is created or revoked', async () => {
  const response = await create(admin, { role: 'member' }, 'robot', '?workspace=main');
  const { id, key } = created.parse(response.body);
  expect((await revoke(admin, 'robot', id, '?workspace=main')).status).toBe(200);
  expect(await isValid(key)).toBe(false);
});

it('a key may revoke itself, whatever its role', async () => {
  for (const role of ['admin', 'member', 'emitter', 'operator'] as const) {
    const key = await api.key('acme', role, 'leaving');
    const leave = () => revoke(key, 'leaving', keyId(key));
    expect([(await leave()).status, (await leave()).status]).toEqual([200, 401]);
  }
});
