/**
 * The producer's side of the queue. A write ends after some seconds, whatever Redis does: BullMQ by itself waits without end.
 * What is not known to be durable is reported as not accepted; sending the same events again is harmless.
 */
import { QUEUE_NAME } from '@meterline/catalog';
import { inTime } from '@meterline/service';
import { Queue, type Telemetry } from 'bullmq';
import { Redis } from 'ioredis';

const CONNECT_WITHIN_MS = 2_000;
const LONGEST_RECONNECT_MS = 1_000;
const JOB_NAME = 'usage';

/** A command fails at once while there is no connection, and is never sent again behind our back. */
export function createQueueConnection(url: string): Redis {
  return new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_WITHIN_MS,
    // A connection whose other end is silent does not hold up the end of the process.
    disconnectTimeout: 100,
    retryStrategy: (attempt) => Math.min(attempt * 50, LONGEST_RECONNECT_MS),
  });
}

export interface EventQueueOptions {
  /** Connected. The queue does not close it. */
  readonly redis: Redis;
  readonly prefix: string;
  readonly writeMs: number;
  readonly telemetry: Telemetry | undefined;
}

export class EventQueue {
  readonly #redis: Redis;
  readonly #queue: Queue;
  readonly #writeMs: number;

  constructor({ redis, prefix, telemetry, writeMs }: EventQueueOptions) {
    this.#redis = redis;
    this.#writeMs = writeMs;
    this.#queue = new Queue(QUEUE_NAME, { connection: redis, prefix, ...(telemetry && { telemetry }) });
    // The same errors reject what is being written, and the connection's outage is logged where it is watched.
    this.#queue.on('error', () => undefined);
  }

  async open(): Promise<void> {
    await this.#queue.waitUntilReady();
  }

  /**
   * Adds a job with these events. It is in the queue when this resolves; whether that is durable depends on the configuration of
   * Redis, see durability.ts.
   * @throws when Redis refuses, is away, or does not answer in time; the job may be in the queue all the same
   */
  async add(events: readonly unknown[]): Promise<void> {
    const added = this.#queue.add(JOB_NAME, { events });
    try {
      await inTime('Redis', added, this.#writeMs);
    } catch (error) {
      // What was not sent yet would stay in memory for as long as the other end is silent.
      if (!isAnswer(error)) this.#redis.disconnect(true);
      throw error;
    }
  }
}

/** Whether Redis itself has answered so; otherwise it is away or silent. */
export function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}
