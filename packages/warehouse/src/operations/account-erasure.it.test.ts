import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pricedEvent } from '../../../../test/harness/events.js';
import { createTestDatabase, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from '../metrics/read.js';
import { storeMetrics } from '../metrics/stored-pages.js';
import { eraseAccountPartition, readAccountPartitions, removeDeletedRejections } from './account-erasure.js';
import { prepareRejectedEvents, type RejectedEvent, readOpenRejections, settleRejections } from './rejections.js';

const OCTOBER = Date.UTC(2025, 9, 1);
const NOVEMBER = Date.UTC(2025, 10, 1);

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function refused(accountId: string, position: number): RejectedEvent {
  const reason = 'invalid_usage';
  return { receivedAt: OCTOBER, jobId: accountId, position, accountId, reason, message: '', payload: '{}' };
}

/** Rows in the files, those that are only marked as deleted included. */
async function rowsOf(table: string, accountId: string): Promise<number> {
  const query = `SELECT toUInt32(count()) AS rows FROM {table: Identifier} WHERE account_id = {accountId: String}
                 SETTINGS apply_deleted_mask = 0`;
  return (await select<{ rows: number }>(database.warehouse, query, { table, accountId }))[0]?.rows ?? -1;
}

describe('erasing an account', () => {
  it("takes a month's rows out of the files, duplicates and those of other months and accounts apart", async () => {
    const october = pricedEvent({ accountId: 'acme', timestamp: OCTOBER });
    await insertUsageEvents(database.warehouse, [
      october,
      pricedEvent({ accountId: 'acme', timestamp: NOVEMBER }),
      pricedEvent({ accountId: 'zeta', timestamp: OCTOBER }),
    ]);
    await insertUsageEvents(database.warehouse, [{ ...october, revision: 1 }]);
    await prepareRejectedEvents([refused('acme', 0), refused('zeta', 0)])(database.warehouse);

    const partitions = await readAccountPartitions(database.shards.all, 'acme');
    expect(partitions).toMatchObject([
      { table: 'usage_events', partition: '202510', rows: expect.any(Number) },
      { table: 'usage_events', partition: '202511', rows: 1 },
      { table: 'rejected_events', partition: '202510', rows: 1 },
    ]);
    const [first, ...others] = partitions;
    if (first) await eraseAccountPartition(first, 'acme');
    expect(await readAccountPartitions(database.shards.all, 'acme')).toEqual(others);
    for (const partition of others) await eraseAccountPartition(partition, 'acme');

    expect(await readAccountPartitions(database.shards.all, 'acme')).toEqual([]);
    expect(await rowsOf('usage_events', 'acme')).toBe(0);
    expect(await rowsOf('rejected_events', 'acme')).toBe(0);
    expect(await rowsOf('usage_events', 'zeta')).toBe(1);
    expect(await rowsOf('rejected_events', 'zeta')).toBe(1);
  });

  it('takes stored results about several accounts with it, which may have its groups', async () => {
    const accounts = ['shared', 'zeta'];
    const window = { startTime: OCTOBER, endTime: NOVEMBER };
    const question = { window, filters: {}, resolution: 'monthly', groupBy: ['account'], limit: 9 } as const;
    await insertUsageEvents(
      database.warehouse,
      accounts.map((accountId) => pricedEvent({ accountId, timestamp: OCTOBER })),
    );
    const owners = ['\0caller', 'shared', 'zeta'];
    for (const owner of owners) {
      const result = { owner, resultId: randomUUID() };
      const { mark } = await readMetrics(database.warehouse, { ...question, accounts });
      await storeMetrics(database.warehouse, result, { ...question, accounts }, mark.digest);
    }
    for (const partition of await readAccountPartitions(database.shards.all, 'shared')) {
      await eraseAccountPartition(partition, 'shared');
    }
    expect(await Promise.all(owners.map((owner) => rowsOf('result_pages', owner)))).toEqual([0, 0, 2]);
  });

  it('does not keep the same event from counting when it comes again', async () => {
    const again = pricedEvent({ accountId: 'again', timestamp: OCTOBER });
    await insertUsageEvents(database.warehouse, [{ ...again, revision: 9 }]);
    for (const partition of await readAccountPartitions(database.shards.all, 'again')) {
      await eraseAccountPartition(partition, 'again');
    }
    await insertUsageEvents(database.warehouse, [again]);
    expect(await rowsOf('usage_events', 'again')).toBe(1);
  });

  it('takes refusals out of the files that settling has only marked', async () => {
    await prepareRejectedEvents([refused('marked', 0), refused('marked', 1)])(database.warehouse);
    const [second] = await readOpenRejections(database.warehouse, { jobId: 'marked' }, { limit: 1 });
    await settleRejections(database.shards, second ? [second] : [], 'discarded');
    expect(await rowsOf('rejected_events', 'marked')).toBe(2);
    await removeDeletedRejections(database.shards.all);
    expect(await rowsOf('rejected_events', 'marked')).toBe(1);
    expect(await readOpenRejections(database.warehouse, { jobId: 'marked' }, { limit: 9 })).toMatchObject([
      { position: 0 },
    ]);
  });
});
