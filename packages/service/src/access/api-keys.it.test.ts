import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../../test/harness/stack.js';
import { AccountDirectory } from './accounts.js';
import { hashSecret } from './api-key.js';
import { ApiKeyExpired, ApiKeyStore, type CreatedApiKey, MAX_KEYS_OF_ACCOUNT, TooManyApiKeys } from './api-keys.js';

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
    names.map(async (name) => {
      const type = await redis.type(name);
      if (type === 'string') return redis.get(name);
      return type === 'hash' ? redis.hgetall(name) : redis.zrange(name, 0, '-1', 'WITHSCORES');
    }),
  );
  return JSON.stringify([names, contents]);
}

/** The same key with one digit of its secret changed. */
function forged({ key }: CreatedApiKey): string {
  return key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
}

describe('creating a key', () => {
  it('may name the account, and rename it', async () => {
    const accounts = new AccountDirectory(redis, prefix);
    await keys.create(ADMIN, NOW);
    expect((await accounts.find('acme')).name).toBe('acme');
    await keys.create({ ...ADMIN, accountName: 'ACME Corp.' }, LATER);
    await keys.create(ADMIN, LATER);
    expect(await accounts.find('acme')).toEqual({ id: 'acme', name: 'ACME Corp.', createdAt: NOW.toISOString() });
  });

  it('fails when Redis does not store all of it: a key is never unlisted', async () => {
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
  it('a valid key gives account, role and client, and never the hash', async () => {
    const { key, ...created } = await keys.create({ ...ADMIN, role: 'member' }, NOW);
    const found = await keys.authenticate(key, NOW);
    expect(found).toEqual(created);
    expect(found).not.toHaveProperty('secretHash');
  });

  it('the secret of another key is refused', async () => {
    const [first, second] = [await keys.create(ADMIN, NOW), await keys.create(ADMIN, NOW)];
    expect(await keys.authenticate(`mlk_${first.keyId}_${second.key.split('_')[2]}`, NOW)).toBeUndefined();
  });

  const UNKNOWN = `mlk_${'0'.repeat(24)}_${'0'.repeat(64)}`;

  it.each([UNKNOWN, '', 'mlk_', 'eyJhbGciOiJSUzI1NiJ9.e30.c2ln', 'mlk_*_*'])(
    'the text %j is refused as a key',
    async (text) => {
      await keys.create(ADMIN, NOW);
      expect(await keys.authenticate(text, NOW)).toBeUndefined();
    },
  );

  it('a revoked key is refused, at once and by every process', async () => {
    const { key, keyId } = await keys.create(ADMIN, NOW);
    const elsewhere = new ApiKeyStore(redis, new AccountDirectory(redis, prefix), prefix);
    expect(await elsewhere.authenticate(key, NOW)).toBeDefined();
    await keys.revoke(keyId, NOW);
    expect(await keys.authenticate(key, NOW)).toBeUndefined();
    expect(await elsewhere.authenticate(key, NOW)).toBeUndefined();
  });

  it('a key is refused from its end on, and by that name only to who has its secret', async () => {
    const created = await keys.create({ ...ADMIN, expiresAt: LATER }, NOW);
    expect(created.expiresAt).toBe('2025-10-02T00:00:00.000Z');
    const { key, ...record } = created;
    expect(await keys.authenticate(key, new Date(LATER.getTime() - 1))).toEqual(record);
    await expect(keys.authenticate(key, LATER)).rejects.toThrow(new ApiKeyExpired('2025-10-02T00:00:00.000Z'));
    expect(await keys.authenticate(forged(created), LATER)).toBeUndefined();
    await keys.revoke(created.keyId, NOW);
    expect(await keys.authenticate(key, LATER)).toBeUndefined();
  });

  describe('a key whose record in Redis is malformed is refused, named and harms no other', () => {
    const damage: Record<string, (name: string) => Promise<unknown>> = {
      'without a field': (name) => redis.hdel(name, 'role'),
      'with an unknown role': (name) => redis.hset(name, 'role', 'owner'),
      'with an end that is no time': (name) => redis.hset(name, 'expiresAt', 'never'),
      'with a hash of another length': (name) => redis.hset(name, 'secretHash', 'abc'),
      'with nothing but a hash': async (name) => {
        await redis.hdel(name, 'clientId', 'account', 'role', 'createdAt');
      },
      'that is not a hash': async (name) => {
        await redis.del(name);
        await redis.set(name, 'text');
      },
    };

    it.each(Object.keys(damage))('%s', async (what) => {
      const reports: string[] = [];
      const store = new ApiKeyStore(redis, new AccountDirectory(redis, prefix), prefix, (keyId, reason) => {
        reports.push(`${keyId} ${reason}`);
      });
      const { key, keyId } = await store.create(ADMIN, NOW);
      const other = await store.create(ADMIN, NOW);
      await damage[what]?.(`${prefix}:api-key:${keyId}`);
      expect(await store.authenticate(key, NOW)).toBeUndefined();
      expect(reports).toEqual([expect.stringMatching(new RegExp(`^${keyId} .`))]);
      expect(reports[0]).not.toContain(hashSecret(key.split('_')[2] ?? ''));
      expect((await store.list()).map((listed) => listed.keyId)).toEqual([other.keyId]);
      expect(await store.authenticate(other.key, NOW)).toBeDefined();
    });

    it('and is erased with its account', async () => {
      const { keyId } = await keys.create(ADMIN, NOW);
      await redis.hset(`${prefix}:api-key:${keyId}`, 'role', 'owner');
      expect(await keys.eraseKeysOf('acme')).toBe(1);
      expect(await everythingStored()).not.toContain(keyId);
    });
  });
});

describe('revoking', () => {
  it('an unknown key says so and leaves nothing behind', async () => {
    expect(await keys.revoke('0'.repeat(24), NOW)).toBe(false);
    expect(await redis.keys(`${prefix}*`)).toEqual([]);
  });
});

describe('listing', () => {
  it('gives every key, also revoked ones, the oldest first', async () => {
    const newest = await keys.create(ADMIN, new Date('2025-10-03T00:00:00Z'));
    const oldest = await keys.create({ ...ADMIN, account: 'zeta' }, new Date('2025-10-01T00:00:00Z'));
    const middle = await keys.create(ADMIN, new Date('2025-10-02T00:00:00Z'));
    await keys.revoke(oldest.keyId, LATER);
    expect((await keys.list()).map(({ keyId }) => keyId)).toEqual([oldest.keyId, middle.keyId, newest.keyId]);
  });
});

describe('the last use of a key', () => {
  it('is written down, and never an earlier one', async () => {
    const { keyId } = await keys.create(ADMIN, NOW);
    await keys.noteUse(keyId, LATER);
    await keys.noteUse(keyId, NOW);
    expect(await keys.find(keyId)).toMatchObject({ lastUsedAt: '2025-10-02T00:00:00.000Z' });
  });

  it('does not bring back a key that was erased', async () => {
    const { keyId } = await keys.create(ADMIN, NOW);
    await keys.eraseKeysOf('acme');
    await keys.noteUse(keyId, LATER);
    expect(await everythingStored()).not.toContain(keyId);
  });
});

describe('the keys of a service account', () => {
  const idsOf = async (account: string, clientId: string) =>
    (await keys.listOf(account, clientId)).map(({ keyId }) => keyId).sort();

  it('are at most a thousand; one that nobody can use makes room', async () => {
    const all = await Promise.all(Array.from({ length: MAX_KEYS_OF_ACCOUNT }, () => keys.create(ADMIN, NOW)));
    const [first, second] = all;
    if (!first || !second) throw new Error('no keys');
    await expect(keys.create(ADMIN, NOW)).rejects.toThrow(TooManyApiKeys);
    await keys.create({ ...ADMIN, account: 'zeta' }, NOW);
    await keys.revoke(second.keyId, LATER);
    const another = await keys.create({ ...ADMIN, expiresAt: LATER }, NOW);
    expect(await keys.find(second.keyId)).toBeUndefined();
    await expect(keys.create(ADMIN, NOW)).rejects.toThrow(TooManyApiKeys);
    await keys.create(ADMIN, LATER);
    expect(await keys.find(another.keyId)).toBeUndefined();
    expect(await keys.find(first.keyId)).toBeDefined();
    expect(await idsOf('acme', 'sa-1')).toHaveLength(MAX_KEYS_OF_ACCOUNT);
  });
});

describe('erasing the keys of an account', () => {
  it('removes them and their records, revoked ones included, and keeps those of other accounts', async () => {
    const [valid, revoked] = [await keys.create(ADMIN, NOW), await keys.create(ADMIN, NOW)];
    const other = await keys.create({ ...ADMIN, account: 'zeta' }, NOW);
    await keys.revoke(revoked.keyId, NOW);
    expect(await keys.eraseKeysOf(ADMIN.account)).toBe(2);
    expect(await keys.authenticate(valid.key, NOW)).toBeUndefined();
    expect(await keys.find(revoked.keyId)).toBeUndefined();
    expect(await keys.list()).toMatchObject([{ keyId: other.keyId }]);
    expect(await keys.authenticate(other.key, NOW)).toBeDefined();
    expect(await keys.eraseKeysOf(ADMIN.account)).toBe(0);
  });
});
