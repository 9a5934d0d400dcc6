/** Connects to Redis when a service starts, and warns of replicas that may lose events. */
import type { Logger } from 'pino';
import {
  createRedisClient,
  moreInformative,
  type RedisClient,
  readRedisStatus,
  redisFailureKind,
} from './access/index.js';
import { parseRedisUrl, redisTarget } from './redis-address.js';
import { StartError, startError } from './start-error.js';

/**
 * Connects a lazy connection and checks the server.
 * @throws StartError, with the reason of the error event: `connect` alone would only say that the connection was closed
 */
export async function connectRedis(redis: RedisClient, url: string): Promise<void> {
  let reason: unknown;
  const remember = (error: unknown) => {
    reason = moreInformative(reason, error);
  };
  redis.on('error', remember);
  try {
    await redis.connect();
    await redis.ping();
    // Redis answers even if the database that the address names could not be selected, and would use the first one.
    if (reason !== undefined) throw reason;
    const { problem } = await readRedisStatus(redis);
    if (problem !== undefined) throw new StartError(`Redis at ${redisTarget(url)} ${problem}`);
  } catch (error) {
    throw error instanceof StartError ? error : redisError(redisTarget(url), reason ?? error);
  } finally {
    redis.off('error', remember);
  }
}

const CHECK_TIMEOUT_MS = 5_000;

/**
 * Checks Redis on a connection that does not wait for it, as the connections of workers do, and runs `use` on it, if there is one.
 * @throws StartError, also when Redis refuses a command of `use`
 */
export async function checkRedis(url: string): Promise<void>;
export async function checkRedis<T>(url: string, use: (redis: RedisClient) => Promise<T>): Promise<T>;
export async function checkRedis<T>(url: string, use?: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
  const redis = createRedisClient(url, {
    lazyConnect: true,
    connectTimeout: CHECK_TIMEOUT_MS,
    commandTimeout: CHECK_TIMEOUT_MS,
    retryStrategy: () => null,
  });
  try {
    await connectRedis(redis, url);
    return await use?.(redis);
  } catch (error) {
    throw redisFailureKind(error) === 'refused' ? redisError(redisTarget(url), error) : error;
  } finally {
    redis.disconnect();
  }
}

/**
 * A replica that takes the place of its master may lack what the master has acknowledged last, unless the address asks for replicas to be
 * waited for. Says so where there are replicas and it does not. @throws when Redis does not answer
 */
export async function warnOfReplicas(
  redis: { info(section: string): Promise<string> },
  url: string,
  log: Logger,
): Promise<void> {
  if (parseRedisUrl(url).replicas > 0) return;
  const replicas = Number(/^connected_slaves:(\d+)/m.exec(await redis.info('replication'))?.[1] ?? 0);
  if (replicas === 0) return;
  const message =
    'events are lost if a replica takes the place of this Redis: add ?replicas=1 to REDIS_URL of all producers';
  log.warn({ event: 'replicas_not_awaited', replicas }, message);
}

function redisError(host: string, cause: unknown): StartError {
  switch (redisFailureKind(cause)) {
    case 'refused':
      return startError(`Redis at ${host} refuses`, cause);
    case 'foreign':
      return new StartError(`what answers at ${host} is not Redis`, { cause });
    case 'away':
      return startError(`Redis at ${host} does not answer`, cause);
  }
}
