/** Queues of BullMQ: connections, schedules, and how much waits in the queue of events, for how long. */
import type { EpochMs } from '@meterline/catalog';
import { isNotConnectionError, Queue, Worker } from 'bullmq';
import { createRedisClient, type RedisClient } from './access/index.js';

const LONGEST_RECONNECT_MS = 5_000;
/** Redis refuses a script at its first write when it is full, unless the script says this in its first line. */
const RUNS_WHEN_FULL = '#!lua flags=allow-oom\n';

/**
 * For BullMQ: commands wait for a Redis that is away, however long, because BullMQ takes a job for failed that was done and could not be
 * acknowledged. BullMQ's scripts, which it defines with `defineCommand`, run while Redis is full: taking and acknowledging jobs is what
 * empties it.
 */
export function openQueueConnection(url: string): RedisClient {
  const redis = createRedisClient(url, {
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => Math.min(attempt * 500, LONGEST_RECONNECT_MS),
  });
  const define = redis.defineCommand.bind(redis);
  redis.defineCommand = (name, definition) => define(name, { ...definition, lua: RUNS_WHEN_FULL + definition.lua });
  return redis;
}

/** The options of each worker: another worker takes over the jobs of a process that dies, as often as that happens. */
export function workerOptions(lockMs: number) {
  return {
    autorun: false,
    lockDuration: lockMs,
    stalledInterval: Math.ceil(lockMs / 3),
    // A job is never at fault for the death of a process.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
  };
}

/** System errors, such as ECONNRESET, have a `syscall`. */
export function isConnectionError(error: Error): boolean {
  return !isNotConnectionError(error) || 'syscall' in error;
}

/** How often the scheduler is written again: a Redis that lost it would never wake a process again. */
const RESCHEDULE_MS = 30_000;
/** How much later than the interval the next moment may be: the clocks of processes differ. An interval may change, too. */
const FURTHEST_NEXT_MS = 3_600_000;

export interface SchedulerOptions {
  /** Is the scheduler's own: it closes it. */
  readonly connection: RedisClient;
  readonly prefix: string;
  readonly queue: string;
  /** The name of the schedule. */
  readonly name: string;
  readonly everyMs: number;
  readonly rescheduleMs?: number | undefined;
  readonly lockMs: number;
  /** Fails by itself: the next turn is all that follows. */
  readonly turn: () => Promise<void>;
  /** Redis refuses. Outages are not told: connections report them. */
  readonly onError: (error: Error) => void;
}

/** Work that is done every so often, by one process at a time: a job scheduler of BullMQ in Redis wakes one of them. */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #queue: Queue;
  readonly #worker: Worker;
  #rescheduling: NodeJS.Timeout | undefined;
  #isRunning = false;
  #isClosing = false;
  #hasLostJob = false;

  constructor(options: SchedulerOptions) {
    const { connection, prefix, queue, turn, lockMs } = options;
    this.#options = options;
    this.#queue = new Queue(queue, { connection, prefix });
    const work = () => {
      this.#hasLostJob = false;
      return turn();
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
    // A turn fails by itself; one that throws is a defect, or Redis refuses it.
    this.#worker.on('failed', (_job, error) => this.#onError(error));
    this.#worker.on('lockRenewalFailed', () => {
      this.#hasLostJob = true;
    });
  }

  /** Whether another process may have the job by now, after this one was frozen. */
  get hasLostJob(): boolean {
    return this.#hasLostJob;
  }

  run(): void {
    void this.#schedule();
    this.#rescheduling = setInterval(() => void this.#schedule(), this.#options.rescheduleMs ?? RESCHEDULE_MS);
  }

  /** Waits for the turn under way. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#rescheduling);
    await this.#worker.close();
    await this.#queue.close();
    this.#options.connection.disconnect();
  }

  /**
   * A schedule that is there already keeps its next moment, unless that is too far away: a process whose clock was days
   * ahead has set it, and nothing would be done until then.
   */
  async #schedule(): Promise<void> {
    const { everyMs, name } = this.#options;
    try {
      await this.#queue.setGlobalConcurrency(1);
      const known = await this.#queue.getJobScheduler(name);
      const isFarAway = (known?.next ?? 0) > Date.now() + everyMs + FURTHEST_NEXT_MS;
      if (isFarAway) await this.#queue.removeJobScheduler(name);
      await this.#queue.upsertJobScheduler(name, { every: everyMs });
      if (this.#isRunning || this.#isClosing) return;
      // The worker waits until Redis has accepted the schedule: BullMQ asks a Redis that refuses again and again, without a pause.
      this.#isRunning = true;
      this.#worker.run().catch((error: Error) => this.#onError(error));
    } catch (error) {
      if (error instanceof Error) this.#onError(error);
    }
  }

  #onError(error: Error & { readonly code?: unknown }): void {
    // A number: BullMQ's scripts have refused, such as for a lock that was lost. Workers empty a Redis that is full.
    const isExpected = isConnectionError(error) || typeof error.code === 'number' || error.message.startsWith('OOM');
    if (!isExpected && !this.#isClosing) this.#options.onError(error);
  }
}

/** The states of jobs that wait, whether or not the queue is paused. Jobs with a priority have a state of their own. */
const WAITING_STATES = ['waiting', 'prioritized'] as const;

export interface QueueDepth {
  /** Jobs that wait, those with a priority included. */
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
  /** Parents of a BullMQ flow that wait for jobs of theirs, perhaps in other queues. No worker takes them before. */
  readonly waitingChildren: number;
  /** When the next job was added, by its producer's clock; undefined when none waits. */
  readonly oldestWaitingSince: EpochMs | undefined;
  /** When the job was taken that has been in work for longest, by its worker's clock; undefined when none is in work. */
  readonly oldestActiveSince: EpochMs | undefined;
}

/**
 * The numbers are read one after the other, so they need not fit together.
 * @param redis the connection of the queue
 */
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

/** Reads the time of the job alone: its data may be megabytes, or not JSON. */
async function firstJobSince(
  queue: Queue,
  redis: RedisClient,
  state: (typeof WAITING_STATES)[number] | 'active',
  field: 'timestamp' | 'processedOn',
): Promise<EpochMs | undefined> {
  const [id] = await queue.getRanges([state], 0, 0, true);
  const timestamp = id === undefined ? null : await redis.hget(queue.toKey(id), field);
  // Producers may write anything there.
  return timestamp !== null && /^\d{1,15}$/.test(timestamp) ? Number(timestamp) : undefined;
}

/** 0 when none is meant; a clock that is ahead is no negative age. */
export function secondsSince(since: EpochMs | undefined, now: EpochMs): number {
  return since === undefined ? 0 : Math.max(0, now - since) / 1000;
}
