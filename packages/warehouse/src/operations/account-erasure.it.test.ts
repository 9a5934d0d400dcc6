/** What is erased, to the last row in the files. The command: test/cli/erase. */
import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { pricedEvent } from '../../../../test/harness/events.js';
import { select } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics, storeMetrics } from '../metrics/read.js';
import { eraseAccountPartition, readAccountPartitions, removeDeletedRejections } from './account-erasure.js';
import { prepareRejectedEvents, readOpenRejections, settleRejections } from './rejections.js';

const OCTOBER = Date.UTC(2025, 9, 1);
const NOVEMBER = Date.UTC(2025, 10, 1);

const database = testDatabase();

/** Keeps a rejected event of each account. */
function reject(...accounts: readonly string[]): Promise<void> {
  const rows = accounts.map((accountId, position) => ({
    ...{ receivedAt: OCTOBER, jobId: accountId, position, accountId, message: '', payload: '{}' },
    reason: 'invalid_usage' as const,
  }));
  return prepareRejectedEvents(rows)(database.warehouse);
}

/** Rows in the files, those that are only marked as deleted included. */
async function rowsOf(table: string, accountId: string): Promise<number> {
  const query = `SELECT toUInt32(count()) AS rows FROM {table: Identifier} WHERE account_id = {accountId: String}
                 SETTINGS apply_deleted_mask = 0`;
  return (await select<{ rows: number }>(database.warehouse, query, { table, accountId }))[0]?.rows ?? -1;
}

const partitionsOf = (accountId: string) => readAccountPartitions(database.shards.all, accountId);

async function erase(accountId: string): Promise<void> {
  for (const partition of await partitionsOf(accountId)) await eraseAccountPartition(partition, accountId);
}

it("erasing takes a month's rows out of the files, duplicates and those of other months and accounts apart", async () => {
  const october = pricedEvent({ timestamp: OCTOBER });
  const others = [pricedEvent({ timestamp: NOVEMBER }), pricedEvent({ accountId: 'zeta', timestamp: OCTOBER })];
  await insertUsageEvents(database.warehouse, [october, ...others]);
  await insertUsageEvents(database.warehouse, [{ ...october, revision: 1 }]);
  await reject('acme', 'zeta');

  const partitions = await partitionsOf('acme');
  expect(partitions).toMatchObject([
    { table: 'usage_events', partition: '202510', rows: expect.any(Number) },
    { table: 'usage_events', partition: '202511', rows: 1 },
    { table: 'rejected_events', partition: '202510', rows: 1 },
  ]);
  const [first, ...rest] = partitions;
  if (first) await eraseAccountPartition(first, 'acme');
  expect(await partitionsOf('acme')).toEqual(rest);
  await erase('acme');
  for (const table of ['usage_events', 'rejected_events']) {
    expect([await rowsOf(table, 'acme'), await rowsOf(table, 'zeta')]).toEqual([0, 1]);
  }
});

it('erasing takes stored results about several accounts with it, which may have its groups', async () => {
  const accounts = ['shared', 'zeta'];
  const about = { accounts, window: { startTime: OCTOBER, endTime: NOVEMBER }, filters: {} };
  const query = { ...about, resolution: 'monthly', groupBy: ['account'], limit: 9 } as const;
  const events = accounts.map((accountId) => pricedEvent({ accountId, timestamp: OCTOBER }));
  await insertUsageEvents(database.warehouse, events);
  const owners = ['\0caller', 'shared', 'zeta'];
  const { mark } = await readMetrics(database.warehouse, query);
  for (const owner of owners) {
    await storeMetrics(database.warehouse, { owner, resultId: randomUUID() }, query, mark.digest);
  }
  await erase('shared');
  expect(await Promise.all(owners.map((owner) => rowsOf('result_pages', owner)))).toEqual([0, 0, 2]);
});

it('erasing does not keep the same event from counting when it comes again', async () => {
  const again = pricedEvent({ accountId: 'again', timestamp: OCTOBER });
  await insertUsageEvents(database.warehouse, [{ ...again, revision: 9 }]);
  await erase('again');
  await insertUsageEvents(database.warehouse, [again]);
  expect(await rowsOf('usage_events', 'again')).toBe(1);
});

it('removing takes rejections out of the files that settling has only marked', async () => {
  const open = () => readOpenRejections(database.warehouse, { accountId: 'marked' }, { limit: 9 });
  await reject('marked', 'marked');
  const [second] = await open();
  await settleRejections(database.shards, second ? [second] : [], 'discarded');
  expect(await rowsOf('rejected_events', 'marked')).toBe(2);
  await removeDeletedRejections(database.shards.all);
  expect(await rowsOf('rejected_events', 'marked')).toBe(1);
  expect(await open()).toMatchObject([{ position: 0 }]);
});
