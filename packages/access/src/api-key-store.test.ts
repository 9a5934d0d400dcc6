import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { AccountDirectory } from './account-directory.js';
import { ApiKeyStore, type CreatedApiKey } from './api-key-store.js';

const NOW = new Date('2025-10-01T00:00:00.000Z');
const LATER = new Date('2025-10-02T00:00:00.000Z');
const ADMIN = { account: 'acme', role: 'admin', clientId: 'sa-1' } as const;

const redis = new Redis(testRedisUrl());
let prefix: string;
let keys: ApiKeyStore;

beforeEach(() => {
  prefix = uniquePrefix();
  keys = new ApiKeyStore(redis, new AccountDirectory(redis, prefix), prefix);
});

afterAll(() => redis.quit());

/** Everything that Redis holds under the test's prefix, names and values, as one text. */
async function everythingStored(): Promise<string> {
  const names = await redis.keys(`${prefix}*`);
  const contents = await Promise.all(
    names.map(async (name) =>
      (await redis.type(name)) === 'hash' ? await redis.hgetall(name) : await redis.zrange(name, 0, '-1', 'WITHSCORES'),
    ),
  );
  return JSON.stringify([names, contents]);
}

/** The same key with one digit of its secret changed. */
function forged({ key }: CreatedApiKey): string {
  return key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
}

describe('creating a key', () => {
  it('gives its text and what it stands for', async () => {
    const created = await keys.create(ADMIN, NOW);
    expect(created).toEqual({
      ...ADMIN,
      keyId: expect.stringMatching(/^[0-9a-f]{24}$/),
      createdAt: '2025-10-01T00:00:00.000Z',
      key: expect.stringMatching(new RegExp(`^mlk_${created.keyId}_[0-9a-f]{64}$`)),
    });
  });

  it('registers its account', async () => {
    await keys.create(ADMIN, NOW);
    const account = await new AccountDirectory(redis, prefix).register('acme', LATER);
    expect(account.createdAt).toBe('2025-10-01T00:00:00.000Z');
  });

  it('fails when Redis does not take all of it, rather than give a key that is not listed', async () => {
    await redis.set(`${prefix}:api-keys`, 'not a sorted set');
    await expect(keys.create(ADMIN, NOW)).rejects.toThrow('WRONGTYPE');
  });

  it('stores neither the text nor the secret', async () => {
    const { key, keyId } = await keys.create(ADMIN, NOW);
    const stored = await everythingStored();
    const secret = key.split('_')[2] ?? '';
    expect(stored).toContain(keyId);
    expect(secret).toHaveLength(64);
    expect(stored).not.toContain(secret);
    expect(stored).not.toContain(key);
  });
});

describe('authenticating', () => {
  it('a valid key tells account, role and client', async () => {
    const { key, ...created } = await keys.create({ ...ADMIN, role: 'member' }, NOW);
    expect(await keys.authenticate(key)).toEqual(created);
  });

  it('never gives the hash away', async () => {
    const { key } = await keys.create(ADMIN, NOW);
    expect(await keys.authenticate(key)).not.toHaveProperty('secretHash');
  });

  it('a key with a wrong secret is refused', async () => {
    expect(await keys.authenticate(forged(await keys.create(ADMIN, NOW)))).toBeUndefined();
  });

  it('the secret of another key is refused', async () => {
    const first = await keys.create(ADMIN, NOW);
    const second = await keys.create(ADMIN, NOW);
    expect(await keys.authenticate(`mlk_${first.keyId}_${second.key.split('_')[2]}`)).toBeUndefined();
  });

  it('an unknown key is refused', async () => {
    expect(await keys.authenticate(`mlk_${'0'.repeat(24)}_${'0'.repeat(64)}`)).toBeUndefined();
  });

  it.each(['', 'mlk_', 'eyJhbGciOiJSUzI1NiJ9.e30.c2ln', 'mlk_*_*'])('the foreign text %j is refused', async (text) => {
    await keys.create(ADMIN, NOW);
    expect(await keys.authenticate(text)).toBeUndefined();
  });

  it('a revoked key is refused, at once and by every process', async () => {
    const { key, keyId } = await keys.create(ADMIN, NOW);
    const elsewhere = new ApiKeyStore(redis, new AccountDirectory(redis, prefix), prefix);
    expect(await elsewhere.authenticate(key)).toBeDefined();
    await keys.revoke(keyId, NOW);
    expect(await keys.authenticate(key)).toBeUndefined();
    expect(await elsewhere.authenticate(key)).toBeUndefined();
  });

  it('fails rather than refuses when Redis is away', async () => {
    const { key } = await keys.create(ADMIN, NOW);
    const closed = new Redis(testRedisUrl(), { lazyConnect: true });
    closed.disconnect();
    const away = new ApiKeyStore(closed, new AccountDirectory(closed, prefix), prefix);
    await expect(away.authenticate(key)).rejects.toThrow();
  });
});

