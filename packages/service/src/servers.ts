/** Connects to Redis when a service starts, checks Redis, and warns if a failover to a replica may lose events. */
import type { Logger } from 'pino';
import {
  createRedisClient,
  moreInformative,
  REDIS_POLICIES,
  type RedisClient,
  readRedisStatus,
  redisFailureKind,
} from './access/index.js';
import { parseRedisUrl, redisTarget } from './redis-address.js';
import { StartError, startError } from './start-error.js';

/** Connects and checks Redis. @throws StartError with the reason of the `error` event: `connect` rejects only with "Connection is closed." */
export async function connectRedis(redis: RedisClient, url: string): Promise<void> {
  let reason: unknown;
  const remember = (error: unknown) => {
    reason = moreInformative(reason, error);
  };
  redis.on('error', remember);
  try {
    await redis.connect();
    await redis.ping();
    // If the database number is invalid, Redis reports an error event, but the connection would silently use database 0.
    if (reason !== undefined) throw reason;
    const { problem } = await readRedisStatus(redis);
    if (problem !== undefined) throw new StartError(`Redis at ${redisTarget(url)} ${problem}`);
  } catch (error) {
    throw error instanceof StartError ? error : redisError(redisTarget(url), reason ?? error);
  } finally {
    redis.off('error', remember);
  }
}

/**
 * Checks Redis on a temporary connection, and then calls `use` with this connection. Workers cannot check Redis on their own connections,
 * because those wait for Redis without a timeout.
 * @throws StartError, also if Redis rejects a command of `use`
 */
export async function checkRedis(url: string): Promise<void>;
export async function checkRedis<T>(url: string, use: (redis: RedisClient) => Promise<T>): Promise<T>;
export async function checkRedis<T>(url: string, use?: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
  const redis = createRedisClient(url, REDIS_POLICIES.check);
  try {
    await connectRedis(redis, url);
    return await use?.(redis);
  } catch (error) {
    throw redisFailureKind(error) === 'rejected' ? redisError(redisTarget(url), error) : error;
  } finally {
    redis.disconnect();
  }
}

/** Warns if Redis has replicas, but the address has no `?replicas=`: a failover may then lose events that producers consider accepted. */
export async function warnOfReplicas(
  redis: { info(section: string): Promise<string> },
  url: string,
  log: Logger,
): Promise<void> {
  if (parseRedisUrl(url).replicas > 0) return;
  const replicas = Number(/^connected_slaves:(\d+)/m.exec(await redis.info('replication'))?.[1] ?? 0);
  if (replicas === 0) return;
  const message = 'a failover of Redis to a replica may lose events: add ?replicas=1 to REDIS_URL of all producers';
  log.warn({ event: 'replicas_not_awaited', replicas }, message);
}

function redisError(host: string, cause: unknown): StartError {
  switch (redisFailureKind(cause)) {
    case 'rejected':
      return startError(`Redis at ${host} returned an error`, cause);
    case 'foreign':
      return new StartError(`the server at ${host} is not Redis`, { cause });
    case 'away':
      return startError(`Redis at ${host} does not respond`, cause);
  }
}
