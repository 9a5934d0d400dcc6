/** Connects to BullMQ queues, runs work on a schedule, and measures the depth and age of a queue. */
import type { EpochMs } from '@meterline/catalog';
import { isNotConnectionError, Queue, Worker } from 'bullmq';
import { createRedisClient, REDIS_POLICIES, type RedisClient } from './access/index.js';

/** A full Redis rejects a script at its first write, unless the script starts with this flag. */
const RUNS_WHEN_FULL = '#!lua flags=allow-oom\n';

/**
 * Opens a connection for BullMQ workers. BullMQ calls `defineCommand` for each of its scripts. The override adds a flag that lets the scripts
 * run even while Redis is full, because taking and acknowledging jobs is what frees memory in Redis.
 */
export function openQueueConnection(url: string): RedisClient {
  const redis = createRedisClient(url, REDIS_POLICIES.worker);
  const define = redis.defineCommand.bind(redis);
  redis.defineCommand = (name, definition) => define(name, { ...definition, lua: RUNS_WHEN_FULL + definition.lua });
  return redis;
}

/** Options that all workers share. If a process dies, another worker takes over its jobs, however often that happens to a job. */
export function workerOptions(lockMs: number) {
  return {
    autorun: false,
    lockDuration: lockMs,
    stalledInterval: Math.ceil(lockMs / 3),
    // By default, BullMQ fails a job that was active in several crashed processes, even if the job did not cause the crashes.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
  };
}

/** Returns whether the connection failed, rather than a single command. System errors such as ECONNRESET have a `syscall`. */
export function isConnectionError(error: Error): boolean {
  return !isNotConnectionError(error) || 'syscall' in error;
}

/** How often the schedule is written to Redis again. Otherwise, no process would ever run the work again after Redis lost the schedule. */
const RESCHEDULE_MS = 30_000;
/** How much later than the interval the next run may be. Clocks of processes differ, and the interval may have been changed. */
const FURTHEST_NEXT_MS = 3_600_000;

export interface SchedulerOptions {
  /** Owned by the scheduler, which closes it. */
  readonly connection: RedisClient;
  readonly prefix: string;
  readonly queue: string;
  readonly name: string;
  readonly everyMs: number;
  readonly rescheduleMs?: number | undefined;
  readonly lockMs: number;
  /** The work. It must handle its own failures, because the scheduler only runs it again after the interval. */
  readonly run: () => Promise<void>;
  /** Called if Redis rejects a command. Not called for outages, which the connections report. */
  readonly onError: (error: Error) => void;
}

/** Runs work at an interval, in one process at a time. A BullMQ job scheduler in Redis triggers one of the processes. */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #queue: Queue;
  readonly #worker: Worker;
  #rescheduling: NodeJS.Timeout | undefined;
  #isRunning = false;
  #isClosing = false;
  #hasLostJob = false;

  constructor(options: SchedulerOptions) {
    const { connection, prefix, queue, run, lockMs } = options;
    this.#options = options;
    this.#queue = new Queue(queue, { connection, prefix });
    const work = () => {
      this.#hasLostJob = false;
      return run();
    };
    this.#worker = new Worker(queue, work, {
      connection,
      prefix,
      concurrency: 1,
      ...workerOptions(lockMs),
      removeOnComplete: { count: 1 },
      removeOnFail: { count: 1 },
    });
    const onError = (error: Error) => this.#onError(error);
    this.#queue.on('error', onError);
    this.#worker.on('error', onError);
    // Emitted only if the work throws, which is a bug, or if Redis rejects the result.
    this.#worker.on('failed', (_job, error) => this.#onError(error));
    this.#worker.on('lockRenewalFailed', () => {
      this.#hasLostJob = true;
    });
  }

  /** Whether this process lost the lock of the job, for example while it was frozen. Another process may have taken over the job. */
  get hasLostJob(): boolean {
    return this.#hasLostJob;
  }

  run(): void {
    void this.#schedule();
    this.#rescheduling = setInterval(() => void this.#schedule(), this.#options.rescheduleMs ?? RESCHEDULE_MS);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#rescheduling);
    await this.#worker.close();
    await this.#queue.close();
    this.#options.connection.disconnect();
  }

  /** Writes the schedule to Redis. Keeps a planned run, unless it is too far away: a process whose clock was ahead may have planned it. */
  async #schedule(): Promise<void> {
    const { everyMs, name } = this.#options;
    try {
      await this.#queue.setGlobalConcurrency(1);
      const known = await this.#queue.getJobScheduler(name);
      const isFarAway = (known?.next ?? 0) > Date.now() + everyMs + FURTHEST_NEXT_MS;
      if (isFarAway) await this.#queue.removeJobScheduler(name);
      await this.#queue.upsertJobScheduler(name, { every: everyMs });
      if (this.#isRunning || this.#isClosing) return;
      // The worker starts only after Redis has accepted the schedule. If Redis rejected its commands, BullMQ would send them without a pause.
      this.#isRunning = true;
      this.#worker.run().catch((error: Error) => this.#onError(error));
    } catch (error) {
      if (error instanceof Error) this.#onError(error);
    }
  }

  #onError(error: Error & { readonly code?: unknown }): void {
    // Not reported: numeric errors of BullMQ's scripts, such as a lost lock, and OOM (Redis is full), which ends once workers take jobs.
    const isExpected = isConnectionError(error) || typeof error.code === 'number' || error.message.startsWith('OOM');
    if (!isExpected && !this.#isClosing) this.#options.onError(error);
  }
}

