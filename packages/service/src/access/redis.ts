/** Opens connections to Redis, classifies Redis errors, and waits for replication. */
import { type ChainableCommander, Redis } from 'ioredis';
import { type ConnectionOptions, parseRedisUrl, redisClientOptions } from '../redis-address.js';

/** The prefix of Meterline's own keys. Keys of BullMQ start with `bull` instead. */
export const REDIS_PREFIX = 'meterline';

/** A connection to one server, which Sentinels may monitor. */
export type RedisClient = Redis;

const FAIL_FAST = { lazyConnect: true, enableOfflineQueue: false, maxRetriesPerRequest: 0 } as const;

const backOff = (stepMs: number, maxMs: number) => (attempt: number) => Math.min(attempt * stepMs, maxMs);

export const REDIS_POLICIES = {
  /** For BullMQ workers. Commands wait for Redis without a limit: if acknowledging a finished job failed, BullMQ would fail the job. */
  worker: { maxRetriesPerRequest: null, retryStrategy: backOff(500, 5_000) },
  /** For API keys and accounts. Commands fail within 2 s, because an HTTP request waits for them. The client then gets a 503. */
  request: { ...FAIL_FAST, commandTimeout: 2_000, connectTimeout: 2_000, retryStrategy: backOff(100, 1_000) },
  /** For the collector's events. Like `request`, but the caller sets the timeout of a write, and ioredis never sends a write again by itself. */
  producer: {
    ...FAIL_FAST,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 2_000,
    // A server that does not respond must not delay the end of the process.
    disconnectTimeout: 100,
    retryStrategy: backOff(50, 1_000),
  },
  /** For metrics of the queue. A read fails within 1.5 s, and the next scrape tries again. */
  monitor: { ...FAIL_FAST, commandTimeout: 1_500 },
  /** For the check at start. There is only one attempt, so that the service exits with the reason. */
  check: { lazyConnect: true, connectTimeout: 5_000, commandTimeout: 5_000, retryStrategy: () => null },
} as const satisfies Record<string, ConnectionOptions>;

/** @param url an address in a form that redis-address.ts describes @throws Error if the address is invalid */
export function createRedisClient(url: string, policy: ConnectionOptions): RedisClient {
  return new Redis(redisClientOptions(parseRedisUrl(url), policy));
}

/**
 * Closes a connection whose server does not respond, and connects again. Does nothing while connecting, because that has its own timeout. In
 * addition, ioredis would stop reconnecting if it were disconnected while it asks a Sentinel for the master.
 */
export function leaveConnection(redis: RedisClient): void {
  if (redis.status === 'ready' || redis.status === 'connect') redis.disconnect(true);
}

/** Executes a transaction. Returns the replies in order. @throws the first error of a command, which `exec` alone would not throw */
export async function execTransaction(transaction: ChainableCommander): Promise<unknown[]> {
  const results = await transaction.exec();
  if (!results) throw new Error('the transaction was aborted');
  return results.map(([error, result]) => {
    if (error) throw error;
    return result;
  });
}

/** If ioredis cannot parse a reply, the error has no code, only a message with this ending. Source: ioredis, DataHandler. */
const UNREADABLE = /Please report this\.$/;

/** `rejected` means that Redis replied with an error, `foreign` that the server is not Redis, and `away` that no server replied. */
export function redisFailureKind(error: unknown): 'rejected' | 'foreign' | 'away' {
  if (!(error instanceof Error)) return 'away';
  // Examples are a wrong password, an unknown database, a full memory and a read-only replica.
  if (error.name === 'ReplyError') return 'rejected';
  return UNREADABLE.test(error.message) ? 'foreign' : 'away';
}

/**
 * Returns the error that says more about the cause, or the first if both say the same. A reply of the server says more than a lost connection.
 * Any other reply says more than NOAUTH, which a command gets if the login on its connection has just failed.
 */
export function moreInformative(known: unknown, error: unknown): unknown {
  return known === undefined || informationOf(error) > informationOf(known) ? error : known;
}

function informationOf(error: unknown): number {
  if (redisFailureKind(error) === 'away') return 0;
  return error instanceof Error && error.message.startsWith('NOAUTH') ? 1 : 2;
}

/** Thrown if too few replicas confirmed a write. If the master is lost, the write may be lost with it. */
export class NotReplicated extends Error {
  override readonly name = 'NotReplicated';
}

interface Replication {
  /** The number of replicas that must confirm the write. If it is 0, the master is enough. */
  readonly replicas: number;
  readonly timeoutMs: number;
}

/**
 * Resolves when the replicas have confirmed the write. The command `WAIT` covers only writes of its own connection. If the connection was lost
 * between the write and `WAIT`, perhaps together with the master, the write counts as not replicated.
 * @throws NotReplicated, or the error of the write
 */
export async function replicated<T>(redis: RedisClient, write: () => Promise<T>, { replicas, timeoutMs }: Replication) {
  if (replicas === 0) return write();
  const { stream } = redis;
  const result = await write();
  const reached = await redis.wait(replicas, timeoutMs);
  if (redis.stream !== stream) {
    throw new NotReplicated('the connection to Redis was lost before its replicas confirmed the events');
  }
  if (reached < replicas) {
    throw new NotReplicated(
      `only ${reached} of ${replicas} Redis replicas confirmed the events within ${timeoutMs} ms`,
    );
  }
  return result;
}
