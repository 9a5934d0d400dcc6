/** Erases an account: its API keys, alerts, saved views, events, rejected events, and rows derived from events, such as rollups. */
import { ApiKeyStore, type RedisClient } from '@meterline/service/access';
import { AlertStore } from '@meterline/service/alerts';
import { ViewStore } from '@meterline/service/views';
import {
  type AccountPartition,
  type AccountTable,
  DERIVED_TABLES,
  eraseAccountPartition,
  markHoursOfEvents,
  readAccountPartitions,
  recomputationsEnded,
  removeDeletedRejections,
  type Shards,
} from '@meterline/warehouse';
import type { OnProgress } from './operation.js';

export interface Holdings {
  /** Number of rows. A revised event may have several rows. */
  readonly usageEventRows: number;
  readonly rejectedEventRows: number;
  readonly apiKeys: number;
  readonly alerts: number;
  readonly views: number;
}

type HoldingsInRedis = Pick<Holdings, 'apiKeys' | 'alerts' | 'views'>;

export interface ErasureOptions {
  readonly shards: Shards;
  /** Connects to Redis for one step. No connection stays open during the erasure. */
  readonly withRedis: <T>(work: (redis: RedisClient) => Promise<T>) => Promise<T>;
  readonly account: string;
}

export interface FoundAccount {
  readonly holdings: Holdings;
  readonly partitions: readonly AccountPartition[];
}

export interface Erasure extends Holdings {
  /** Number of rows that were stored during the erasure and are therefore left. Undefined after an interruption, because they were not counted. */
  readonly rowsLeft: number | undefined;
}

export async function findAccount({ shards, withRedis, account }: ErasureOptions): Promise<FoundAccount> {
  const partitions = await readAccountPartitions(shards.all, account);
  const inRedis = await withRedis(async (redis) => ({
    apiKeys: (await new ApiKeyStore(redis).list()).filter((key) => key.account === account).length,
    alerts: (await new AlertStore(redis).listOf(account)).length,
    views: (await new ViewStore(redis).listOf(account)).length,
  }));
  return { holdings: holdingsOf(partitions, inRedis), partitions };
}

/**
 * Erases an account.
 *
 * Crash order: each step can be repeated safely. After a crash or interruption, `findAccount` and `eraseAccount` erase the rest.
 * 1. Erase the API keys, alerts, deliveries and saved views. A crash after this step leaves rows that no caller can read.
 * 2. Erase the rows that `findAccount` found, one table and month after the other. A crash leaves the remaining months.
 * 3. Erase the derived tables again, because a recomputation that read events before step 2 may have stored its result later. Before each
 * table, wait until such recomputations have ended.
 * 4. Remove deleted rejections from the data files, including rejections that were settled earlier.
 * 5. Mark the hours of events that arrived during the erasure as dirty, so that a worker recomputes their rollup rows.
 * @param signal ends the erasure between two months
 */
export async function eraseAccount(
  { shards, withRedis, account }: ErasureOptions,
  { partitions }: FoundAccount,
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<Erasure> {
  const inRedis = await withRedis((redis) => eraseFromRedis(redis, account));
  const erase = async (remaining: readonly AccountPartition[]) => {
    const erased: AccountPartition[] = [];
    if (remaining.length > 0) onProgress(0, remaining.length);
    // Erase one partition at a time, because each erasure rewrites the data of its month.
    for (const partition of remaining) {
      if (signal.aborted) break;
      await eraseAccountPartition(partition, account);
      erased.push(partition);
      onProgress(erased.length, remaining.length);
    }
    return erased;
  };
  const erased = await erase(partitions);
  for (const table of DERIVED_TABLES) {
    await recomputationsEnded(shards.all);
    await erase(await readAccountPartitions(shards.all, account, [table]));
  }
  if (signal.aborted) return { ...holdingsOf(erased, inRedis), rowsLeft: undefined };
  await removeDeletedRejections(shards.all);
  // Events may have been stored after their month was erased, for example by a worker that had them in memory. These events count, but their
  // rollup rows or dirty marks may have been erased. Mark their hours as dirty again.
  const left = await readAccountPartitions(shards.all, account);
  await Promise.all(shards.all.map((shard) => markHoursOfEvents(shard, account)));
  return { ...holdingsOf(erased, inRedis), rowsLeft: left.reduce((sum, { rows }) => sum + rows, 0) };
}

function holdingsOf(partitions: readonly AccountPartition[], inRedis: HoldingsInRedis): Holdings {
  const rowsOf = (name: AccountTable) =>
    partitions.reduce((sum, { table, rows }) => (table === name ? sum + rows : sum), 0);
  return { usageEventRows: rowsOf('usage_events'), rejectedEventRows: rowsOf('rejected_events'), ...inRedis };
}

async function eraseFromRedis(redis: RedisClient, account: string): Promise<HoldingsInRedis> {
  const keys = new ApiKeyStore(redis);
  const apiKeys = await keys.eraseKeysOf(account);
  const alerts = await new AlertStore(redis).eraseOf(account);
  const views = await new ViewStore(redis).eraseOf(account);
  await keys.accounts.forget(account);
  return { apiKeys, alerts, views };
}
