import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
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

describe('revoking: an admin of the owning account', () => {
  it('revokes with 200 and no body, and the key is invalid at once', async () => {
    const key = await api.key('acme', 'member', 'robot');
    const answer = await revoke(admin, 'robot', keyId(key));
    expect([answer.status, answer.text]).toEqual([200, '']);
    expect(await isValid(key)).toBe(false);
  });

  it('revokes again with 200, and the first time stays', async () => {
    const id = keyId(await api.key('acme', 'member', 'robot'));
    await revoke(admin, 'robot', id);
    api.clock.now = new Date(NOW.getTime() + 60_000);
    expect((await revoke(admin, 'robot', id)).status).toBe(200);
    api.clock.now = NOW;
    expect((await api.keys.find(id))?.revokedAt).toBe(NOW.toISOString());
  });

  it('may revoke the very key that asks', async () => {
    const own = await api.key('acme', 'admin', 'leaving');
    expect((await revoke(own, 'leaving', keyId(own))).status).toBe(200);
    expect((await revoke(own, 'leaving', keyId(own))).status).toBe(401);
  });

  it('gets 404 under another client id', async () => {
    const key = await api.key('acme', 'member', 'robot');
    expect((await revoke(admin, 'other robot', keyId(key))).status).toBe(404);
    expect(await isValid(key)).toBe(true);
  });

  it.each(['unknown', '*', '../api-keys', '\u{1f600}', '0'.repeat(24)])('gets 404 for the key %j', async (id) => {
    expect(errorOf(await revoke(admin, 'robot', id)).error).toBe('not_found');
  });

  it('may send a workspace, which is not looked at', async () => {
    const key = await api.key('acme', 'member', 'robot');
    expect((await revoke(admin, 'robot', keyId(key), '?workspace=main')).status).toBe(200);
    expect(await isValid(key)).toBe(false);
  });

  it('sends no other parameter', async () => {
    const key = await api.key('acme', 'member', 'robot');
    expect(errorOf(await revoke(admin, 'robot', keyId(key), '?force=1')).error).toBe('invalid_parameter');
    expect(await isValid(key)).toBe(true);
  });
});

describe('revoking: everyone else', () => {
  it('gets the 404 of a key that does not exist', async () => {
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

  it('gets 401 without credentials', async () => {
    const answer = await api.request('/v0/service_accounts/robot/api_keys/x', { method: 'DELETE' });
    expect(answer.status).toBe(401);
  });
});

it('a key may revoke itself, whatever its role', async () => {
  for (const role of ['admin', 'member'] as const) {
    const key = await api.key('acme', role, 'leaving');
    const leave = () => revoke(key, 'leaving', keyId(key));
    expect([(await leave()).status, (await leave()).status]).toEqual([200, 401]);
  }
});