describe('revoking', () => {
  it('keeps the key as a record', async () => {
    const { keyId } = await keys.create(ADMIN, NOW);
    expect(await keys.revoke(keyId, LATER)).toBe(true);
    expect(await keys.find(keyId)).toEqual({
      ...ADMIN,
      keyId,
      createdAt: '2025-10-01T00:00:00.000Z',
      revokedAt: '2025-10-02T00:00:00.000Z',
    });
  });

  it('again is no error and keeps the first time', async () => {
    const { keyId } = await keys.create(ADMIN, NOW);
    await keys.revoke(keyId, NOW);
    expect(await keys.revoke(keyId, LATER)).toBe(true);
    expect(await keys.find(keyId)).toMatchObject({ revokedAt: '2025-10-01T00:00:00.000Z' });
  });

  it('an unknown key says so and leaves nothing behind', async () => {
    expect(await keys.revoke('0'.repeat(24), NOW)).toBe(false);
    expect(await redis.keys(`${prefix}*`)).toEqual([]);
  });

  it('leaves other keys of the account alone', async () => {
    const [first, second] = [await keys.create(ADMIN, NOW), await keys.create(ADMIN, NOW)];
    await keys.revoke(first.keyId, NOW);
    expect(await keys.authenticate(second.key)).toBeDefined();
  });
});

describe('listing', () => {
  it('gives every key, also revoked ones, the oldest first', async () => {
    const newest = await keys.create(ADMIN, new Date('2025-10-03T00:00:00Z'));
    const oldest = await keys.create({ ...ADMIN, account: 'zeta' }, new Date('2025-10-01T00:00:00Z'));
    const middle = await keys.create(ADMIN, new Date('2025-10-02T00:00:00Z'));
    await keys.revoke(oldest.keyId, LATER);
    const listed = await keys.list();
    expect(listed.map(({ keyId }) => keyId)).toEqual([oldest.keyId, middle.keyId, newest.keyId]);
  });

  it('gives nothing where there is none', async () => {
    expect(await keys.list()).toEqual([]);
    expect(await keys.find('0'.repeat(24))).toBeUndefined();
  });
});

describe('erasing the keys of an account', () => {
  it('leaves no trace of them, revoked ones included, and those of others alone', async () => {
    const [valid, revoked] = [await keys.create(ADMIN, NOW), await keys.create(ADMIN, NOW)];
    const other = await keys.create({ ...ADMIN, account: 'zeta' }, NOW);
    await keys.revoke(revoked.keyId, NOW);
    expect(await keys.eraseKeysOf(ADMIN.account)).toBe(2);
    expect(await keys.authenticate(valid.key)).toBeUndefined();
    expect(await keys.find(revoked.keyId)).toBeUndefined();
    expect(await keys.list()).toMatchObject([{ keyId: other.keyId }]);
    expect(await keys.authenticate(other.key)).toBeDefined();
    expect(await keys.eraseKeysOf(ADMIN.account)).toBe(0);
  });
});
