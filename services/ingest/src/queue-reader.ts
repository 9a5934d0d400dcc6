/** How much waits in the queue, for whoever watches it: it never waits long for Redis itself. */
import { QUEUE_NAME } from '@meterline/catalog';
import { inTime } from '@meterline/service';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';

/** A scrape has some ten seconds, and a health check fewer. */
const READ_TIMEOUT_MS = 1_500;

/** Where jobs wait; those with a priority have a line of their own. */
const LINES = ['waiting', 'prioritized'] as const;

export interface QueueDepth {
  /** Those with a priority included. */
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
  /** When the job at the head of the line was put in, by its producer's word, in epoch milliseconds. */
  readonly oldestWaitingSince: number | undefined;
}

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
    this.#underWay ??= this.#read().finally(() => {
      this.#underWay = undefined;
    });
    return inTime('Redis', this.#underWay, READ_TIMEOUT_MS);
  }

  async #read(): Promise<QueueDepth> {
    const [counts, ...heads] = await Promise.all([
      this.#queue.getJobCounts(...LINES, 'active', 'delayed', 'failed'),
      ...LINES.map((line) => this.#headOf(line)),
    ]);
    const since = heads.filter((timestamp) => timestamp !== undefined);
    const oldestWaitingSince = since.length > 0 ? Math.min(...since) : undefined;
    const { waiting = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
    return { waiting: waiting + prioritized, active, delayed, failed, oldestWaitingSince };
  }

  /** Of the one job only its time is read: its data may be megabytes. */
  async #headOf(line: (typeof LINES)[number]): Promise<number | undefined> {
    const [id] = await this.#queue.getRanges([line], 0, 0, true);
    if (id === undefined) return undefined;
    const timestamp = Number(await this.#redis.hget(this.#queue.toKey(id), 'timestamp'));
    return timestamp > 0 ? timestamp : undefined;
  }

  async close(): Promise<void> {
    await this.#queue.close();
    this.#redis.disconnect();
  }
}
