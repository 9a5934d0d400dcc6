/** Erases an account: its API keys, its alerts, its events, the rejected events that claim it, and what was computed from them. */
import { ApiKeyStore, type RedisClient } from '@meterline/service/access';
import { AlertStore } from '@meterline/service/alerts';
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

/** How much there is of an account, or how much of it was erased. */
export interface Holdings {
  /** Rows: an event that was revised may have several. */
  readonly usageEventRows: number;
  readonly rejectedEventRows: number;
  readonly apiKeys: number;
  readonly alerts: number;
}

export interface ErasureOptions {
  readonly shards: Shards;
  /** Opened for the keys alone. */
  readonly withRedis: <T>(work: (redis: RedisClient) => Promise<T>) => Promise<T>;
  readonly account: string;
}

/** What an account has at this moment, for an operator to confirm. */
export interface FoundAccount {
  readonly holdings: Holdings;
  readonly partitions: readonly AccountPartition[];
}

export interface Erasure extends Holdings {
  /** Rows of the account that were stored meanwhile; undefined when interrupted. */
  readonly rowsLeft: number | undefined;
}

export async function findAccount({ shards, withRedis, account }: ErasureOptions): Promise<FoundAccount> {
  const partitions = await readAccountPartitions(shards.all, account);
  const inRedis = await withRedis(async (redis) => ({
    apiKeys: (await new ApiKeyStore(redis).list()).filter((key) => key.account === account).length,
    alerts: (await new AlertStore(redis).listOf(account)).length,
  }));
  return { holdings: holdingsOf(partitions, inRedis), partitions };
}

/**
 * Crash order, each step harmless when it is done again:
 * 1. The API keys are erased, and with them the alerts and their deliveries. A crash after this leaves the account's rows, which nobody can read.
 * 2. The rows that were found are erased, one table and month after the other. A crash in between leaves the months that
 *    are not done.
 * 3. What was computed from events that were not erased yet may be stored after its month was done: the derived tables are
 *    read and erased again, one after the other, each when the recomputations have ended that may have read what it is
 *    computed from.
 * 4. Rejections that were settled before are removed from the files too.
 * 5. The hours of events that arrived meanwhile are marked as dirty.
 * After a crash or an interruption anywhere, finding the account and erasing it again erases the rest.
 * @param signal ends the erasure between two months
 */
export async function eraseAccount(
  { shards, withRedis, account }: ErasureOptions,
  { partitions }: FoundAccount,
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<Erasure> {
  const inRedis = await withRedis((redis) => eraseFromRedis(redis, account));
  const erase = async (wanted: readonly AccountPartition[]) => {
    const erased: AccountPartition[] = [];
    if (wanted.length > 0) onProgress(0, wanted.length);
    // The partitions go one after the other, because each erasure writes its month again.
    for (const partition of wanted) {
      if (signal.aborted) break;
      await eraseAccountPartition(partition, account);
      erased.push(partition);
      onProgress(erased.length, wanted.length);
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
  // A producer that goes on, or a worker that had rows in memory, may have stored some after their month was erased. These count, and
  // what was computed from them, or the marks of their hours, may have been erased.
  const left = await readAccountPartitions(shards.all, account);
  await Promise.all(shards.all.map((shard) => markHoursOfEvents(shard, account)));
  return { ...holdingsOf(erased, inRedis), rowsLeft: left.reduce((sum, { rows }) => sum + rows, 0) };
}

function holdingsOf(partitions: readonly AccountPartition[], inRedis: Pick<Holdings, 'apiKeys' | 'alerts'>): Holdings {
  const rowsOf = (wanted: AccountTable) =>
    partitions.reduce((sum, { table, rows }) => (table === wanted ? sum + rows : sum), 0);
  return { usageEventRows: rowsOf('usage_events'), rejectedEventRows: rowsOf('rejected_events'), ...inRedis };
}

async function eraseFromRedis(redis: RedisClient, account: string): Promise<Pick<Holdings, 'apiKeys' | 'alerts'>> {
  const keys = new ApiKeyStore(redis);
  const apiKeys = await keys.eraseKeysOf(account);
  const alerts = await new AlertStore(redis).eraseOf(account);
  await keys.accounts.forget(account);
  return { apiKeys, alerts };
}
