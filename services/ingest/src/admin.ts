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

/** Shorter than the timeouts of metrics scrapes (about ten seconds) and of health checks. */
const READ_TIMEOUT_MS = 1_500;
/** Longer than the timeout of later reads, because no health check waits while the service starts. */
const OPEN_WITHIN_MS = 5_000;
/** The worker counts as stuck if jobs wait this long without progress. While ClickHouse is up, an insert with retries takes less. */
const STALE_MS = 60_000;

export interface Watched {
  readonly worker: Pick<UsageWorker, 'state'>;
  readonly store: Pick<EventStore, 'isClickHouseAway'>;
  readonly lanes: Pick<Lanes, 'pendingRows'>;
  readonly clock: () => EpochMs;
}

/** @throws StartError if ADMIN_PORT is in use, or Redis does not respond */
export async function openAdminPort(
  env: Pick<Env, 'ADMIN_PORT' | 'LISTEN_HOST' | 'QUEUE_PREFIX' | 'REDIS_URL'>,
  registry: Registry,
  watched: Watched,
  log: Logger,
): Promise<AdminServer | undefined> {
  if (env.ADMIN_PORT === undefined) return undefined;
  const queue = await openQueueReader(env.REDIS_URL, env.QUEUE_PREFIX).catch((error: unknown) => {
    throw startError('Redis has stopped responding', error);
  });
  const { worker, store, clock } = watched;
  registerWorkerGauges(registry, watched, queue);
  outageGauge(registry, {
    ClickHouse: async () => !store.isClickHouseAway,
    // Read the queue too. If Redis hangs, the worker's connections stay open and the worker does not notice.
    Redis: async () => !worker.state.isWaiting && (await queue.depth()) !== undefined,
  });
  const health = async (): Promise<Health> => {
    const current = consumptionOf(watched, await queue.depth());
    // A full Redis does not make the worker unhealthy, because only a running worker empties Redis.
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
    /** True if ClickHouse or Redis is unavailable. The worker waits on purpose then, so a restart would not help. */
    outage: store.isClickHouseAway || isWaiting,
    /** Jobs in the queue. Undefined if a read of Redis fails, because jobs may be waiting. 0 while the worker knows of a Redis outage. */
    waitingJobs: isWaiting ? 0 : depth?.waiting,
    unacknowledged,
    queueError,
  };
}

export type Consumption = Omit<ReturnType<typeof consumptionOf>, 'queueError'>;

/** Returns true if the worker makes progress: it has no jobs, waits for an outage to end, or has acknowledged or taken a job recently. */
export function isConsuming(
  { waitingJobs, unacknowledged, lastProgressAt, outage }: Consumption,
  now: EpochMs,
): boolean {
  return (waitingJobs === 0 && unacknowledged === 0) || outage || now - lastProgressAt < STALE_MS;
}

const QUEUE_STATES = {
  waiting: 'waiting',
  active: 'active',
  delayed: 'delayed',
  failed: 'failed',
  'waiting-children': 'waitingChildren',
} as const satisfies Record<string, keyof QueueDepth>;

export function registerWorkerGauges(registry: Registry, watched: Watched, queue: QueueReader): void {
  const { readAtScrape: gauge } = instruments(registry);
  new Gauge({
    name: 'meterline_queue_jobs',
    help: 'Jobs in the queue by state; absent while Redis does not respond.',
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
    'How long the next job has waited, 0 if none waits; absent while Redis does not respond.',
    async () => {
      const depth = await queue.depth();
      return depth && secondsSince(depth.oldestWaitingSince, watched.clock());
    },
  );
  gauge(
    'meterline_redis_full',
    'Whether Redis is full (1), so that producers cannot add jobs; absent while Redis does not respond.',
    async () => {
      const redis = await queue.redisStatus();
      return redis && Number(redis.isFull);
    },
  );
  gauge(
    'meterline_consuming',
    'Whether the worker acknowledges jobs (1), or has acknowledged none for a minute although jobs are waiting or in progress (0).',
    async () => Number(isConsuming(consumptionOf(watched, await queue.depth()), watched.clock())),
  );
  gauge(
    'meterline_last_progress_timestamp_seconds',
    'When the worker last acknowledged a job, or took one while it had none, in Unix time (initially: when it started).',
    () => watched.worker.state.lastProgressAt / 1000,
  );
  const waitingRows = () => watched.lanes.pendingRows;
  gauge('meterline_batcher_waiting_rows', 'Rows collected for the next inserts.', waitingRows);
}

/** Reads the state of the queue and of Redis. Each method resolves to undefined if Redis does not respond in time. */
interface QueueReader {
  readonly depth: () => Promise<QueueDepth | undefined>;
  readonly redisStatus: () => Promise<RedisStatus | undefined>;
  close(): Promise<void>;
}

async function openQueueReader(redisUrl: string, prefix: string): Promise<QueueReader> {
  const redis = createRedisClient(redisUrl, REDIS_POLICIES.monitor);
  // Ignore errors here, because the worker's own connection reports outages.
  redis.on('error', () => undefined);
  const response = <T>(read: Promise<T>) => inTime('Redis', read, READ_TIMEOUT_MS).catch(() => undefined);
  try {
    await inTime('Redis', redis.connect(), OPEN_WITHIN_MS);
    const queue = new Queue(QUEUE_NAME, { connection: redis, prefix, skipMetasUpdate: true });
    queue.on('error', () => undefined);
    // If the first command of a BullMQ queue fails, BullMQ never retries it. So wait until the queue is ready.
    await inTime('Redis', queue.waitUntilReady(), OPEN_WITHIN_MS);
    return {
      // Concurrent callers share one read, so that commands do not pile up while Redis hangs.
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
