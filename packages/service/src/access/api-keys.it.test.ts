import { afterAll, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../../test/harness/stack.js';
import {
  ApiKeyExpired,
  ApiKeyStore,
  formatToken,
  generateToken,
  hashSecret,
  MAX_KEYS_OF_ACCOUNT,
  type NewApiKey,
  parseToken,
  TooManyApiKeys,
} from './api-keys.js';

const NOW = new Date('2025-10-01T00:00:00.000Z');
const LATER = new Date('2025-10-02T00:00:00.000Z');

const redis = new Redis(testRedisUrl());
let prefix: string;
let keys: ApiKeyStore;
beforeEach(() => {
  prefix = uniquePrefix();
  keys = new ApiKeyStore(redis, prefix);
});
afterAll(() => redis.quit());

const create = (given: Partial<NewApiKey> = {}, now = NOW) =>
  keys.create({ account: 'acme', role: 'admin', clientId: 'sa-1', ...given }, now);
const secretOf = (key: string) => key.split('_')[2] ?? '';

/** Everything that Redis holds under the test's prefix, names and values, as one text. */
async function everythingStored(): Promise<string> {
  const names = (await redis.keys(`${prefix}*`)).sort();
  const contentOf = async (name: string) =>
    (await redis.type(name)) === 'hash' ? redis.hgetall(name) : redis.zrange(name, 0, '-1', 'WITHSCORES');
  return JSON.stringify([names, await Promise.all(names.map(contentOf))]);
}

it('an API key is stored without its secret', async () => {
  const { key, keyId } = await create();
  const stored = await everythingStored();
  expect(stored).toContain(keyId);
  expect(secretOf(key)).toHaveLength(64);
  expect(stored).not.toContain(secretOf(key));
});

it('an API key is created completely or not at all', async () => {
  await redis.set(`${prefix}:api-keys`, 'not a sorted set');
  await expect(create()).rejects.toThrow('WRONGTYPE');
});

it('a revoked API key is rejected at once by every process, and an unknown key cannot be revoked', async () => {
  const { key, keyId } = await create();
  const elsewhere = new ApiKeyStore(redis, prefix);
  expect(await elsewhere.authenticate(key, NOW)).toBeDefined();
  expect(await keys.revoke(keyId, NOW)).toBe(true);
  expect(await elsewhere.authenticate(key, NOW)).toBeUndefined();
  const before = await everythingStored();
  expect(await keys.revoke('0'.repeat(24), NOW)).toBe(false);
  expect(await everythingStored()).toBe(before);
});

it('an expired API key is rejected, and only the holder of its secret learns that it has expired', async () => {
  const { key, ...record } = await create({ expiresAt: LATER });
  expect(record.expiresAt).toBe('2025-10-02T00:00:00.000Z');
  expect(await keys.authenticate(key, new Date(LATER.getTime() - 1))).toEqual(record);
  await expect(keys.authenticate(key, LATER)).rejects.toThrow(new ApiKeyExpired('2025-10-02T00:00:00.000Z'));
  const forged = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
  expect(await keys.authenticate(forged, LATER)).toBeUndefined();
  await keys.revoke(record.keyId, NOW);
  expect(await keys.authenticate(key, LATER)).toBeUndefined();
});

it('the last use of an API key never moves back, and does not restore an erased key', async () => {
  const { keyId } = await create();
  await keys.noteUse(keyId, LATER);
  await keys.noteUse(keyId, NOW);
  expect(await keys.find(keyId)).toMatchObject({ lastUsedAt: '2025-10-02T00:00:00.000Z' });
  await keys.eraseKeysOf('acme');
  await keys.noteUse(keyId, LATER);
  expect(await everythingStored()).not.toContain(keyId);
});

it('an API key has the last use recorded by an earlier release until it is used again', async () => {
  const { keyId } = await create();
  await redis.hset(`${prefix}:api-key:${keyId}`, 'lastUsedAt', NOW.toISOString());
  expect(await keys.listOf('acme', 'sa-1')).toMatchObject([{ keyId, lastUsedAt: NOW.toISOString() }]);
  await keys.noteUse(keyId, LATER);
  expect(await keys.listOf('acme', 'sa-1')).toMatchObject([{ keyId, lastUsedAt: LATER.toISOString() }]);
});

it.each<[string, (name: string) => Promise<unknown>]>([
  ['without a field', (name) => redis.hdel(name, 'role')],
  ['with an unknown role', (name) => redis.hset(name, 'role', 'owner')],
  ['with a role for all accounts and an account', (name) => redis.hset(name, 'role', 'operator')],
  ['with a role for one account and none', (name) => redis.hdel(name, 'account')],
  ['with an end that is no time', (name) => redis.hset(name, 'expiresAt', 'never')],
  ['with a hash of another length', (name) => redis.hset(name, 'secretHash', 'abc')],
  ['with nothing but a hash', (name) => redis.hdel(name, 'clientId', 'account', 'role', 'createdAt')],
  ['that is not a hash', (name) => redis.multi().del(name).set(name, 'text').exec()],
])('an API key whose record in Redis is one %s is refused, named, and harms no other', async (_, damage) => {
  const reports: string[] = [];
  keys = new ApiKeyStore(redis, prefix, (keyId, reason) => reports.push(`${keyId} ${reason}`));
  const [{ key, keyId }, other] = [await create(), await create()];
  await damage(`${prefix}:api-key:${keyId}`);
  expect(await keys.authenticate(key, NOW)).toBeUndefined();
  expect(reports).toEqual([expect.stringMatching(new RegExp(`^${keyId} .`))]);
  expect(reports[0]).not.toContain(hashSecret(secretOf(key)));
  expect(await keys.list()).toMatchObject([{ keyId: other.keyId }]);
  expect(await keys.authenticate(other.key, NOW)).toBeDefined();
});

it('the keys of an account are listed oldest first, including revoked keys', async () => {
  const newest = await create({}, new Date('2025-10-03T00:00:00Z'));
  const oldest = await create({ account: 'zeta' });
  const middle = await create({}, LATER);
  await keys.revoke(oldest.keyId, LATER);
  expect((await keys.list()).map(({ keyId }) => keyId)).toEqual([oldest.keyId, middle.keyId, newest.keyId]);
});

it('a key for all accounts has no account, registers no account, and is in the list of all keys', async () => {
  const { key, keyId } = await keys.create({ role: 'emitter', clientId: 'runtimes' }, NOW);
  expect(await keys.authenticate(key, NOW)).toEqual({
    ...{ keyId, role: 'emitter', clientId: 'runtimes' },
    createdAt: NOW.toISOString(),
  });
  expect(await keys.accounts.list()).toEqual([]);
  expect(await keys.list()).toMatchObject([{ keyId }]);
});

it.each([{ role: 'admin' }, { role: 'provisioner', account: 'acme' }] as const)(
  'a key that nobody could use is not created: %j',
  async (wanted) => {
    await expect(keys.create({ clientId: 'x', ...wanted }, NOW)).rejects.toThrow('Invalid input');
    expect(await keys.list()).toEqual([]);
  },
);

it('an account has at most 1,000 keys, and a new key replaces a revoked or expired key', async () => {
  const [first, second] = await Promise.all(Array.from({ length: MAX_KEYS_OF_ACCOUNT }, () => create()));
  if (!first || !second) throw new Error('no keys');
  await expect(create()).rejects.toThrow(TooManyApiKeys);
  await create({ account: 'zeta' });
  await keys.revoke(second.keyId, LATER);
  const another = await create({ expiresAt: LATER });
  expect(await keys.find(second.keyId)).toBeUndefined();
  await expect(create()).rejects.toThrow(TooManyApiKeys);
  await create({}, LATER);
  expect(await keys.find(another.keyId)).toBeUndefined();
  expect(await keys.find(first.keyId)).toBeDefined();
  expect(await keys.listOf('acme', 'sa-1')).toHaveLength(MAX_KEYS_OF_ACCOUNT);
});

it('erasing the keys of an account deletes their records, including revoked and malformed ones, and keeps other accounts', async () => {
  const [valid, revoked, malformed] = [await create(), await create(), await create()];
  const other = await create({ account: 'zeta' });
  await keys.revoke(revoked.keyId, NOW);
  await redis.hset(`${prefix}:api-key:${malformed.keyId}`, 'role', 'owner');
  expect(await keys.eraseKeysOf('acme')).toBe(3);
  expect(await keys.authenticate(valid.key, NOW)).toBeUndefined();
  const stored = await everythingStored();
  for (const { keyId } of [valid, revoked, malformed]) expect(stored).not.toContain(keyId);
  expect(await keys.authenticate(other.key, NOW)).toBeDefined();
  expect(await keys.eraseKeysOf('acme')).toBe(0);
});

it('an account is registered once when many ask at the same time', async () => {
  const requested = Array.from({ length: 20 }, (_, index) => new Date(NOW.getTime() + index));
  const registered = await Promise.all(requested.map((now) => keys.accounts.register('acme', now)));
  expect(new Set(registered.map(({ createdAt }) => createdAt)).size).toBe(1);
});

it.each(['a:b', 'a b', '*', '😀', 'key\\"'])('an account may have the id %j', async (id) => {
  await keys.accounts.register('other', LATER);
  expect(await keys.accounts.register(id, NOW)).toEqual({ id, name: id, createdAt: NOW.toISOString() });
});

it('an account is found under its id before it is registered, and is named or renamed with a key', async () => {
  expect(await keys.accounts.find('acme')).toEqual({ id: 'acme', name: 'acme', createdAt: undefined });
  expect(await redis.keys(`${prefix}:*`)).toEqual([]);
  await create();
  expect(await keys.accounts.find('acme')).toMatchObject({ name: 'acme' });
  await create({ accountName: 'ACME Corp.' }, LATER);
  await create({}, LATER);
  const renamed = { id: 'acme', name: 'ACME Corp.', createdAt: NOW.toISOString() };
  expect(await keys.accounts.find('acme')).toEqual(renamed);
});

it('an account that is forgotten can be registered again', async () => {
  for (const id of ['acme', 'zeta']) await keys.accounts.register(id, NOW);
  await keys.accounts.forget('acme');
  expect(await keys.accounts.register('acme', LATER)).toMatchObject({ createdAt: LATER.toISOString() });
  expect(await keys.accounts.register('zeta', LATER)).toMatchObject({ createdAt: NOW.toISOString() });
});

const valid = formatToken(generateToken());
it.each([
  ['nothing', ''],
  ['another kind of token', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln'],
  ['another prefix', valid.replace('mlk', 'mlx')],
  ['upper case', valid.toUpperCase()],
  ['a digit less', valid.slice(0, -1)],
  ['a digit more', `${valid}0`],
  ['a newline at the end', `${valid}\n`],
  ['a space before', ` ${valid}`],
  ['an id that would reach another key of Redis', valid.replace(/_[0-9a-f]{24}_/, '_:account:acme_')],
])('the text of an API key is not %s', (_, text) => {
  expect(parseToken(text)).toBeUndefined();
});

it('a secret is hashed with SHA-256', () => {
  expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});
