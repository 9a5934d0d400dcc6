/**
 * Connects to the shards of a deployment; a single server is one shard. Inserts and queries use Distributed tables, which find the right
 * shards. Watermarks, recomputation, sealing and deletions use each shard's own tables. Also checks that the cluster is configured so that
 * totals stay exact.
 */

import { z } from 'zod';
import { hostsOf } from './addresses.js';
import { readBounds } from './bounds.js';
import {
  createWarehouse,
  onEachShard,
  type Statement,
  type Warehouse,
  type WarehouseOptions,
} from './clickhouse/connection.js';
import { type Cluster, localDatabase } from './clickhouse/hosts.js';
import { GRAINS } from './rollups/rollup-rows.js';

export interface Shards {
  /** A connection that covers the rows of all shards. On a single server, it is also the only entry of `all`. */
  readonly whole: Warehouse;
  /** Connections to each shard's own tables, by shard number. */
  readonly all: readonly Warehouse[];
  close(): Promise<void>;
}

/**
 * @param options must have the address of at least one host of each shard. The first host of a shard is used.
 * @throws ClusterError if a shard is missing, or if the cluster is misconfigured
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

/** @throws ClusterError if any of the hosts sees a misconfigured cluster */
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

export class ClusterError extends Error {
  override readonly name = 'ClusterError';
}

export interface HostFacts {
  readonly url: string;
  readonly replicas: readonly Replica[];
  readonly engine: string;
  /** The number of replicas of the host's shard according to ClickHouse Keeper; 0 if tables are not replicated. */
  readonly totalReplicas: number;
  /** An account that has rollup rows on this host but belongs to another shard, if there is one. */
  readonly strayAccount?: string | undefined;
}

const REPLICAS: Statement = {
  name: 'read_cluster',
  query: `
SELECT shard_num AS shard, shard_weight AS weight, concat(host_name, ':', toString(port)) AS address, is_local AS isLocal
FROM system.clusters
WHERE cluster = {cluster: String}
ORDER BY shard_num, replica_num`,
};

const replica = z.object({
  shard: z.number(),
  weight: z.number(),
  address: z.string(),
  isLocal: z.coerce.boolean(),
});

export type Replica = Readonly<z.output<typeof replica>>;

const ENGINE: Statement = {
  name: 'read_engine',
  query: `
SELECT
  any(engine) AS table_engine,
  toUInt32((SELECT max(total_replicas) FROM system.replicas WHERE database = currentDatabase() AND table = 'usage_events')) AS replicas
FROM system.tables
WHERE database = currentDatabase() AND name = 'usage_events'`,
};

/** Reads daily rollup rows, because there are few of them compared with events. */
const STRAY_ACCOUNT: Statement = {
  name: 'read_stray_account',
  query: `
SELECT account_id
FROM usage_daily
WHERE cityHash64(account_id) % {shards: UInt32} != {index: UInt32}
LIMIT 1`,
};

const strayRow = z.object({ account_id: z.string() });

async function readHost(warehouse: Warehouse, { name }: Cluster, url: string): Promise<HostFacts> {
  const replicas = await warehouse.read({ ...REPLICAS, query_params: { cluster: name } }, replica);
  const [table] = await warehouse.read(ENGINE, z.object({ table_engine: z.string(), replicas: z.number() }));
  const own = replicas.find(({ isLocal }) => isLocal)?.shard;
  const shards = new Set(replicas.map(({ shard }) => shard)).size;
  const place = { shards, index: (own ?? 1) - 1 };
  const [stray] = own ? await warehouse.read({ ...STRAY_ACCOUNT, query_params: place }, strayRow) : [];
  return {
    url,
    strayAccount: stray?.account_id,
    replicas,
    engine: table?.table_engine ?? '',
    totalReplicas: table?.replicas ?? 0,
  };
}

async function readTopology(options: WarehouseOptions, cluster: Cluster): Promise<HostFacts[]> {
  const urls = hostsOf(options.url);
  const hosts = urls.map((url) => createWarehouse({ ...options, url, database: localDatabase(options.database) }));
  try {
    const facts = await Promise.all(hosts.map((host, index) => readHost(host, cluster, urls[index] ?? '')));
    const problem = clusterProblem(facts, cluster) ?? (await watermarksProblem(hosts));
    if (problem !== undefined) throw new ClusterError(problem);
    return facts;
  } finally {
    await Promise.all(hosts.map((host) => host.close()));
  }
}

