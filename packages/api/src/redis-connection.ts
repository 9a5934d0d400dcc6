/** The connection to Redis for credentials and accounts. It fails fast: a caller waits for it. */
import { createRedisClient, type RedisClient } from '@meterline/access';
import { Outage } from '@meterline/service';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';

const TIMEOUT_MS = 2_000;
const MAX_RECONNECT_DELAY_MS = 1_000;

/** Connects at `connect()`, and reconnects by itself when the connection is lost. */
export function createRedis(url: string): RedisClient {
  const redis = createRedisClient(url, {
    lazyConnect: true,
    // While Redis is away, commands fail at once, as 503 for the caller, instead of piling up.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: TIMEOUT_MS,
    connectTimeout: TIMEOUT_MS,
    retryStrategy: (attempt) => Math.min(attempt * 100, MAX_RECONNECT_DELAY_MS),
  });
  if (redis instanceof Redis) gatherCommands(redis);
  else redis.on('+node', gatherCommands);
  return redis;
}

/**
 * Hands the commands of one turn of the event loop to the system together: those of many requests are then one write. Each
 * command still has its own reply, error and timeout. ioredis' `enableAutoPipelining` keeps later commands back until the
 * replies to earlier ones are there, so that one could wait for twice its timeout.
 */
function gatherCommands(redis: Redis): void {
  const send = redis.sendCommand.bind(redis);
  let isGathering = false;
  redis.sendCommand = (...args) => {
    // Undefined before the first connection.
    const stream: Redis['stream'] | undefined = redis.stream;
    if (stream && !isGathering) {
      isGathering = true;
      stream.cork();
      setImmediate(() => {
        isGathering = false;
        stream.uncork();
      });
    }
    return send(...args);
  };
}

/**
 * One line when Redis goes away and one when it is back, however many attempts fail in between.
 * @param consequence of the outage, for the log
 */
export function watchOutages(redis: RedisClient, log: Logger, consequence: string): void {
  const outage = new Outage(log, 'Redis', consequence);
  redis.on('error', (error) => outage.failed(error));
  redis.on('ready', () => outage.recovered());
  if (redis instanceof Redis) return;
  // A Redis Cluster is there as long as one of its nodes is.
  redis.on('node error', (error) => outage.failed(error));
  redis.on('+node', (node) => node.on('ready', () => outage.recovered()));
}
