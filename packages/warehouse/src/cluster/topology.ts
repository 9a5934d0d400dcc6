/** The hosts of a cluster as ClickHouse knows them, and whether events would be exact on them. */
import { z } from 'zod';
import { hostsOf } from '../clickhouse/addresses.js';
import { createWarehouse, type Statement, type WarehouseOptions } from '../clickhouse/connection.js';
import { type Cluster, localDatabase } from './cluster.js';

/** The cluster cannot be used as it is configured; the message says what to change. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
}

/** A replica of a shard, as `remote_servers` of a host has it. */
export interface Replica {
  readonly shard: number;
  readonly weight: number;
  readonly address: string;
  /** Whether it is the host that was asked. */
  readonly isLocal: boolean;
}

/** What one host says. */
export interface HostFacts {
  readonly url: string;
  readonly replicas: readonly Replica[];
  /** Of `usage_events`. */
  readonly engine: string;
  /** Of its shard, as Keeper has them; 0 for a table that is not replicated. */
  readonly totalReplicas: number;
  /** An account with cells here that belongs to another shard of so many; undefined: there is none. */
  readonly strayAccount?: string | undefined;
}

const REPLICAS: Statement = {
  name: 'read_cluster',
  query: `
SELECT shard_num, shard_weight, concat(host_name, ':', toString(port)) AS address, is_local
FROM system.clusters
WHERE cluster = {cluster: String}
ORDER BY shard_num, replica_num`,
  query_params: {},
};

const replicaRow = z.object({
  shard_num: z.number(),
  shard_weight: z.number(),
  address: z.string(),
  is_local: z.number(),
});

const ENGINE: Statement = {
  name: 'read_engine',
  query: `
SELECT
  any(engine) AS table_engine,
  toUInt32((SELECT max(total_replicas) FROM system.replicas WHERE database = currentDatabase() AND table = 'usage_events')) AS replicas
FROM system.tables
WHERE database = currentDatabase() AND name = 'usage_events'`,
  query_params: {},
};

const engineRow = z.object({ table_engine: z.string(), replicas: z.number() });

/** By the days' cells, which are few next to events. */
const STRAY_ACCOUNT: Statement = {
  name: 'read_stray_account',
  query: `
SELECT account_id
FROM usage_daily
WHERE cityHash64(account_id) % {shards: UInt32} != {index: UInt32}
LIMIT 1`,
  query_params: {},
};

const strayRow = z.object({ account_id: z.string() });

/** @param url of one host, whose schema is up to date */
async function readHost(options: WarehouseOptions, { name }: Cluster, url: string): Promise<HostFacts> {
  const warehouse = createWarehouse({ ...options, url, database: localDatabase(options.database) });
  try {
    const replicas = await warehouse.read({ ...REPLICAS, query_params: { cluster: name } }, replicaRow);
    const [table] = await warehouse.read(ENGINE, engineRow);
    const own = replicas.find(({ is_local: isLocal }) => isLocal === 1)?.shard_num;
    const shards = new Set(replicas.map(({ shard_num: shard }) => shard)).size;
    const place = { shards, index: (own ?? 1) - 1 };
    const [stray] = own ? await warehouse.read({ ...STRAY_ACCOUNT, query_params: place }, strayRow) : [];
    return {
      url,
      strayAccount: stray?.account_id,
      replicas: replicas.map((row) => ({
        shard: row.shard_num,
        weight: row.shard_weight,
        address: row.address,
        isLocal: row.is_local === 1,
      })),
      engine: table?.table_engine ?? '',
      totalReplicas: table?.replicas ?? 0,
    };
  } finally {
    await warehouse.close();
  }
}

/** @returns what each host of the options says. @throws ClusterError when events would not be exact */
export async function readTopology(options: WarehouseOptions, cluster: Cluster): Promise<HostFacts[]> {
  const hosts = await Promise.all(hostsOf(options.url).map((url) => readHost(options, cluster, url)));
  const fault = clusterFault(hosts, cluster);
  if (fault !== undefined) throw new ClusterError(fault);
  return hosts;
}

/** What must not be, in the words of who can change it; undefined when all is well. */
export function clusterFault(hosts: readonly HostFacts[], { name, insertQuorum }: Cluster): string | undefined {
  const [first] = hosts;
  for (const { url, replicas, engine, totalReplicas, strayAccount } of hosts) {
    const host = `ClickHouse at ${new URL(url).host}`;
    if (replicas.length === 0) return `${host} has no cluster ${name} in remote_servers; see CLICKHOUSE_CLUSTER`;
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
    const fault = replicationFault(engine, totalReplicas, mostReplicas(replicas), insertQuorum);
    if (fault !== undefined) return `${host}: ${fault}`;
  }
  return undefined;
}

/** The argument for each rule is in docs/guarantees.md, "On a cluster". */
function replicationFault(
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
