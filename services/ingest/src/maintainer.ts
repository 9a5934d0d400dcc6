/**
 * Keeps the rollups up to date: every few seconds it recomputes dirty hours, and seals the hours and days that are due. A job
 * scheduler in Redis wakes one process at a time. What fails is tried again at the next turn; a process that dies in the
 * middle, or is frozen and goes on beside its successor, does no harm: see dirty-hours.ts in packages/warehouse.
 */

import { formatTimestamp } from '@meterline/catalog';
import { Outage, onceAMinute } from '@meterline/service';
import type { RedisClient } from '@meterline/service/access';
import {
  GRAINS,
  lowestWatermarks,
  onEachShard,
  type RollupKey,
  readOpenMarks,
  recomputeDirtyHours,
  sealNext,
  type Warehouse,
} from '@meterline/warehouse';
import { Queue, Worker } from 'bullmq';
import type { Logger } from 'pino';
import type { IngestMetrics } from './metrics.js';
import { isConnectionError } from './queue.js';

const QUEUE = 'meterline-maintenance';
const SCHEDULER = 'rollups';
/** How often the scheduler is written again: a Redis that lost it would never wake a process again. */
const RESCHEDULE_MS = 30_000;
/** How much later than the interval the next moment may be: the clocks of processes differ. An interval may change, too. */
const FURTHEST_NEXT_MS = 3_600_000;
/** When a process that is at work dies, another takes over within the sum of these. The lock of a job in work is renewed. */
const LOCK_MS = 15_000;
const STALLED_CHECK_MS = 5_000;
/** A step that takes less is not worth a line in the log. */
const SLOW_STEP_MS = 1_000;

export interface MaintainerOptions {
  /** Is the maintainer's own: it closes it. */
  readonly connection: RedisClient;
  readonly prefix: string;
  readonly everyMs: number;
  /** How long after its end an hour is sealed. Events later than that are exact too, but cost a mark and a recomputed row. */
  readonly delayMs: number;
  readonly rescheduleMs?: number;
  /** Statements may take minutes: one hour is the least that is sealed at a time, however many events it has. */
  readonly shards: readonly Warehouse[];
  readonly metrics: IngestMetrics;
  readonly log: Logger;
}

export class Maintainer {
  readonly #options: MaintainerOptions;
  readonly #shards: readonly Warehouse[];
  readonly #queue: Queue;
  readonly #worker: Worker;
  readonly #outage: Outage;
  readonly #logQueueError: (err: Error) => void;
  readonly #stopping = new AbortController();
  #rescheduling: NodeJS.Timeout | undefined;
  #isRunning = false;
  /** Another process may have the job by now, after this one was frozen. */
  #hasLostJob = false;

