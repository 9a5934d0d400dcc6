/** Erasing an account from a real ClickHouse and Redis, also when it ends half way. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ApiKeyStore } from '@meterline/service/access';
import { AlertStore } from '@meterline/service/alerts';
import { insertUsageEvents, readAccountPartitions, readMarkedHours, sealNext } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { ALERT_SETTINGS } from '../../../../test/harness/alerts.js';
import { event } from '../../../../test/harness/events.js';
import { until } from '../../../../test/harness/queue.js';
import { execute, select, testRedisUrl, uniquePrefix } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { eraseAccount, findAccount } from './erasure.js';

const database = testDatabase();
let redis: Redis;
beforeAll(async () => {
  redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
});
afterAll(async () => {
  redis.disconnect();
});

/** Of a new account with events in two months, one of them sealed, a key and an alert. */
async function optionsOfAccount() {
  const account = uniquePrefix();
  await insertUsageEvents(database.warehouse, [
    event({ accountId: account }),
    event({ accountId: account, at: '2025-11-01T00:00:00Z' }),
  ]);
  while (await sealNext(database.shards.all, Date.UTC(2025, 9, 2)));
  const keys = new ApiKeyStore(redis);
  const { key } = await keys.create({ account, role: 'admin', clientId: 'client' }, new Date());
  await new AlertStore(redis).create(account, ALERT_SETTINGS, new Date());
  const withRedis = <T>(work: (connection: Redis) => Promise<T>) => work(redis);
  return { options: { shards: database.shards, withRedis, account }, keys, key };
}

it('an erasure that dies after each of its steps leaves no key that reads, and is finished by the next one', async () => {
  for (let dieAt = 0; ; dieAt += 1) {
    const { options, keys, key } = await optionsOfAccount();
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
      expect(first).toMatchObject({ usageEventRows: 2, apiKeys: 1, alerts: 1, rowsLeft: 0 });
      expect(dieAt).toBeGreaterThan(2);
      return;
    }
    expect(first.message).toBe('died');
    const second = await eraseAccount(options, await findAccount(options), signal, () => undefined);
    expect(second).toMatchObject({ apiKeys: 0, rowsLeft: 0 });
    expect((await findAccount(options)).holdings).toEqual({
      usageEventRows: 0,
      rejectedEventRows: 0,
      apiKeys: 0,
      alerts: 0,
    });
  }
});

it.each(['usage_daily', 'result_pages'])(
  'an erasure leaves no row of %s that was being computed from the events when they were erased',
  async (table) => {
    const { options } = await optionsOfAccount();
    const { account, shards } = options;
    const seal = `INSERT INTO ${table} (account_id) SELECT {account: String} FROM numbers(3) WHERE sleepEachRow(1) = 0`;
    const sealed = execute(database.warehouse, seal, { account });
    await until('it runs', 10_000, async () => {
      const running = `SELECT query_id FROM system.processes WHERE startsWith(query, '${seal.slice(0, 40)}')`;
      return (await select(database.warehouse, running)).length > 0;
    });
    const { signal } = new AbortController();
    expect(await eraseAccount(options, await findAccount(options), signal, () => undefined)).toMatchObject({
      rowsLeft: 0,
    });
    await sealed;
    expect(await readAccountPartitions(shards.all, account)).toEqual([]);
  },
);

it('an event that arrives during an erasure counts, also when what was computed from it and its mark were erased', async () => {
  const { options } = await optionsOfAccount();
  const found = await findAccount(options);
  // As if the events had arrived just after their months had been erased.
  const partitions = found.partitions.filter(({ table }) => table !== 'usage_events');
  const { signal } = new AbortController();
  const erased = await eraseAccount(options, { ...found, partitions }, signal, () => undefined);
  expect(erased.rowsLeft).toBe(2);
  const window = { startTime: 0, endTime: Date.UTC(2026, 0) };
  const marked = await readMarkedHours(database.warehouse, [options.account], window);
  expect(marked).toEqual([{ accountId: options.account, bucket: expect.any(Number) }]);
  expect(marked[0]?.bucket).toBeLessThan(Date.UTC(2025, 9, 2));
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
