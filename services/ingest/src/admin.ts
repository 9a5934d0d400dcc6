/** The admin port of the worker: `/healthz` and `/metrics`. */
import { createRedisClient, type RedisClient } from '@meterline/access';
import { QUEUE_NAME, queuePrefixOf } from '@meterline/catalog';
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
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Env } from './env.js';
import type { EventStore } from './event-store.js';

import { isConsuming, registerWorkerGauges } from './metrics.js';
import type { ShardLanes } from './shard-lanes.js';
import type { UsageWorkers } from './usage-workers.js';

/** A scrape has some ten seconds, and a health check fewer. */
const READ_TIMEOUT_MS = 1_500;
/** Nobody waits for the start as for these. */
const OPEN_WITHIN_MS = 5_000;

export interface Watched {
  readonly registry: Registry;
  readonly workers: UsageWorkers;
  /** Of each shard of ClickHouse. */
  readonly stores: readonly EventStore[];
  readonly lanes: ShardLanes;
}

/** @throws StartError when ADMIN_PORT is in use, or Redis does not answer */
export async function openAdminPort(
  env: Env,
  { registry, workers, stores, lanes }: Watched,
  log: Logger,
): Promise<AdminServer | undefined> {
  if (env.ADMIN_PORT === undefined) return undefined;
  const queues = await openQueueReader(env, () => [...workers.all.keys()]);
  const areStampsAway = () => stores.some((store) => store.areStampsAway);
  const consumption = (depths: ReadonlyMap<number, QueueDepth>) =>
    [...workers.all].map(([shard, worker]) => ({
      shard,
      lastProgressAt: worker.lastProgressAt,
      outage: stores.some((store) => store.isWaiting) || worker.isWaiting,
      // While Redis is away, the queue cannot be read.
      waitingJobs: worker.isWaiting ? 0 : depths.get(shard)?.waiting,
    }));
  registerWorkerGauges(registry, {
    readQueues: () => queues.read(),
    consumption,
    isRedisFull: () => queues.isRedisFull(),
    waitingRows: () => lanes.pendingRows,
    clock: Date.now,
  });
  outageGauge(registry, {
    ClickHouse: async () => !stores.some((store) => store.isClickHouseAway),
    // A Redis that hangs keeps the worker's connections open, so the worker does not notice.
    Redis: async () =>
      !workers.isWaiting && !areStampsAway() && queues.read().then(({ size }) => size === workers.all.size),
  });
  const health = async (): Promise<Health> => {
    const all = consumption(await queues.read());
    // The worker goes on while Redis is full, and that is what empties it.
    const redisFull = workers.isWaiting ? undefined : await queues.isRedisFull().catch(() => undefined);
    const facts = {
      lastProgressAt: Math.max(...all.map(({ lastProgressAt }) => lastProgressAt)),
      outage: all.some(({ outage }) => outage),
      waitingJobs: all.reduce((sum, { waitingJobs = 0 }) => sum + waitingJobs, 0),
      redisFull,
      ...(all.length > 1 && { queues: all }),
    };
    return { healthy: all.every((queue) => isConsuming(queue, Date.now())), facts };
  };
  const address = { port: env.ADMIN_PORT, host: env.LISTEN_HOST };
  const server = await openAdminServer(address, { health, metrics: registry }, log);
  return {
    port: server.port,
    close: async () => {
      await server.close();
      await queues.close();
    },
  };
}

async function openQueueReader(env: Env, shards: () => readonly number[]): Promise<QueueReader> {
  try {
    return await QueueReader.open(env.REDIS_URL, env.QUEUE_PREFIX, shards);
  } catch (error) {
    throw startError('Redis does not answer any more', error);
  }
}

/** Reads how much waits in the queues. It never waits long for Redis itself. */
export class QueueReader {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: () => readonly number[];
  readonly #queues = new Map<number, Queue>();
  readonly #depths = shared(() => this.#readAll());

  private constructor(redis: RedisClient, prefix: string, shards: () => readonly number[]) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#shards = shards;
  }

  /**
   * @param shards the queues to read
   * @throws when Redis does not answer in time
   */
  static async open(redisUrl: string, prefix: string, shards: () => readonly number[]): Promise<QueueReader> {
    // While Redis is away a question fails at once instead of waiting for its return.
    const redis = createRedisClient(redisUrl, {
      lazyConnect: true,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: READ_TIMEOUT_MS,
    });
    // The workers' own connections report an outage.
    redis.on('error', () => undefined);
    try {
      await inTime('Redis', redis.connect(), OPEN_WITHIN_MS);
      return new QueueReader(redis, prefix, shards);
    } catch (error) {
      redis.disconnect();
      throw error;
    }
  }

  /**
   * Those of the queues whose server answers in time, by their number. Callers at the same time share one answer, so that
   * commands to a Redis that hangs do not pile up.
   */
  async read(): Promise<ReadonlyMap<number, QueueDepth>> {
    return this.#depths();
  }

  /** @throws when Redis does not answer in time */
  async isRedisFull(): Promise<boolean> {
    return inTime('Redis', isRedisFull(this.#redis), READ_TIMEOUT_MS);
  }

  async #readAll(): Promise<ReadonlyMap<number, QueueDepth>> {
    const depths = new Map<number, QueueDepth>();
    const read = async (shard: number) => void depths.set(shard, await this.#readOne(shard));
    await Promise.allSettled(this.#shards().map((shard) => inTime('Redis', read(shard), READ_TIMEOUT_MS)));
    // One that comes too late does not change what callers have.
    return new Map(depths);
  }

  async #readOne(shard: number): Promise<QueueDepth> {
    const queue = this.#queues.get(shard) ?? this.#queueOf(shard);
    this.#queues.set(shard, queue);
    try {
      await queue.waitUntilReady();
    } catch (error) {
      // A BullMQ queue whose first question fails never asks again.
      this.#queues.delete(shard);
      throw error;
    }
    return readQueueDepth(queue, this.#redis);
  }

  #queueOf(shard: number): Queue {
    const prefix = queuePrefixOf(this.#prefix, shard, this.#redis.isCluster);
    const queue = new Queue(QUEUE_NAME, { connection: this.#redis, prefix, skipMetasUpdate: true });
    queue.on('error', () => undefined);
    return queue;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#redis.disconnect();
  }
}