  constructor(options: MaintainerOptions) {
    const { connection, log, prefix, shards } = options;
    this.#options = options;
    this.#shards = shards.map((shard) => shard.within({ signal: this.#stopping.signal }));
    this.#outage = new Outage(log, 'ClickHouse', 'rollups are not maintained until it does: queries read the events');
    this.#queue = new Queue(QUEUE, { connection, prefix });
    this.#worker = new Worker(QUEUE, () => this.turn(), {
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
    // The same error may come with every attempt to take a job.
    this.#logQueueError = onceAMinute((err) => {
      log.error({ event: 'maintenance_queue_error', err }, 'Rollups are not maintained: Redis refuses the queue');
    });
    const onError = (error: Error) => this.#onQueueError(error);
    this.#queue.on('error', onError);
    this.#worker.on('error', onError);
    this.#worker.on('lockRenewalFailed', () => {
      this.#hasLostJob = true;
    });
  }

  run(): void {
    void this.#schedule();
    this.#rescheduling = setInterval(() => void this.#schedule(), this.#options.rescheduleMs ?? RESCHEDULE_MS);
  }

  /** Ends the step under way, which may take minutes: the next process does it again. */
  async close(): Promise<void> {
    this.#stopping.abort();
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
    const { everyMs } = this.#options;
    try {
      await this.#queue.setGlobalConcurrency(1);
      const known = await this.#queue.getJobScheduler(SCHEDULER);
      const isFarAway = (known?.next ?? 0) > Date.now() + everyMs + FURTHEST_NEXT_MS;
      if (isFarAway) await this.#queue.removeJobScheduler(SCHEDULER);
      await this.#queue.upsertJobScheduler(SCHEDULER, { every: everyMs });
      if (this.#isRunning || this.#stopping.signal.aborted) return;
      // Not before Redis has accepted the schedule: BullMQ asks a Redis that refuses again and again, without a pause.
      this.#isRunning = true;
      this.#worker.run().catch((error: Error) => this.#onQueueError(error));
    } catch (error) {
      if (error instanceof Error) this.#onQueueError(error);
    }
  }

  /** The usage worker's connections report an outage of Redis, and it empties one that is full. */
  #onQueueError(error: Error & { readonly code?: unknown }): void {
    // A number: BullMQ's scripts have refused, such as for a lock that was lost.
    const isExpected = isConnectionError(error) || typeof error.code === 'number' || error.message.startsWith('OOM');
    if (!isExpected && !this.#stopping.signal.aborted) this.#logQueueError(error);
  }

  /**
   * Does all that there is to do, in steps of both kinds in turn, for as long as the job is its own: two at once would do all steps twice.
   * The scheduler's job runs it; failures are logged.
   */
  async turn(): Promise<void> {
    this.#hasLostJob = false;
    for (let isMore = true; isMore && !this.#hasLostJob; ) {
      const outcomes = [await this.#attempt(() => this.#recompute()), await this.#attempt(() => this.#seal())];
      if (!outcomes.includes('failed')) this.#outage.recovered();
      isMore = outcomes.includes('more');
    }
  }

  async #attempt(step: () => Promise<boolean>): Promise<'more' | 'done' | 'failed'> {
    try {
      this.#stopping.signal.throwIfAborted();
      return (await step()) ? 'more' : 'done';
    } catch (error) {
      if (this.#stopping.signal.aborted) return 'done';
      this.#options.metrics.maintenanceFailures.inc();
      this.#outage.failed(error);
      return 'failed';
    }
  }

  /** A step of dirty hours on each shard. @returns whether there may be more */
  async #recompute(): Promise<boolean> {
    const { metrics, log } = this.#options;
    const open = await onEachShard(this.#shards, readOpenMarks);
    metrics.dirtyHours.set(open.reduce((sum, { hours }) => sum + hours, 0));
    metrics.oldestMark.set(Math.max(...open.map(({ oldestSeconds }) => oldestSeconds)));
    const startedAt = performance.now();
    const steps = await onEachShard(this.#shards, (shard) => recomputeDirtyHours(shard));
    const total = (what: 'marks' | 'hourly' | 'daily') => steps.reduce((sum, step) => sum + step[what], 0);
    for (const grain of GRAINS) metrics.rowsRecomputed.inc({ grain }, total(grain));
    this.#tellTooLarge(steps.flatMap(({ tooLarge }) => tooLarge));
    const took = performance.now() - startedAt;
    if (took > SLOW_STEP_MS) {
      const rows = { marks: total('marks'), hourly: total('hourly'), daily: total('daily') };
      log.info({ event: 'recomputed', ...rows, seconds: took / 1000 }, 'rollups have the late events');
    }
    return total('marks') > 0;
  }

  /** A step of hours, or of days. @returns whether there may be more */
  async #seal(): Promise<boolean> {
    const { delayMs, metrics, log } = this.#options;
    const startedAt = performance.now();
    const step = await sealNext(this.#shards, Date.now() - delayMs);
    if (!step) {
      const watermarks = await lowestWatermarks(this.#shards);
      for (const grain of GRAINS) metrics.sealedUntil.set({ grain }, watermarks[grain].sealedUntil / 1000);
      return false;
    }
    const { grain, tooLarge } = step;
    const seconds = (performance.now() - startedAt) / 1000;
    metrics.sealDuration.observe({ grain }, seconds);
    const [from, to] = [formatTimestamp(step.from), formatTimestamp(step.to)];
    log.info({ event: 'sealed', grain, from, to, seconds }, 'rollups are ready to be read');
    this.#tellTooLarge(tooLarge);
    return true;
  }

  /** One line for all of a step, with the first of them. */
  #tellTooLarge(rows: readonly RollupKey[]): void {
    const [row] = rows;
    if (!row) return;
    const { metrics, log } = this.#options;
    metrics.rowsTooLarge.inc(rows.length);
    const first = { account: row.accountId, bucket: formatTimestamp(row.bucket) };
    log.warn(
      { event: 'rollup_rows_too_large', rows: rows.length, first },
      'rollup rows need more memory or time than a statement may take; their hours are answered from the events',
    );
  }
}
