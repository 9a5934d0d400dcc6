import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { AccountDirectory } from './accounts.js';
import {
  ApiKeyStore,
  type CreatedApiKey,
  formatToken,
  generateToken,
  hashSecret,
  parseToken,
  secretMatches,
} from './api-keys.js';

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
  it('gives its text and its record', async () => {
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
  it('a valid key gives account, role and client', async () => {
    const { key, ...created } = await keys.create({ ...ADMIN, role: 'member' }, NOW);
    expect(await keys.authenticate(key)).toEqual(created);
  });

  it('never returns the hash', async () => {
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

  it('fails, and does not refuse, when Redis is away', async () => {
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
  it('removes them and their records, revoked ones included, and keeps those of other accounts', async () => {
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

describe('the text of an API key', () => {
  it('reads back as what was generated', () => {
    const token = generateToken();
    expect(parseToken(formatToken(token))).toEqual(token);
  });

  it('has 96 bits of id and 256 bits of secret, in hexadecimal', () => {
    expect(formatToken(generateToken())).toMatch(/^mlk_[0-9a-f]{24}_[0-9a-f]{64}$/);
  });

  it('is never the same twice', () => {
    const texts = Array.from({ length: 1000 }, () => formatToken(generateToken()));
    expect(new Set(texts).size).toBe(1000);
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
  ])('is not %s', (_, text) => {
    expect(parseToken(text)).toBeUndefined();
  });
});

describe('a secret', () => {
  it('matches its own hash alone', () => {
    const { secret } = generateToken();
    expect(secretMatches(secret, hashSecret(secret))).toBe(true);
    expect(secretMatches(generateToken().secret, hashSecret(secret))).toBe(false);
  });

  it('is hashed with SHA-256', () => {
    expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});