/** The states of waiting jobs, also while the queue is paused. Jobs with a priority have their own state. */
const WAITING_STATES = ['waiting', 'prioritized'] as const;

export interface QueueDepth {
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
  /** The number of parent jobs in BullMQ flows that wait for their child jobs, which may be in other queues. */
  readonly waitingChildren: number;
  /** When the next waiting job was added, by the producer's clock. Undefined if no job is waiting. */
  readonly oldestWaitingSince: EpochMs | undefined;
  /** When the longest-running job was taken, by the worker's clock. Undefined if no job is active. */
  readonly oldestActiveSince: EpochMs | undefined;
}

/** Reads the depth of a queue. The counts come from separate commands, so they may be slightly inconsistent. */
export async function readQueueDepth(queue: Queue, redis: RedisClient): Promise<QueueDepth> {
  const [counts, oldestActiveSince, ...heads] = await Promise.all([
    queue.getJobCounts(...WAITING_STATES, 'active', 'delayed', 'failed', 'waiting-children'),
    firstJobSince(queue, redis, 'active', 'processedOn'),
    ...WAITING_STATES.map((state) => firstJobSince(queue, redis, state, 'timestamp')),
  ]);
  const since = heads.filter((timestamp) => timestamp !== undefined);
  const {
    waiting = 0,
    prioritized = 0,
    active = 0,
    delayed = 0,
    failed = 0,
    'waiting-children': waitingChildren = 0,
  } = counts;
  return {
    waiting: waiting + prioritized,
    active,
    delayed,
    failed,
    waitingChildren,
    oldestWaitingSince: since.length > 0 ? Math.min(...since) : undefined,
    oldestActiveSince,
  };
}

/** Reads only one time field of the first job, because the job's data may have megabytes or be invalid JSON. */
async function firstJobSince(
  queue: Queue,
  redis: RedisClient,
  state: (typeof WAITING_STATES)[number] | 'active',
  field: 'timestamp' | 'processedOn',
): Promise<EpochMs | undefined> {
  const [id] = await queue.getRanges([state], 0, 0, true);
  const timestamp = id === undefined ? null : await redis.hget(queue.toKey(id), field);
  // The field may contain any string, because producers write it.
  return timestamp !== null && /^\d{1,15}$/.test(timestamp) ? Number(timestamp) : undefined;
}

/** Returns the age in seconds. Returns 0 for `undefined`, and for a time in the future, because a clock may be ahead. */
export function secondsSince(since: EpochMs | undefined, now: EpochMs): number {
  return since === undefined ? 0 : Math.max(0, now - since) / 1000;
}