/**
 * Compares the watermarks of all hosts. `sealingUntil` is published on every host before any `sealedUntil` (see rollups/watermarks.ts). So
 * if one host's `sealedUntil` is above another host's `sealingUntil`, a host was restored from a backup or added empty.
 */
async function watermarksProblem(hosts: readonly Warehouse[]): Promise<string | undefined> {
  // Read `sealedUntil` before `sealingUntil`, because both may rise between the two reads.
  const sealed = await onEachShard(hosts, readBounds);
  const sealing = await onEachShard(hosts, readBounds);
  const agree = GRAINS.every((grain) =>
    sealed.every(({ [grain]: { sealedUntil } }) =>
      sealing.every(({ [grain]: { sealingUntil } }) => sealedUntil <= sealingUntil),
    ),
  );
  if (agree) return undefined;
  return (
    'the hosts of ClickHouse have different watermarks: one was restored from a backup or is new; stop all workers, run ' +
    '"TRUNCATE TABLE rollup_watermarks" in the local database of every host, and start again: all hours are then sealed again'
  );
}

export function clusterProblem(hosts: readonly HostFacts[], { name, insertQuorum }: Cluster): string | undefined {
  const [first] = hosts;
  for (const { url, replicas, engine, totalReplicas, strayAccount } of hosts) {
    const host = `ClickHouse at ${new URL(url).host}`;
    if (replicas.length === 0) return `${host} has no cluster ${name} in remote_servers; see CLICKHOUSE_CLUSTER`;
    if (!replicas.some(({ isLocal }) => isLocal)) {
      return `${host} is no member of its own cluster ${name}; name hosts of the cluster alone in CLICKHOUSE_URL`;
    }
    if (membersOf(replicas) !== membersOf(first?.replicas ?? [])) {
      return `${host} has other members of cluster ${name} than ${new URL(first?.url ?? url).host}; give both the same`;
    }
    if (replicas.some(({ weight }) => weight !== 1)) {
      return `cluster ${name} has shards of different weight on ${host}; rows are found by equal weights of 1`;
    }
    if (strayAccount !== undefined) {
      return (
        `${host} has usage of account ${strayAccount}, which is on another shard now: cluster ${name} has other shards than when it ` +
        'was stored; change it back, or move the rows (docs/scaling.md, "Adding a shard")'
      );
    }
    const problem = replicationProblem(engine, totalReplicas, mostReplicas(replicas), insertQuorum);
    if (problem !== undefined) return `${host}: ${problem}`;
  }
  return undefined;
}

/** Checks replication. docs/decisions/0010 gives the reason for each rule. */
function replicationProblem(
  engine: string,
  total: number,
  used: number,
  insertQuorum: number | undefined,
): string | undefined {
  if (!engine.startsWith('Replicated')) {
    if (insertQuorum !== undefined)
      return `CLICKHOUSE_INSERT_QUORUM is set, and the tables are ${engine}, not replicated`;
    return used > 1
      ? `the cluster has ${used} replicas of a shard, and the tables are ${engine}, not replicated`
      : undefined;
  }
  if (insertQuorum === undefined)
    return `the tables are ${engine}; set CLICKHOUSE_INSERT_QUORUM to the number of replicas`;
  if (insertQuorum > total) {
    return `CLICKHOUSE_INSERT_QUORUM is ${insertQuorum}, and a shard has ${total} replicas: no insert would ever succeed`;
  }
  if (insertQuorum === total) return undefined;
  if (used > 1) {
    return (
      `CLICKHOUSE_INSERT_QUORUM is ${insertQuorum} of ${total} replicas, and the cluster has ${used} of a shard: one of them may ` +
      'lack acknowledged rows; set it to all, or leave one replica of each shard in the cluster'
    );
  }
  if (insertQuorum * 2 > total) return undefined;
  return `CLICKHOUSE_INSERT_QUORUM is ${insertQuorum} of ${total} replicas; it must be more than half of them`;
}

function membersOf(replicas: readonly Replica[]): string {
  return replicas.map(({ shard, address }) => `${shard} ${address}`).join(', ');
}

function mostReplicas(replicas: readonly Replica[]): number {
  return Math.max(...replicas.map(({ shard }) => replicas.filter((other) => other.shard === shard).length));
}
