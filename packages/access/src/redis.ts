/** Meterline's Redis: its keys, connections to it, and what its errors mean. */
import { hashTagged, parseRedisUrl, type RedisBehaviour, redisClientOptions } from '@meterline/catalog';
import { Cluster, Redis, type SentinelConnectionOptions, SentinelConnector } from 'ioredis';

/** The prefix of Meterline's own keys; BullMQ's begin with `bull`. */
export const REDIS_PREFIX = 'meterline';

/** A connection to one server, which Sentinels may watch, or to a Redis Cluster. */
export type RedisClient = Redis | Cluster;

export interface ClientBehaviour extends RedisBehaviour {
  /**
   * Whether a command waits while the node of a Redis Cluster is away that it is for, however long. ioredis by itself gives up after it
   * has gone from node to node 16 times, in two seconds, whatever `maxRetriesPerRequest` says.
   */
  readonly waitsForNodes?: boolean;
}

/** Every command that waits comes back after so long, and a worker may have thousands. */
const NODE_RETRY_MS = 500;
const WAITING = {
  maxRedirections: Number.POSITIVE_INFINITY,
  retryDelayOnFailover: NODE_RETRY_MS,
  retryDelayOnClusterDown: NODE_RETRY_MS,
};

/** @param url an address as `redis-address.ts` of packages/catalog has it @throws Error when it is none */
export function createRedisClient(url: string, { waitsForNodes = false, ...behaviour }: ClientBehaviour): RedisClient {
  const { nodes, options } = redisClientOptions(parseRedisUrl(url), behaviour);
  if (nodes) return new Cluster(nodes, waitsForNodes ? { ...options, ...WAITING } : options);
  return new Redis('sentinels' in options ? { ...options, Connector: Asking } : options);
}

/**
 * Asks Sentinels where the master is. From its first connection on, ioredis also hears when they replace the master, and then leaves the
 * connection. But when it heard so while it was asking again, because the old master had died, it gave up for good. Who asks need
 * not be told, so nobody listens meanwhile.
 */
class Asking extends SentinelConnector {
  constructor(options: unknown) {
    // Those that it was made with, and ioredis' defaults.
    super(options as SentinelConnectionOptions);
  }

  override connect(...args: Parameters<SentinelConnector['connect']>): ReturnType<SentinelConnector['connect']> {
    this.disconnect();
    return super.connect(...args);
  }
}

/** The prefix as it is where the keys are: in a Redis Cluster all keys under one prefix are on one node. */
export function prefixIn(redis: RedisClient, prefix: string): string {
  return redis.isCluster ? hashTagged(prefix) : prefix;
}

/** All that answer for keys: of a Redis Cluster its masters. */
export function serversOf(redis: RedisClient): Redis[] {
  return redis instanceof Redis ? [redis] : redis.nodes('master');
}

/**
 * Leaves a connection whose other end is silent, and connects again. One that is being made is left alone: it has a time limit of its
 * own, and ioredis, told to disconnect while it asks a Sentinel for the master, gives up for good.
 */
export function leaveConnection(redis: RedisClient): void {
  if (redis.status === 'ready' || redis.status === 'connect') redis.disconnect(true);
}

/** `refused`: Redis answers, with an error. `foreign`: something else answers. `away`: nothing does. */
export type RedisFailure = 'refused' | 'foreign' | 'away';

/** An answer that ioredis cannot read has no error code, but this text in its message. Source: ioredis, DataHandler. */
const UNREADABLE = /Please report this\.$/;

/** What kind of failure ioredis reports of a connection or a command. */
export function redisFailureKind(error: unknown): RedisFailure {
  if (!(error instanceof Error)) return 'away';
  // A wrong password, a database that is not there, no memory left, read-only.
  if (error.name === 'ReplyError') return 'refused';
  return UNREADABLE.test(error.message) ? 'foreign' : 'away';
}

/** Of two errors of one connection the more informative one: a server that is not Redis may also just hang up. */
export function moreInformative(known: unknown, error: unknown): unknown {
  // That of a Redis Cluster, none of whose nodes could be asked, has no reason of its own.
  const next = error instanceof Error && 'lastNodeError' in error ? (error.lastNodeError ?? error) : error;
  if (known === undefined) return next;
  return redisFailureKind(known) === 'away' && redisFailureKind(next) !== 'away' ? next : known;
}
