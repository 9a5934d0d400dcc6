/**
 * Keeps the rollup rows up to date. Every few seconds, it recomputes dirty hours (hours with late events), and seals the hours and days
 * that are due (computes their rows). A job scheduler in Redis starts one process at a time, and the next run retries failures. A process
 * that dies midway, or that is suspended and continues while another process runs, does no harm: see dirty-hours.ts in packages/warehouse.
 */

import { formatTimestamp } from '@meterline/catalog';
import { Outage, onceAMinute } from '@meterline/service';
import { Scheduler, type SchedulerOptions } from '@meterline/service/queue';
import {
  allConflicts,
  type Conflicts,
  clickHouseFailureKind,
  GRAINS,
  lowestWatermarks,
  onEachShard,
  type RollupKey,
  readOpenMarks,
  recomputeDirtyHours,
  sealNext,
  type Warehouse,
} from '@meterline/warehouse';
import type { Logger } from 'pino';
import type { IngestMetrics } from './metrics.js';

const QUEUE = 'meterline-maintenance';
const SLOW_STEP_MS = 1_000;

export interface MaintainerOptions
  extends Pick<SchedulerOptions, 'connection' | 'prefix' | 'everyMs' | 'rescheduleMs' | 'lockMs'> {
  /** How long after its end an hour is sealed (its rollup rows are computed). Later events count exactly too, but cost recomputed rows. */
  readonly delayMs: number;
  /** Connections whose statements may take minutes, because a step seals at least one hour, even if the hour has many events. */
  readonly shards: readonly Warehouse[];
  readonly metrics: IngestMetrics;
  readonly log: Logger;
}

export class Maintainer {
  readonly #options: MaintainerOptions;
  readonly #shards: readonly Warehouse[];
  readonly #scheduler: Scheduler;
  readonly #outage: Outage;
  readonly #stopping = new AbortController();
  readonly #logDefect = onceAMinute((err: unknown) => {
    this.#options.log.error({ event: 'maintenance_failed', err }, 'rollups are not maintained because of a bug');
  });

  constructor(options: MaintainerOptions) {
    const { log, shards } = options;
    this.#options = options;
    this.#shards = shards.map((shard) => shard.within({ signal: this.#stopping.signal }));
    this.#outage = new Outage(log, 'ClickHouse', 'rollups are not maintained until it does: queries read the events');
    this.#scheduler = new Scheduler({
      ...options,
      queue: QUEUE,
      name: 'rollups',
      run: () => this.runDueSteps(),
      // Every attempt to take a job may fail with the same error, so log it at most once a minute.
      onError: onceAMinute((err: Error) => {
        if (this.#stopping.signal.aborted) return;
        log.error({ event: 'maintenance_queue_error', err }, 'rollups are not maintained: Redis rejects the queue');
      }),
    });
  }

  run(): void {
    this.#scheduler.run();
  }

  /** Aborts the current step, which may take minutes. The next process repeats the step. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#scheduler.close();
  }

  /**
   * Alternates between recomputing and sealing until no step is due. Stops if this process loses the scheduler's job, because another
   * process may have taken it, and both would do every step. Failures are logged.
   */
  async runDueSteps(): Promise<void> {
    for (let isMore = true; isMore && !this.#scheduler.hasLostJob; ) {
      const outcomes = [await this.#attempt(() => this.#recompute()), await this.#attempt(() => this.#seal())];
      if (!outcomes.includes('failed') && !this.#stopping.signal.aborted) this.#outage.recovered();
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
      if (clickHouseFailureKind(error) === 'defect') this.#logDefect(error);
      else this.#outage.failed(error);
      return 'failed';
    }
  }

  /** Recomputes the rollup rows of some dirty hours on each shard. Returns true if there may be more. */
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
    this.#tellConflicts(allConflicts(steps.map(({ conflicts }) => conflicts)));
    const took = performance.now() - startedAt;
    if (took > SLOW_STEP_MS) {
      const rows = { marks: total('marks'), hourly: total('hourly'), daily: total('daily') };
      log.info({ event: 'recomputed', ...rows, seconds: took / 1000 }, 'recomputed rollup rows of late events');
    }
    return total('marks') > 0;
  }

  /** Computes the rollup rows of the next hours or days that are due. Returns true if there may be more. */
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
    log.info({ event: 'sealed', grain, from, to, seconds }, 'rollups of this time may be read now');
    this.#tellTooLarge(tooLarge);
    this.#tellConflicts(step.conflicts);
    return true;
  }

  #tellConflicts({ events, first }: Conflicts): void {
    if (!first) return;
    this.#options.metrics.conflictingEvents.inc(events);
    const { accountId: account, hour, eventId } = first;
    this.#options.log.warn(
      { event: 'conflicting_events', events, first: { account, hour: formatTimestamp(hour), eventId } },
      'producers sent different events with the same eventId and revision; only one of each pair counts. Send corrections with a higher revision',
    );
  }

  #tellTooLarge(rows: readonly RollupKey[]): void {
    const [row] = rows;
    if (!row) return;
    const { metrics, log } = this.#options;
    metrics.rowsTooLarge.inc(rows.length);
    const first = { account: row.accountId, bucket: formatTimestamp(row.bucket) };
    log.warn(
      { event: 'rollup_rows_too_large', rows: rows.length, first },
      'rollup rows need more memory or time than a statement may take; their hours are read from the events',
    );
  }
}
