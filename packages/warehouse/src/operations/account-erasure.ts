/** Finds and deletes all rows of one account, a partition at a time. */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { onEachShard, type Statement, type Warehouse } from '../clickhouse/connection.js';

/** Tables derived from usage_events and from the tables before them in this list. They are erased in this order, after usage_events. */
export const DERIVED_TABLES = ['usage_hourly', 'usage_daily', 'dirty_hours', 'result_pages'] as const;
/** The tables with rows of accounts, in the order of their erasure. */
const ACCOUNT_TABLES = ['usage_events', 'rejected_events', ...DERIVED_TABLES] as const;
export type AccountTable = (typeof ACCOUNT_TABLES)[number];

/** A partition of a table (in most tables a month) and the number of the account's rows in it, including unmerged duplicates. */
export interface AccountPartition {
  readonly shard: Warehouse;
  readonly table: AccountTable;
  readonly partition: string;
  /** The number of the account's rows. 0 if the partition only has results about several accounts. */
  readonly rows: number;
}

/**
 * Returns the condition that selects rows to delete. Results about several accounts, stored under names that start with \0, may contain
 * groups of this account, so all of them are deleted.
 */
function rowsOf(table: AccountTable): string {
  const ofAccount = 'account_id = {account_id: String}';
  return table === 'result_pages' ? `(${ofAccount} OR startsWith(account_id, '\\0'))` : ofAccount;
}

function accountPartitionsStatement(table: AccountTable, accountId: string): Statement {
  return {
    name: 'read_account_partitions',
    query: `
SELECT _partition_id AS partition, countIf(account_id = {account_id: String}) AS rows
FROM {table: Identifier}
WHERE ${rowsOf(table)}
GROUP BY partition
ORDER BY partition`,
    query_params: { table, account_id: accountId },
  };
}

const partitionRow = z.object({ partition: z.string(), rows: z.coerce.number() });

export async function readAccountPartitions(
  shards: readonly Warehouse[],
  accountId: string,
  names: readonly AccountTable[] = ACCOUNT_TABLES,
): Promise<AccountPartition[]> {
  const found = await onEachShard(shards, async (shard) => {
    const tables = names.map(async (table) => {
      const rows = await shard.read(accountPartitionsStatement(table, accountId), partitionRow);
      return rows.map(({ partition, rows }) => ({ shard, table, partition, rows }));
    });
    return (await Promise.all(tables)).flat();
  });
  return found.flat();
}

/**
 * Resolves when the rows are gone from every replica. Uses a mutation, which rewrites the parts of the partition without the rows. A
 * lightweight DELETE would only mark rows, and merges might never drop them. ClickHouse removes the old files some minutes later
 * (old_parts_lifetime, 8 by default). Rows inserted after the mutation has started remain.
 */
export async function eraseAccountPartition(
  { shard, table, partition }: AccountPartition,
  accountId: string,
): Promise<void> {
  await shard.run({
    name: 'erase_account_partition',
    query: `
ALTER TABLE {table: Identifier}
DELETE IN PARTITION ID {partition: String}
WHERE ${rowsOf(table)}`,
    query_params: { table, partition, account_id: accountId },
  });
}

/**
 * Running statements of any process that compute rollup rows or result pages. Their text begins like this: see recompute.ts and
 * metrics/read.ts.
 */
const RECOMPUTATIONS: Statement = {
  name: 'read_recomputations',
  query: `
SELECT query_id
FROM system.processes
WHERE match(query, '^\\\\s*INSERT INTO (usage_hourly|usage_daily|result_pages)')`,
};
const recomputationRow = z.object({ query_id: z.string() });
const RECOMPUTATION_POLL_MS = 50;

/**
 * Resolves when all recomputations that are running now have ended, because they may still store rows computed from erased events. The
 * server's limits bound how long each takes. With several replicas only one is checked, so erase once more later.
 */
export async function recomputationsEnded(shards: readonly Warehouse[]): Promise<void> {
  const read = async (shard: Warehouse) =>
    (await shard.read(RECOMPUTATIONS, recomputationRow)).map(({ query_id: id }) => id);
  await onEachShard(shards, async (shard) => {
    let inFlight = await read(shard);
    while (inFlight.length > 0) {
      await delay(RECOMPUTATION_POLL_MS);
      const running = new Set(await read(shard));
      inFlight = inFlight.filter((id) => running.has(id));
    }
  });
}

/** Resolves when the rows of settled rejections, which are marked as deleted, are gone from the files of every shard. */
export async function removeDeletedRejections(shards: readonly Warehouse[]): Promise<void> {
  const name = 'remove_deleted_rejections';
  const statement = { name, query: 'ALTER TABLE rejected_events APPLY DELETED MASK' };
  await onEachShard(shards, (shard) => shard.run(statement));
}
