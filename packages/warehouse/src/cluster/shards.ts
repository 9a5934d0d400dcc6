/**
 * The shards of a deployment. On one server there is one, the whole. What is written, sealed, repaired and erased is sent to
 * the shard's own tables, so that a shard that is slow or away delays nothing of the others, and each is exact as one server is.
 */
import { createWarehouse, type Warehouse, type WarehouseOptions } from '../clickhouse/connection.js';
import { cityHash64 } from './city-hash.js';
import { localDatabase } from './cluster.js';
import { ClusterError, type HostFacts, readTopology } from './topology.js';

export interface Shards {
  /** All rows of all shards; on one server the same as its only shard. */
  readonly whole: Warehouse;
  /** Their own tables, in the order of their numbers. */
  readonly all: readonly Warehouse[];
  /** The index of the shard of an account, or of another text that rows are sharded by. */
  indexOf(text: string): number;
  /** The shard of an account, or of another text that rows are sharded by. */
  of(text: string): Warehouse;
  close(): Promise<void>;
}

/** @param count of shards. @returns from 0 on, as the Distributed tables choose it */
export function shardIndex(text: string, count: number): number {
  return count === 1 ? 0 : Number(cityHash64(text) % BigInt(count));
}

/** The number of an account's shard, from 1 on, for tables whose rows are about a shard; undefined on one server. */
export function shardNumber(accountId: string, count: number): number | undefined {
  return count === 1 ? undefined : shardIndex(accountId, count) + 1;
}

/**
 * @param options in a cluster with the address of a host of each shard; of several replicas of one, the first is used
 * @throws ClusterError when they lack a shard, or the cluster is not as it must be
 */
export async function openShards(options: WarehouseOptions): Promise<Shards> {
  const { cluster, database } = options;
  const whole = createWarehouse(options);
  if (!cluster) return oneServer(whole);
  const urls = urlsByShard(await readTopology(options, cluster));
  return shardsOf(
    whole,
    urls.map((url) => createWarehouse({ ...options, url, database: localDatabase(database) })),
  );
}

/** How many shards the deployment has. @throws ClusterError when the cluster is not as it must be */
export async function countShards(options: WarehouseOptions): Promise<number> {
  if (!options.cluster) return 1;
  const [host] = await readTopology(options, options.cluster);
  return new Set(host?.replicas.map(({ shard }) => shard)).size;
}

function urlsByShard(hosts: readonly HostFacts[]): string[] {
  const numbers = [...new Set(hosts.flatMap(({ replicas }) => replicas.map(({ shard }) => shard)))].sort(
    (a, b) => a - b,
  );
  return numbers.map((number) => {
    const host = hosts.find(({ replicas }) => replicas.some(({ shard, isLocal }) => isLocal && shard === number));
    if (host) return host.url;
    throw new ClusterError(
      `CLICKHOUSE_URL has no host of shard ${number}; name one of each shard, separated by commas`,
    );
  });
}

export function oneServer(warehouse: Warehouse): Shards {
  return shardsOf(warehouse, [warehouse]);
}

function shardsOf(whole: Warehouse, all: readonly Warehouse[]): Shards {
  const indexOf = (text: string) => shardIndex(text, all.length);
  return {
    whole,
    all,
    indexOf,
    of: (text) => all[indexOf(text)] ?? whole,
    close: async () => {
      await Promise.all([...new Set([whole, ...all])].map((warehouse) => warehouse.close()));
    },
  };
}
