/** Meterline's Redis: its keys, connections to it, and what its errors mean. */
import { type ChainableCommander, Redis } from 'ioredis';
import { type ConnectionOptions, parseRedisUrl, redisClientOptions } from '../redis-address.js';

/** The prefix of Meterline's own keys; BullMQ's begin with `bull`. */
export const REDIS_PREFIX = 'meterline';

/** A connection to one server, which Sentinels may watch. */
export type RedisClient = Redis;

/** @param url an address as redis-address.ts has it @throws Error when it is none */
export function createRedisClient(url: string, behaviour: ConnectionOptions): RedisClient {
  return new Redis(redisClientOptions(parseRedisUrl(url), behaviour));
}

/**
 * Leaves a connection whose other end is silent, and connects again. One that is being made is left alone: it has a time limit of its
 * own, and ioredis, told to disconnect while it asks a Sentinel for the master, gives up for good.
 */
export function leaveConnection(redis: RedisClient): void {
  if (redis.status === 'ready' || redis.status === 'connect') redis.disconnect(true);
}

/** Runs a transaction, which resolves even if one of its commands failed. @returns what they answered, in their order */
export async function committed(transaction: ChainableCommander): Promise<unknown[]> {
  const results = await transaction.exec();
  if (!results) throw new Error('the transaction was aborted');
  return results.map(([error, result]) => {
    if (error) throw error;
    return result;
  });
}

/** A response that ioredis cannot read has no error code, but this text in its message. Source: ioredis, DataHandler. */
const UNREADABLE = /Please report this\.$/;

/** `refused`: Redis answers, with an error. `foreign`: something else answers. `away`: nothing does. */
export function redisFailureKind(error: unknown): 'refused' | 'foreign' | 'away' {
  if (!(error instanceof Error)) return 'away';
  // A wrong password, a database that is not there, no memory left, read-only.
  if (error.name === 'ReplyError') return 'refused';
  return UNREADABLE.test(error.message) ? 'foreign' : 'away';
}

/** The more informative of two errors of one connection: a server that is not Redis may also just hang up. */
export function moreInformative(known: unknown, error: unknown): unknown {
  if (known === undefined) return error;
  return redisFailureKind(known) === 'away' && redisFailureKind(error) !== 'away' ? error : known;
}

/** What was written may be lost together with the master that has it. */
export class NotReplicated extends Error {
  override readonly name = 'NotReplicated';
}

interface Replication {
  /** How many replicas must have it; 0: the master alone. */
  readonly replicas: number;
  readonly withinMs: number;
}

/**
 * Writes, and resolves when so many replicas have it, too. Redis answers for what its connection has written, so one that was lost in
 * between, perhaps with the master, answers for nothing: then it counts as not replicated.
 * @throws NotReplicated, or the error of the write
 */
export async function replicated<T>(redis: RedisClient, write: () => Promise<T>, { replicas, withinMs }: Replication) {
  if (replicas === 0) return write();
  const { stream } = redis;
  const result = await write();
  const reached = await redis.wait(replicas, withinMs);
  if (redis.stream !== stream) {
    throw new NotReplicated('the connection to Redis was lost before its replicas had the events');
  }
  if (reached < replicas) {
    throw new NotReplicated(`of ${replicas} replicas of Redis only ${reached} had the events within ${withinMs} ms`);
  }
  return result;
}
