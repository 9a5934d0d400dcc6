/** Erasing an account from a real ClickHouse and Redis, also when it ends half way. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { AccountDirectory, AnswerStamps, ApiKeyStore, REDIS_PREFIX, type Stamps } from '@meterline/access';
import { insertUsageEvents, sealNext } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { event } from '../../../test/contract/fixture.js';
import { createTestDatabase, type TestDatabase, testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { eraseAccount, findAccount } from './erasure.js';

let database: TestDatabase;
let redis: Redis;
beforeAll(async () => {
  database = await createTestDatabase();
  redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
});
afterAll(async () => {
  redis.disconnect();
  await database.drop();
});

/** Of a new account with events in two months, one of them sealed, and a key. */
async function optionsOfAccount() {
  const account = uniquePrefix();
  await insertUsageEvents(database.warehouse, [
    event({ accountId: account }),
    event({ accountId: account, at: '2025-11-01T00:00:00Z' }),
  ]);
  while (await sealNext(database.warehouse, Date.UTC(2025, 9, 2)));
  const keys = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
  const { key } = await keys.create({ account, role: 'admin', clientId: 'client' }, new Date());
  const withRedis = <T>(work: (connection: Redis) => Promise<T>) => work(redis);
  return { options: { shards: database.shards, withRedis, account }, keys, key };
}

it('an erasure that dies after each of its steps leaves no key that reads, and is finished by the next one', async () => {
  for (let dieAt = 0; ; dieAt += 1) {
    const { options, keys, key } = await optionsOfAccount();
    const stamps = new AnswerStamps(redis, REDIS_PREFIX);
    const before = await stamps.read(options.account);
    const expectOthers = async (before: Stamps | undefined) => {
      const after = await stamps.read(options.account);
      expect(after?.sealed).not.toBe(before?.sealed);
      expect(after?.any).not.toBe(before?.any);
    };
    let steps = 0;
    const die = () => {
      if (steps === dieAt) throw new Error('died');
      steps += 1;
    };
    const { signal } = new AbortController();
    const first = await eraseAccount(options, await findAccount(options), signal, die).catch((error: Error) => error);
    expect(await keys.authenticate(key, new Date())).toBeUndefined();
    if (!(first instanceof Error)) {
      // It went through: every point where it could die was tried.
      expect(first).toMatchObject({ usageEventRows: 2, apiKeys: 1, rowsLeft: 0 });
      expect(dieAt).toBeGreaterThan(2);
      await expectOthers(before);
      return;
    }
    expect(first.message).toBe('died');
    const second = await eraseAccount(options, await findAccount(options), signal, () => undefined);
    expect(second).toMatchObject({ apiKeys: 0, rowsLeft: 0 });
    await expectOthers(before);
    expect((await findAccount(options)).holdings).toEqual({ usageEventRows: 0, rejectedEventRows: 0, apiKeys: 0 });
  }
});

it('an interruption ends an erasure between two months, and says how much was erased', async () => {
  const { options } = await optionsOfAccount();
  const interruption = new AbortController();
  const onProgress = (done: number) => {
    if (done === 1) interruption.abort();
  };
  const erased = await eraseAccount(options, await findAccount(options), interruption.signal, onProgress);
  expect(erased).toMatchObject({ apiKeys: 1, rowsLeft: undefined });
  expect(erased.usageEventRows).toBeLessThan(2);
});
