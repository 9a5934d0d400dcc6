import { QUEUE_NAME } from '@meterline/catalog';
import { createRedisClient, type RedisClient } from '@meterline/service/access';
import { Queue } from 'bullmq';
import { pause } from '../harness/queue.js';
import type { ServiceEnvironment } from '../harness/services.js';

const RETRY_MS = 150;
const RESPONSE_TIMEOUT_MS = 2_000;

/** Each attempt sends at most one command, so that the number of times a job may have been added is known. */
const ONE_COMMAND = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  commandTimeout: RESPONSE_TIMEOUT_MS,
  connectTimeout: RESPONSE_TIMEOUT_MS,
  retryStrategy: () => RETRY_MS,
};

/** A careful producer: a job whose `add` failed, or whose outcome is unknown, is added again until one `add` succeeds. */
export class QueueProducer {
  readonly #prefix: string;
  readonly #redis: RedisClient;
  #queue: Promise<Queue> | undefined;

  constructor({ REDIS_URL: redisUrl = '', QUEUE_PREFIX: prefix = '' }: ServiceEnvironment) {
    this.#prefix = prefix;
    this.#redis = createRedisClient(redisUrl, ONE_COMMAND);
    // The same errors reject the running `add`.
    this.#redis.on('error', () => undefined);
  }

  /**
   * Adds a job. While Redis is down, it waits until Redis is back.
   * @returns how often the job may have been added
   * @throws AbortError
   */
  async add(data: unknown, signal: AbortSignal): Promise<number> {
    this.#queue ??= this.#open(signal);
    const queue = await this.#queue;
    for (let attempts = 1; ; attempts += 1) {
      try {
        await queue.add('usage', data);
        return attempts;
      } catch {
        await pause(RETRY_MS, signal);
      }
    }
  }

  /** BullMQ's queue asks Redis for its version first, and is of no use when that has failed. */
  async #open(signal: AbortSignal): Promise<Queue> {
    for (;;) {
      const queue = new Queue(QUEUE_NAME, { connection: this.#redis, prefix: this.#prefix });
      queue.on('error', () => undefined);
      try {
        await queue.waitUntilReady();
        return queue;
      } catch {
        await pause(RETRY_MS, signal);
      }
    }
  }

  /** Closes the connection at once, whether or not Redis answers. */
  disconnect(): void {
    this.#redis.disconnect();
  }
}
