/** The admin port of the worker: `/healthz`, and `/metrics` with the gauges that are read at each scrape. */

import { type EpochMs, QUEUE_NAME } from '@meterline/catalog';
import { type AdminServer, type Health, inTime, openAdminServer, shared, startError } from '@meterline/service';
import { createRedisClient, REDIS_POLICIES, type RedisStatus, readRedisStatus } from '@meterline/service/access';
import { instruments, outageGauge } from '@meterline/service/metrics';
import { type QueueDepth, readQueueDepth, secondsSince } from '@meterline/service/queue';
import { Queue } from 'bullmq';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import type { Env } from './env.js';
import type { EventStore } from './event-store.js';
import type { Lanes } from './lanes.js';
import type { UsageWorker } from './usage-worker.js';

/** A scrape has some ten seconds, and a health check fewer. */
const READ_TIMEOUT_MS = 1_500;
/** Nobody waits for the start as for these. */
const OPEN_WITHIN_MS = 5_000;
/** Jobs may wait this long without any progress; an insert and its retries take less while ClickHouse is there. */
const STALE_MS = 60_000;

/** What is looked at. */
export interface Watched {
  readonly worker: Pick<UsageWorker, 'state'>;
  readonly store: Pick<EventStore, 'isClickHouseAway'>;
  readonly lanes: Pick<Lanes, 'pendingRows'>;
  readonly clock: () => EpochMs;
}

/** @throws StartError when ADMIN_PORT is in use, or Redis does not answer */
export async function openAdminPort(
  env: Pick<Env, 'ADMIN_PORT' | 'LISTEN_HOST' | 'QUEUE_PREFIX' | 'REDIS_URL'>,
  registry: Registry,
  watched: Watched,
  log: Logger,
): Promise<AdminServer | undefined> {
  if (env.ADMIN_PORT === undefined) return undefined;
  const queue = await openQueueReader(env.REDIS_URL, env.QUEUE_PREFIX).catch((error: unknown) => {
    throw startError('Redis does not answer any more', error);
  });
  const { worker, store, clock } = watched;
  registerWorkerGauges(registry, watched, queue);
  outageGauge(registry, {
    ClickHouse: async () => !store.isClickHouseAway,
    // A Redis that hangs keeps the worker's connections open, so the worker does not notice.
    Redis: async () => !worker.state.isWaiting && (await queue.depth()) !== undefined,
  });
  const health = async (): Promise<Health> => {
    const current = consumptionOf(watched, await queue.depth());
    // The worker goes on while Redis is full, and that is what empties it.
    const redis = worker.state.isWaiting ? undefined : await queue.redisStatus();
    const healthy = isConsuming(current, clock()) && redis?.problem === undefined;
    return { healthy, facts: { ...current, redisFull: redis?.isFull, redisProblem: redis?.problem } };
  };
  const server = await openAdminServer(env, { health, metrics: registry }, log);
  return (
    server && {
      port: server.port,
      close: async () => {
        await server.close();
        await queue.close();
      },
    }
  );
}

function consumptionOf({ worker, store }: Watched, depth: QueueDepth | undefined) {
  const { isWaiting, lastProgressAt, queueError, unacknowledged } = worker.state;
  return {
    lastProgressAt,
    /** ClickHouse or Redis is away: the worker waits for it on purpose, and a restart would not help. */
    outage: store.isClickHouseAway || isWaiting,
    /** While Redis is away, the queue cannot be read. Undefined when Redis did not answer: then jobs may be waiting. */
    waitingJobs: isWaiting ? 0 : depth?.waiting,
    unacknowledged,
    queueError,
  };
}

export type Consumption = Omit<ReturnType<typeof consumptionOf>, 'queueError'>;

/** Whether the worker takes the jobs that wait and can acknowledge them, not only whether it runs. */
export function isConsuming(
  { waitingJobs, unacknowledged, lastProgressAt, outage }: Consumption,
  now: EpochMs,
): boolean {
  return (waitingJobs === 0 && unacknowledged === 0) || outage || now - lastProgressAt < STALE_MS;
}

/** The value of the label, and what it counts. */
const QUEUE_STATES = {
  waiting: 'waiting',
  active: 'active',
  delayed: 'delayed',
  failed: 'failed',
  'waiting-children': 'waitingChildren',
} as const satisfies Record<string, keyof QueueDepth>;

/** The queue, the worker, and the rows that wait between the two. */
export function registerWorkerGauges(registry: Registry, watched: Watched, queue: QueueReader): void {
  const { readAtScrape: gauge } = instruments(registry);
  new Gauge({
    name: 'meterline_queue_jobs',
    help: 'Jobs in the queue by state; absent while Redis does not answer.',
    labelNames: ['state'],
    registers: [registry],
    async collect() {
      const depth = await queue.depth();
      this.reset();
      if (depth) for (const [name, field] of Object.entries(QUEUE_STATES)) this.set({ state: name }, depth[field]);
    },
  });
  gauge(
    'meterline_queue_oldest_waiting_age_seconds',
    'How long the next job has waited, 0 when none waits; absent while Redis does not answer.',
    async () => {
      const depth = await queue.depth();
      return depth && secondsSince(depth.oldestWaitingSince, watched.clock());
    },
  );
  gauge(
    'meterline_redis_full',
    'Whether Redis is full (1): then producers cannot add jobs; absent while Redis does not answer.',
    async () => {
      const redis = await queue.redisStatus();
      return redis && Number(redis.isFull);
    },
  );
  gauge(
    'meterline_consuming',
    'Whether the worker acknowledges jobs (1), or jobs wait or are in work and it has acknowledged none for a minute (0).',
    async () => Number(isConsuming(consumptionOf(watched, await queue.depth()), watched.clock())),
  );
  gauge(
    'meterline_last_progress_timestamp_seconds',
    'When the worker last acknowledged a job, or took one while it had none, in Unix time; at first, when it started.',
    () => watched.worker.state.lastProgressAt / 1000,
  );
  const waitingRows = () => watched.lanes.pendingRows;
  gauge('meterline_batcher_waiting_rows', 'Rows that are collected and not in an insert yet.', waitingRows);
}

/** Reads how much waits in the queue; undefined where Redis does not answer in time. */
interface QueueReader {
  readonly depth: () => Promise<QueueDepth | undefined>;
  readonly redisStatus: () => Promise<RedisStatus | undefined>;
  close(): Promise<void>;
}

/** @throws when Redis does not answer in time */
async function openQueueReader(redisUrl: string, prefix: string): Promise<QueueReader> {
  const redis = createRedisClient(redisUrl, REDIS_POLICIES.monitor);
  // The worker's own connection reports an outage.
  redis.on('error', () => undefined);
  const response = <T>(read: Promise<T>) => inTime('Redis', read, READ_TIMEOUT_MS).catch(() => undefined);
  try {
    await inTime('Redis', redis.connect(), OPEN_WITHIN_MS);
    const queue = new Queue(QUEUE_NAME, { connection: redis, prefix, skipMetasUpdate: true });
    queue.on('error', () => undefined);
    // A BullMQ queue whose first query fails never asks again.
    await inTime('Redis', queue.waitUntilReady(), OPEN_WITHIN_MS);
    return {
      // Callers at the same time share one response, so that commands to a Redis that hangs do not pile up.
      depth: shared(() => response(readQueueDepth(queue, redis))),
      redisStatus: shared(() => response(readRedisStatus(redis))),
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
