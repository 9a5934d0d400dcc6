/** Everything that ClickHouse holds of one account, found and removed a partition at a time. */
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';

/** What is computed from usage_events, and so must be erased after it. */
export const DERIVED_TABLES = [
  'usage_hourly',
  'usage_daily',
  'stale_hours',
  'stored_answers',
  'metrics_results',
] as const;
/** The tables with rows of accounts, in the order of their erasure. */
const ACCOUNT_TABLES = ['usage_events', 'rejected_events', ...DERIVED_TABLES] as const;
export type AccountTable = (typeof ACCOUNT_TABLES)[number];

/** A partition of a table (in most tables a month) and how many rows of the account it holds; unmerged duplicates count. */
export interface AccountPartition {
  readonly table: AccountTable;
  readonly partition: string;
  readonly rows: number;
}

export function accountPartitionsStatement(table: AccountTable, accountId: string): Statement {
  return {
    name: 'read_account_partitions',
    query: `
SELECT _partition_id AS partition, count() AS rows
FROM {table: Identifier}
WHERE account_id = {account_id: String}
GROUP BY partition
ORDER BY partition`,
    query_params: { table, account_id: accountId },
  };
}

const partitionRow = z.object({ partition: z.string(), rows: z.string().transform(Number) });

export async function readAccountPartitions(
  warehouse: Warehouse,
  accountId: string,
  wanted: readonly AccountTable[] = ACCOUNT_TABLES,
): Promise<AccountPartition[]> {
  const tables = wanted.map(async (table) => {
    const rows = await warehouse.read(accountPartitionsStatement(table, accountId), partitionRow);
    return rows.map(({ partition, rows }) => ({ table, partition, rows }));
  });
  return (await Promise.all(tables)).flat();
}

/** The statement ends when the mutation has. */
const ON_EVERY_REPLICA = { mutations_sync: '2' } as const;

/**
 * A mutation, not a lightweight DELETE: that one only marks rows, and merges may take for ever to drop them. This one
 * rewrites the partition's parts without the rows; ClickHouse removes the old files after some minutes
 * (old_parts_lifetime, 8 by default). Rows inserted after it has begun stay.
 */
export function erasePartitionStatement({ table, partition }: AccountPartition, accountId: string): Statement {
  return {
    name: 'erase_account_partition',
    query: `
ALTER TABLE {table: Identifier}
DELETE IN PARTITION ID {partition: String}
WHERE account_id = {account_id: String}`,
    query_params: { table, partition, account_id: accountId },
  };
}

/** Resolves when the rows are gone from every replica. */
export async function eraseAccountPartition(
  warehouse: Warehouse,
  partition: AccountPartition,
  accountId: string,
): Promise<void> {
  await warehouse.run({ ...erasePartitionStatement(partition, accountId), settings: ON_EVERY_REPLICA });
}

/** Refusals that were settled are marked as deleted; this takes those of every account out of the files. */
const REMOVE_DELETED_REJECTIONS = 'ALTER TABLE rejected_events APPLY DELETED MASK';

/** Resolves when nothing of them is left on any replica. */
export async function removeDeletedRejections(warehouse: Warehouse): Promise<void> {
  await warehouse.run({
    name: 'remove_deleted_rejections',
    query: REMOVE_DELETED_REJECTIONS,
    query_params: {},
    settings: ON_EVERY_REPLICA,
  });
}
