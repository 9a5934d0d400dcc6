/** The connection to Redis for credentials and accounts. It fails fast: a caller waits for it. */
import { Outage } from '@meterline/service';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';

const TIMEOUT_MS = 2_000;
const MAX_RECONNECT_DELAY_MS = 1_000;

/**
 * Hands the commands of one turn of the event loop to the system together: those of many requests are then one write. Each
 * command still has its own reply, error and timeout. ioredis' `enableAutoPipelining` keeps later commands back until the
 * replies to earlier ones are there, so that one could wait for twice its timeout.
 */
class GatheringRedis extends Redis {
  #isGathering = false;

  override sendCommand(...args: Parameters<Redis['sendCommand']>): unknown {
    // Undefined before the first connection.
    const stream: Redis['stream'] | undefined = this.stream;
    if (stream && !this.#isGathering) {
      this.#isGathering = true;
      stream.cork();
      setImmediate(() => {
        this.#isGathering = false;
        stream.uncork();
      });
    }
    return super.sendCommand(...args);
  }
}

/** Connects at `connect()`, and reconnects by itself when the connection is lost. */
export function createRedis(url: string): Redis {
  return new GatheringRedis(url, {
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
