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
import { createRedisClient } from '@meterline/service/access';
import { outageGauge } from '@meterline/service/metrics';
import { type QueueDepth, readQueueDepth } from '@meterline/service/queue';
import { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Env } from './env.js';
import type { EventStore } from './event-store.js';
import type { Lanes } from './lanes.js';
import { isConsuming, registerWorkerGauges } from './metrics.js';
import type { UsageWorker } from './usage-worker.js';

/** A scrape has some ten seconds, and a health check fewer. */
const READ_TIMEOUT_MS = 1_500;
/** Nobody waits for the start as for these. */
const OPEN_WITHIN_MS = 5_000;

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
  const queue = await openQueueReader(env.REDIS_URL, env.QUEUE_PREFIX).catch((error: unknown) => {
    throw startError('Redis does not answer any more', error);
  });
  const consumption = (depth: QueueDepth | undefined) => ({
    lastProgressAt: worker.lastProgressAt,
    outage: store.isClickHouseAway || worker.isWaiting,
    // While Redis is away, the queue cannot be read.
    waitingJobs: worker.isWaiting ? 0 : depth?.waiting,
    unacknowledged: worker.unacknowledged,
    queueError: worker.queueError,
  });
  registerWorkerGauges(registry, {
    readQueue: queue.depth,
    consumption,
    isRedisFull: queue.isRedisFull,
    waitingRows: () => lanes.pendingRows,
    clock: Date.now,
  });
  outageGauge(registry, {
    ClickHouse: async () => !store.isClickHouseAway,
    // A Redis that hangs keeps the worker's connections open, so the worker does not notice.
    Redis: async () => !worker.isWaiting && (await queue.depth()) !== undefined,
  });
  const health = async (): Promise<Health> => {
    const current = consumption(await queue.depth());
    // The worker goes on while Redis is full, and that is what empties it.
    const redisFull = worker.isWaiting ? undefined : await queue.isRedisFull();
    return { healthy: isConsuming(current, Date.now()), facts: { ...current, redisFull } };
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

/** Reads how much waits in the queue; undefined where Redis does not answer in time. */
export interface QueueReader {
  readonly depth: () => Promise<QueueDepth | undefined>;
  readonly isRedisFull: () => Promise<boolean | undefined>;
  close(): Promise<void>;
}

/** @throws when Redis does not answer in time */
export async function openQueueReader(redisUrl: string, prefix: string): Promise<QueueReader> {
  // While Redis is away a question fails at once instead of waiting for its return.
  const redis = createRedisClient(redisUrl, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: READ_TIMEOUT_MS,
  });
  // The worker's own connection reports an outage.
  redis.on('error', () => undefined);
  const answer = <T>(read: Promise<T>) => inTime('Redis', read, READ_TIMEOUT_MS).catch(() => undefined);
  try {
    await inTime('Redis', redis.connect(), OPEN_WITHIN_MS);
    const queue = new Queue(QUEUE_NAME, { connection: redis, prefix, skipMetasUpdate: true });
    queue.on('error', () => undefined);
    // A BullMQ queue whose first question fails never asks again.
    await inTime('Redis', queue.waitUntilReady(), OPEN_WITHIN_MS);
    return {
      // Callers at the same time share one answer, so that commands to a Redis that hangs do not pile up.
      depth: shared(() => answer(readQueueDepth(queue, redis))),
      isRedisFull: () => answer(isRedisFull(redis)),
      close: async () => {
        await queue.close();
        redis.disconnect();
      },
    };
  } catch (error) {
    redis.disconnect();
    throw error;
  }
}
