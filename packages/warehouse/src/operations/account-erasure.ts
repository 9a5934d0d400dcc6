/** Everything that ClickHouse holds of one account, found and removed a partition at a time. */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { onEachShard, type Statement, type Warehouse } from '../clickhouse/connection.js';

/** Tables that are computed from usage_events and from those before them in this list, so they are erased in this order, after it. */
export const DERIVED_TABLES = ['usage_hourly', 'usage_daily', 'dirty_hours', 'result_pages'] as const;
/** The tables with rows of accounts, in the order of their erasure. */
const ACCOUNT_TABLES = ['usage_events', 'rejected_events', ...DERIVED_TABLES] as const;
export type AccountTable = (typeof ACCOUNT_TABLES)[number];

/** A partition of a table (in most tables a month) and how many rows of the account it holds; unmerged duplicates count. */
export interface AccountPartition {
  /** Where it lies. */
  readonly shard: Warehouse;
  readonly table: AccountTable;
  readonly partition: string;
  /** How many rows the account has: 0 where only results about several accounts are. */
  readonly rows: number;
}

/** Results about several accounts are stored under names that no account has, and their groups may be of this one: all of them go. */
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
  wanted: readonly AccountTable[] = ACCOUNT_TABLES,
): Promise<AccountPartition[]> {
  const found = await onEachShard(shards, async (shard) => {
    const tables = wanted.map(async (table) => {
      const rows = await shard.read(accountPartitionsStatement(table, accountId), partitionRow);
      return rows.map(({ partition, rows }) => ({ shard, table, partition, rows }));
    });
    return (await Promise.all(tables)).flat();
  });
  return found.flat();
}

/**
 * Resolves when the rows are gone from every replica. A mutation, not a lightweight DELETE: that one only marks rows, and
 * merges may take for ever to drop them. This one rewrites the partition's parts without the rows; ClickHouse removes the old
 * files after some minutes (old_parts_lifetime, 8 by default). Rows inserted after it has begun stay.
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

/** Statements that compute rollup rows and result pages, by any process. Their text begins so: see recompute.ts and metrics/read.ts. */
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
 * Resolves when the recomputations that are under way have ended: they may store rows that they have computed from what was
 * erased meanwhile. The server's limits bound how long each takes. Of several replicas one is asked: on them erase once more later.
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

/** Rejections that were settled are marked as deleted. Resolves when they are gone from the files, on each shard. */
export async function removeDeletedRejections(shards: readonly Warehouse[]): Promise<void> {
  const name = 'remove_deleted_rejections';
  const statement = { name, query: 'ALTER TABLE rejected_events APPLY DELETED MASK' };
  await onEachShard(shards, (shard) => shard.run(statement));
}
