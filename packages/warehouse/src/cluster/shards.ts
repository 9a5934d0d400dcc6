/**
 * The shards of a deployment; one server is one shard. Rows are inserted and read through Distributed tables, and the engine
 * finds their shards. What the engine does not distribute is sent to each shard's own tables: watermarks, recomputation, sealing,
 * deletions.
 */

import { createWarehouse, type Warehouse, type WarehouseOptions } from '../clickhouse/connection.js';
import { localDatabase } from '../clickhouse/hosts.js';
import { ClusterError, type HostFacts, readTopology } from './topology.js';

export interface Shards {
  /** All rows of all shards; on one server the same as its only shard. */
  readonly whole: Warehouse;
  /** Their own tables, in the order of their numbers. */
  readonly all: readonly Warehouse[];
  close(): Promise<void>;
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

/** @throws ClusterError when a host that the options name does not see the cluster as it must be */
export async function checkCluster(options: WarehouseOptions): Promise<void> {
  if (options.cluster) await readTopology(options, options.cluster);
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
  return {
    whole,
    all,
    close: async () => {
      await Promise.all([...new Set([whole, ...all])].map((warehouse) => warehouse.close()));
    },
  };
}
