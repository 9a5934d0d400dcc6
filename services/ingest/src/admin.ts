/** The admin port of the worker: `/healthz` and `/metrics`. */
import { QUEUE_NAME } from '@meterline/catalog';
import {
  type AdminServer,
  type Health,
  inTime,
  isRedisFull,
  openAdminServer,
  shared,
  startError,
} from '@meterline/service';
import { outageGauge } from '@meterline/service/metrics';
import { type QueueDepth, readQueueDepth } from '@meterline/service/queue';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Env } from './env.js';
import type { EventStore } from './event-store.js';
import type { Lanes } from './lanes.js';
import { isConsuming, registerWorkerGauges } from './metrics.js';
import type { UsageWorker } from './usage-worker.js';

/** A scrape has some ten seconds, and a health check fewer. */
const READ_TIMEOUT_MS = 1_500;

export interface Watched {
  readonly registry: Registry;
  readonly worker: UsageWorker;
  readonly store: EventStore;
  readonly lanes: Lanes;
}

/** @throws StartError when ADMIN_PORT is in use, or Redis does not answer */
export async function openAdminPort(
  env: Env,
  { registry, worker, store, lanes }: Watched,
  log: Logger,
): Promise<AdminServer | undefined> {
  if (env.ADMIN_PORT === undefined) return undefined;
  const queue = await openQueueReader(env);
  const consumption = () => ({ lastProgressAt: worker.lastProgressAt, outage: store.isWaiting || worker.isWaiting });
  registerWorkerGauges(registry, {
    readQueue: () => queue.read(),
    consumption,
    isRedisFull: () => queue.isRedisFull(),
    waitingRows: () => lanes.pendingRows,
    clock: Date.now,
  });
  outageGauge(registry, {
    ClickHouse: async () => !store.isWaiting,
    // A Redis that hangs keeps the worker's connections open, so the worker does not notice.
    Redis: async () => !worker.isWaiting && queue.read().then(() => true),
  });
  const health = async (): Promise<Health> => {
    // While Redis is away, the queue cannot be read.
    const facts = { ...consumption(), waitingJobs: worker.isWaiting ? 0 : (await queue.read()).waiting };
    // The worker goes on while Redis is full, and that is what empties it.
    const redisFull = worker.isWaiting ? undefined : await queue.isRedisFull().catch(() => undefined);
    return { healthy: isConsuming(facts, Date.now()), facts: { ...facts, redisFull } };
  };
  const address = { port: env.ADMIN_PORT, host: env.LISTEN_HOST };
  const server = await openAdminServer(address, { health, metrics: registry }, log);
  return {
    port: server.port,
    close: async () => {
      await server.close();
      await queue.close();
    },
  };
}

async function openQueueReader(env: Env): Promise<QueueReader> {
  try {
    return await QueueReader.open(env.REDIS_URL, env.QUEUE_PREFIX);
  } catch (error) {
    throw startError('Redis does not answer any more', error);
  }
}

/** Reads how much waits in the queue. It never waits long for Redis itself. */
export class QueueReader {
  readonly #redis: Redis;
  readonly #queue: Queue;
  readonly #depth = shared(() => readQueueDepth(this.#queue, this.#redis));

  private constructor(redisUrl: string, prefix: string) {
    // While Redis is away a question fails at once instead of waiting for its return.
    this.#redis = new Redis(redisUrl, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: READ_TIMEOUT_MS,
    });
    // The worker's own connection reports an outage.
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
   * Callers at the same time share one answer, so that commands to a Redis that hangs do not pile up.
   * @throws when Redis does not answer in time
   */
  async read(): Promise<QueueDepth> {
    return inTime('Redis', this.#depth(), READ_TIMEOUT_MS);
  }

  /** @throws when Redis does not answer in time */
  async isRedisFull(): Promise<boolean> {
    return inTime('Redis', isRedisFull(this.#redis), READ_TIMEOUT_MS);
  }

  async close(): Promise<void> {
    await this.#queue.close();
    this.#redis.disconnect();
  }
}
