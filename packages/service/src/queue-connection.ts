/** A connection for BullMQ's workers, and what its errors mean. */
import { isNotConnectionError } from 'bullmq';
import { createRedisClient, type RedisClient } from './access/index.js';

const LONGEST_RECONNECT_MS = 5_000;
/** Redis refuses a script at its first write when it is full, unless the script says this in its first line. */
const RUNS_WHEN_FULL = '#!lua flags=allow-oom\n';

/**
 * For BullMQ: commands wait for a Redis that is away, however long, because BullMQ takes a job for failed that was done and could not be
 * acknowledged. BullMQ's scripts, which it defines with `defineCommand`, run while Redis is full: taking and acknowledging jobs is what
 * empties it.
 */
export function openQueueConnection(url: string): RedisClient {
  const redis = createRedisClient(url, {
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => Math.min(attempt * 500, LONGEST_RECONNECT_MS),
  });
  const define = redis.defineCommand.bind(redis);
  redis.defineCommand = (name, definition) => define(name, { ...definition, lua: RUNS_WHEN_FULL + definition.lua });
  return redis;
}

/** System errors, such as ECONNRESET, have a `syscall`. */
export function isConnectionError(error: Error): boolean {
  return !isNotConnectionError(error) || 'syscall' in error;
}
