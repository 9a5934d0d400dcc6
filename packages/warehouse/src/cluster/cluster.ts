/**
 * One server, shards, or shards with replicas. In a cluster each shard keeps its rows in a database of its own,
 * `<database>_local`, with the tables of the migrations; `<database>` holds Distributed tables of the same names, which lead to
 * all shards. So every statement is the same in all forms, whichever of the two databases it is sent to (docs/decisions/0035).
 */
export interface Cluster {
  /** In `remote_servers` of every host. */
  readonly name: string;
  /** How many replicas of a shard must have a row before it counts as stored; undefined: the tables are not replicated. */
  readonly insertQuorum: number | undefined;
}

/** The database of a shard's own tables. */
export function localDatabase(database: string): string {
  return `${database}_local`;
}

/** A replica that does not answer ends an insert by so much of the time that its caller waits. */
const QUORUM_SHARE = 0.5;

/** Of every statement in a cluster. */
export function clusterSettings({ insertQuorum }: Cluster, requestTimeoutMs: number): Readonly<Record<string, string>> {
  return {
    // An insert through a Distributed table returns when its rows are stored in their shard, not before they are sent there.
    distributed_foreground_insert: '1',
    // A question of one account is asked of its shard alone.
    optimize_skip_unused_shards: '1',
    // INSERT … SELECT must not pair up the shards of its two tables.
    parallel_distributed_insert_select: '0',
    // A subquery in IN is run once, over all shards, and not by each shard over its own rows.
    distributed_product_mode: 'global',
    ...(insertQuorum !== undefined && {
      insert_quorum: String(insertQuorum),
      insert_quorum_parallel: '1',
      insert_quorum_timeout: String(Math.floor(requestTimeoutMs * QUORUM_SHARE)),
    }),
  };
}
