/** Work that is done every so often, by one process at a time: a job scheduler of BullMQ in Redis wakes one of them. */
import { Queue, Worker } from 'bullmq';
import type { RedisClient } from './access/index.js';
import { isConnectionError } from './queue-connection.js';

/** How often the scheduler is written again: a Redis that lost it would never wake a process again. */
const RESCHEDULE_MS = 30_000;
/** How much later than the interval the next moment may be: the clocks of processes differ. An interval may change, too. */
const FURTHEST_NEXT_MS = 3_600_000;
/** When a process that is at work dies, another takes over within the sum of these. The lock of a job in work is renewed. */
const LOCK_MS = 15_000;
const STALLED_CHECK_MS = 5_000;

export interface SchedulerOptions {
  /** Is the scheduler's own: it closes it. */
  readonly connection: RedisClient;
  readonly prefix: string;
  readonly queue: string;
  /** Of the schedule. */
  readonly name: string;
  readonly everyMs: number;
  readonly rescheduleMs?: number | undefined;
  /** Fails by itself: the next turn is all that follows. */
  readonly turn: () => Promise<void>;
  /** Redis refuses. Outages are not told: connections report them. */
  readonly onError: (error: Error) => void;
}

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #queue: Queue;
  readonly #worker: Worker;
  #rescheduling: NodeJS.Timeout | undefined;
  #isRunning = false;
  #isClosing = false;
  #hasLostJob = false;

  constructor(options: SchedulerOptions) {
    const { connection, prefix, queue, turn } = options;
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
      autorun: false,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      removeOnComplete: { count: 1 },
      removeOnFail: { count: 1 },
    });
    const onError = (error: Error) => this.#onError(error);
    this.#queue.on('error', onError);
    this.#worker.on('error', onError);
    this.#worker.on('lockRenewalFailed', () => {
      this.#hasLostJob = true;
    });
  }

  /** Another process may have the job by now, after this one was frozen. */
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
      // Not before Redis has accepted the schedule: BullMQ asks a Redis that refuses again and again, without a pause.
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
