/**
 * Which server of a Redis Cluster has a key, and whether replicas have what was written. In terms of what these functions need of
 * ioredis, so that programs that bring their own, as users of the emitter do, can use them.
 */

interface Server {
  /** That of its connection now: another after it was lost. */
  readonly stream: unknown;
  readonly options: { readonly host?: string | undefined; readonly port?: number | undefined };
  wait(replicas: number, timeoutMs: number): Promise<number>;
}

interface Cluster<S> {
  /** For each slot the addresses of the servers that have it, the master first. */
  readonly slots: readonly (readonly string[] | undefined)[];
  cluster(subcommand: 'KEYSLOT', key: string): Promise<number>;
  nodes(role: 'master'): S[];
}

/**
 * Finds out where a key belongs, once.
 * @returns gives the server that has the key, now; it throws while there is none
 */
export async function serverFinder<S extends Server>(redis: S | Cluster<S>, key: string): Promise<() => S> {
  if (!('slots' in redis)) return () => redis;
  const slot = await redis.cluster('KEYSLOT', key);
  return () => {
    const [place] = redis.slots[slot] ?? [];
    const master = redis.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === place);
    if (!master) throw new Error('no node of the Redis Cluster has the key');
    return master;
  };
}

/** What was written may be lost together with the master that has it. */
export class NotReplicated extends Error {
  override readonly name = 'NotReplicated';
}

export interface Replication {
  /** How many replicas must have it; 0: the master alone. */
  readonly replicas: number;
  readonly withinMs: number;
}

/**
 * Writes, and resolves when so many replicas have it, too. Redis answers for what its connection has written, so one that was lost in
 * between, perhaps with the master, answers for nothing: then it counts as not replicated.
 * @param server that writes
 * @throws NotReplicated, or the error of the write
 */
export async function replicated<T>(
  write: () => Promise<T>,
  server: () => Server,
  { replicas, withinMs }: Replication,
): Promise<T> {
  if (replicas === 0) return write();
  const writer = server();
  const { stream } = writer;
  const result = await write();
  const reached = await writer.wait(replicas, withinMs);
  if (server() !== writer || writer.stream !== stream) {
    throw new NotReplicated('the connection to Redis was lost before its replicas had the events');
  }
  if (reached < replicas) {
    throw new NotReplicated(`of ${replicas} replicas of Redis only ${reached} had the events within ${withinMs} ms`);
  }
  return result;
}
