import { afterAll, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../../test/harness/stack.js';
import { AccountDirectory } from './accounts.js';

const NOW = new Date('2025-10-01T00:00:00.000Z');
const LATER = new Date('2025-10-02T00:00:00.000Z');

const redis = new Redis(testRedisUrl());
let accounts: AccountDirectory;

beforeEach(() => {
  accounts = new AccountDirectory(redis, uniquePrefix());
});

afterAll(() => redis.quit());

it('an account is registered once when many ask at the same time', async () => {
  const asked = Array.from({ length: 20 }, (_, index) => new Date(NOW.getTime() + index));
  const registered = await Promise.all(asked.map((now) => accounts.register('acme', now)));
  expect(new Set(registered.map(({ createdAt }) => createdAt)).size).toBe(1);
});

it.each(['a:b', 'a b', '*', '😀', 'key\\"'])('an account may have the id %j', async (id) => {
  await accounts.register('other', LATER);
  expect(await accounts.register(id, NOW)).toEqual({ id, name: id, createdAt: NOW.toISOString() });
});

it('an account that is not registered is found under its id, without a date, and stays unregistered', async () => {
  const prefix = uniquePrefix();
  const directory = new AccountDirectory(redis, prefix);
  expect(await directory.find('acme')).toEqual({ id: 'acme', name: 'acme', createdAt: undefined });
  expect(await redis.keys(`${prefix}:*`)).toEqual([]);
  const registered = await directory.register('acme', NOW);
  expect(await directory.find('acme')).toEqual(registered);
});

it('an account that is forgotten can be registered again', async () => {
  await accounts.register('acme', NOW);
  await accounts.register('zeta', NOW);
  await accounts.forget('acme');
  expect(await accounts.register('acme', LATER)).toMatchObject({ createdAt: LATER.toISOString() });
  expect(await accounts.register('zeta', LATER)).toMatchObject({ createdAt: NOW.toISOString() });
});
