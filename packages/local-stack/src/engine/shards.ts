/** Several embedded engines as one cluster, each of them a shard. */
import type { Shard } from './clickhouse-config.js';
import { findFreePort } from './ports.js';

/** What each engine must know of the others; one that is no shard when there is only one. */
export async function planShards(count: number): Promise<(Shard | undefined)[]> {
  if (count === 1) return [undefined];
  const tcpPorts = await Promise.all(Array.from({ length: count }, () => findFreePort()));
  return tcpPorts.map((_, index) => ({ number: index + 1, tcpPorts }));
}
