/** Meterline's Redis: its keys, connections to it, and what its errors mean. */
import { parseRedisUrl, type RedisBehaviour, redisClientOptions } from '@meterline/catalog';
import { Redis } from 'ioredis';

/** The prefix of Meterline's own keys; BullMQ's begin with `bull`. */
export const REDIS_PREFIX = 'meterline';

/** A connection to one server, which Sentinels may watch. */
export type RedisClient = Redis;

/** @param url an address as `redis.ts` of packages/catalog has it @throws Error when it is none */
export function createRedisClient(url: string, behaviour: RedisBehaviour): RedisClient {
  return new Redis(redisClientOptions(parseRedisUrl(url), behaviour));
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
  if (known === undefined) return error;
  return redisFailureKind(known) === 'away' && redisFailureKind(error) !== 'away' ? error : known;
}
