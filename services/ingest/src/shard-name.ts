/** The shard as a label of metrics, which one server does without. */
export function shardLabel(shard: number | undefined): { shard?: number } {
  return shard === undefined ? {} : { shard };
}

/** What the log calls a shard of ClickHouse. @param shard from 1 on; undefined: one server */
export function serverName(shard: number | undefined): string {
  return shard === undefined ? 'ClickHouse' : `ClickHouse shard ${shard}`;
}
