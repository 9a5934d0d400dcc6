/** The connection that answers "who is this?": it would rather fail quickly than wait. */
import { Outage } from '@meterline/service';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';

const TIMEOUT_MS = 2_000;
const MAX_RECONNECT_DELAY_MS = 1_000;

/** Connects at `connect()`, and again by itself whenever the connection is lost. */
export function createRedis(url: string): Redis {
  return new Redis(url, {
    lazyConnect: true,
    // While Redis is away every command fails at once, which the caller sees as 503, instead of piling up.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: TIMEOUT_MS,
    connectTimeout: TIMEOUT_MS,
    retryStrategy: (attempt) => Math.min(attempt * 100, MAX_RECONNECT_DELAY_MS),
  });
}

/** One line when Redis goes away and one when it is back, however many attempts fail in between. */
export function watchOutages(redis: Redis, log: Logger): void {
  const outage = new Outage(log, 'Redis', 'requests with an API key get 503 until it does');
  redis.on('error', (error) => outage.failed(error));
  redis.on('ready', () => outage.recovered());
}
