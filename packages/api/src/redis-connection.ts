/** The connection to Redis for credentials and accounts. It fails fast: a caller waits for it. */
import { Outage } from '@meterline/service';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';

const TIMEOUT_MS = 2_000;
const MAX_RECONNECT_DELAY_MS = 1_000;

/** Connects at `connect()`, and reconnects by itself when the connection is lost. */
export function createRedis(url: string): Redis {
  return new Redis(url, {
    lazyConnect: true,
    // While Redis is away, commands fail at once, as 503 for the caller, instead of piling up.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: TIMEOUT_MS,
    connectTimeout: TIMEOUT_MS,
    retryStrategy: (attempt) => Math.min(attempt * 100, MAX_RECONNECT_DELAY_MS),
  });
}

/**
 * One line when Redis goes away and one when it is back, however many attempts fail in between.
 * @param consequence of the outage, for the log
 */
export function watchOutages(redis: Redis, log: Logger, consequence: string): void {
  const outage = new Outage(log, 'Redis', consequence);
  redis.on('error', (error) => outage.failed(error));
  redis.on('ready', () => outage.recovered());
}
