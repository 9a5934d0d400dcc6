/** How much waits in the queue, for whoever watches it: it never waits long for Redis itself. */
import { QUEUE_NAME } from '@meterline/catalog';
import { inTime } from '@meterline/service';
import { type QueueDepth, readQueueDepth } from '@meterline/service/queue';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';

/** A scrape has some ten seconds, and a health check fewer. */
const READ_TIMEOUT_MS = 1_500;

export class QueueReader {
  readonly #redis: Redis;
  readonly #queue: Queue;
  #underWay: Promise<QueueDepth> | undefined;

  private constructor(redisUrl: string, prefix: string) {
    // While Redis is away a question fails at once instead of waiting for its return.
    this.#redis = new Redis(redisUrl, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: READ_TIMEOUT_MS,
    });
    // The worker's own connection tells of an outage.
    this.#redis.on('error', () => undefined);
    this.#queue = new Queue(QUEUE_NAME, { connection: this.#redis, prefix, skipMetasUpdate: true });
    this.#queue.on('error', () => undefined);
  }

  /**
   * Resolves once Redis has answered: a BullMQ queue whose first connection fails never tries again.
   * @throws when Redis does not answer in time
   */
  static async open(redisUrl: string, prefix: string): Promise<QueueReader> {
    const reader = new QueueReader(redisUrl, prefix);
    try {
      await inTime('Redis', reader.#queue.waitUntilReady(), READ_TIMEOUT_MS);
      return reader;
    } catch (error) {
      reader.#redis.disconnect();
      throw error;
    }
  }

  /**
   * Those who ask at the same time share one answer, so that a Redis that hangs is asked once and not ever more often.
   * @throws when Redis does not answer in time
   */
  async read(): Promise<QueueDepth> {
    this.#underWay ??= readQueueDepth(this.#queue, this.#redis).finally(() => {
      this.#underWay = undefined;
    });
    return inTime('Redis', this.#underWay, READ_TIMEOUT_MS);
  }

  async close(): Promise<void> {
    await this.#queue.close();
    this.#redis.disconnect();
  }
}
