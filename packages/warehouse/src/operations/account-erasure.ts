/** Finds and deletes all rows of an account, one partition at a time. */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { onEachShard, type Statement, type Warehouse } from '../clickhouse/connection.js';

/** Each table is computed from usage_events or from tables earlier in this list. Erase them in this order, after usage_events. */
export const DERIVED_TABLES = ['usage_hourly', 'usage_daily', 'dirty_hours', 'result_pages'] as const;
const ACCOUNT_TABLES = ['usage_events', 'rejected_events', ...DERIVED_TABLES] as const;
export type AccountTable = (typeof ACCOUNT_TABLES)[number];

export interface AccountPartition {
  readonly shard: Warehouse;
  readonly table: AccountTable;
  readonly partition: string;
  /** Includes unmerged duplicates. 0 if the partition has only stored results about several accounts. */
  readonly rows: number;
}

/** Stored results about several accounts have owners that begin with \0. They may contain this account's groups, so all are deleted. */
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
 * Resolves when the rows are gone from every replica. Uses a mutation, which rewrites the partition's parts: a lightweight DELETE would
 * only mark rows, and merges might never remove them. Old files disappear some minutes later (old_parts_lifetime, 8 minutes by default).
 * Rows that are inserted after the mutation has started remain.
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

/** Finds statements that are computing rollup rows or result pages, by the first words of their SQL (recompute.ts, metrics/read.ts). */
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
 * Waits for all running recomputations, which may still store rows computed from erased events. The server's limits on statements bound the
 * wait. Checks only one replica of each shard, so with several replicas the caller must erase once more later.
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

/** Removes settled rejections from the files of every shard. Until then, they are only marked as deleted. */
export async function removeDeletedRejections(shards: readonly Warehouse[]): Promise<void> {
  const name = 'remove_deleted_rejections';
  const statement = { name, query: 'ALTER TABLE rejected_events APPLY DELETED MASK' };
  await onEachShard(shards, (shard) => shard.run(statement));
}
