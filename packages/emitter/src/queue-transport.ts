/**
 * Sends events as jobs of the BullMQ queue. BullMQ by itself waits without end for a Redis that is away; here every attempt ends
 * after some seconds.
 */
import { once } from 'node:events';
import { QUEUE_NAME, QUEUE_PREFIX } from '@meterline/catalog/events';
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { EmitterError } from './errors.js';
import type { Refusal, Transport } from './transport.js';

const CONNECT_WITHIN_MS = 5_000;
/** Redis may wait for its disk. */
const ANSWER_WITHIN_MS = 10_000;
const DISCONNECT_WITHIN_MS = 100;
const LONGEST_RECONNECT_MS = 2_000;

type QueueClass = typeof Queue;

/** @throws EmitterError `missing_package`; not because Redis is away */
export async function openQueueTransport(url: string, prefix = QUEUE_PREFIX): Promise<Transport> {
  const [bullmq, ioredis] = await Promise.all([import('bullmq'), import('ioredis')]).catch((error) => {
    const message = 'sending to Redis needs two packages: npm install bullmq ioredis';
    throw new EmitterError('missing_package', message, { cause: error });
  });
  const redis = new ioredis.Redis(url, {
    lazyConnect: true,
    // A command fails at once when there is no connection, and is not sent again behind our back.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_WITHIN_MS,
    // A connection whose other end is silent does not hold up the end of the process.
    disconnectTimeout: DISCONNECT_WITHIN_MS,
    retryStrategy: (times) => Math.min(50 * 2 ** times, LONGEST_RECONNECT_MS),
  });
  return new QueueTransport(bullmq.Queue, redis, prefix);
}

class QueueTransport implements Transport {
  readonly #Queue: QueueClass;
  readonly #redis: Redis;
  readonly #prefix: string;
  #queue: Promise<Queue> | undefined;
  #connecting: Promise<unknown> | undefined;

  constructor(QueueOfPeer: QueueClass, redis: Redis, prefix: string) {
    this.#Queue = QueueOfPeer;
    this.#redis = redis;
    this.#prefix = prefix;
    // The same errors reject what is being sent.
    redis.on('error', () => undefined);
  }

  /** All are alike: the worker refuses what is to be refused, later. */
  laneOf(): string {
    return '';
  }

  async send(events: readonly string[]): Promise<readonly Refusal[]> {
    await this.#connected();
    try {
      await within(ANSWER_WITHIN_MS, this.#add(events));
      return [];
    } catch (error) {
      // A connection whose other end is gone says nothing for ever.
      if (error instanceof NoAnswer) this.#redis.disconnect(true);
      throw error;
    }
  }

  close(): void {
    this.#redis.disconnect();
  }

  async #add(events: readonly string[]): Promise<void> {
    const queue = await this.#open();
    await queue.add('usage', JSON.parse(`{"events":[${events.join()}]}`));
  }

  /** Rejects with the reason, or when it takes too long. */
  async #connected(): Promise<void> {
    if (this.#redis.status === 'ready') return;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    await this.#connecting;
  }

  async #connect(): Promise<void> {
    const ready = within(CONNECT_WITHIN_MS, once(this.#redis, 'ready'));
    // It reports its outcome as an event as well.
    if (this.#redis.status === 'wait') this.#redis.connect().catch(() => undefined);
    await ready;
  }

  /** BullMQ's queue asks Redis for its version first, and is of no use when that has failed. */
  #open(): Promise<Queue> {
    this.#queue ??= this.#opened().catch((error) => {
      this.#queue = undefined;
      throw error;
    });
    return this.#queue;
  }

  async #opened(): Promise<Queue> {
    const queue = new this.#Queue(QUEUE_NAME, { connection: this.#redis, prefix: this.#prefix });
    queue.on('error', () => undefined);
    await queue.waitUntilReady();
    return queue;
  }
}

class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // The connection keeps the process alive while there is one.
    timer = setTimeout(() => reject(new NoAnswer(`no answer within ${ms / 1000} s`)), ms).unref();
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
