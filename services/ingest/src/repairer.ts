/**
 * Repairs what late events have made stale, some time after they are acknowledged: recomputes the cells of marked hours, and
 * removes their marks. Every ingest process repairs what it has marked itself, and what others have left for a minute. Two
 * that repair the same do no harm, and neither does one that is killed or frozen anywhere: see marks.ts in packages/warehouse.
 *
 * A repairer is `idle`, `repairing` while there are marks that it repairs, and in the end `stopped`. It repairs nothing twice at
 * once, and nothing after it has stopped; both are checked at run time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Outage } from '@meterline/service';
import { type Cell, GRAINS, REPAIR_LIMITS, readOpenMarks, repairNext, type Warehouse } from '@meterline/warehouse';
import type { Logger } from 'pino';
import type { IngestMetrics } from './metrics.js';
import { serverName, shardLabel } from './shard-name.js';
import { StateMachine } from './state.js';
import { tellTooLarge } from './too-large.js';

/** How long an account is left alone, one of whose cells is too large: each attempt takes as much as the limits allow. */
const LEFT_ALONE_MS = 3_600_000;
/** Beyond that many the one that has been left alone for longest is tried again. */
const MAX_LEFT_ALONE = 100;
/** A step that takes less is not worth a line in the log. */
const SLOW_STEP_MS = 1_000;

export interface RepairerOptions {
  /** Of several, from 1 on; undefined: one server. */
  readonly shard: number | undefined;
  /** By which this process marks stale hours, a UUID. */
  readonly writer: string;
  /** How often to look for marks. */
  readonly everyMs: number;
  /** Its statements may take minutes: an hour of an account is the least that is repaired at a time. */
  readonly warehouse: Warehouse;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
}

export class Repairer {
  readonly #options: RepairerOptions;
  readonly #outage: Outage;
  readonly #stopping = new AbortController();
  readonly #state = new StateMachine<'idle' | 'repairing' | 'stopped'>('repairer', 'idle', {
    idle: ['repairing', 'stopped'],
    repairing: ['idle'],
    stopped: [],
  });
  /** How many marked hours the next step takes: fewer after a failure, so that what cannot be repaired holds up little else. */
  #hours = REPAIR_LIMITS.hours;
  /** Accounts with a cell that is too large, in the order in which they were found, and until when they are left alone. */
  readonly #leftAlone = new Map<string, number>();
  #running: Promise<void> = Promise.resolve();

  constructor(options: RepairerOptions) {
    this.#options = options;
    this.#outage = new Outage(
      options.log,
      serverName(options.shard),
      'late events are read from the events until it does',
    );
  }

  run(): void {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.repair();
      await delay(this.#options.everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Ends the step under way: its marks stay, and another process repairs them. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#state.enter('stopped');
  }

  /**
   * Repairs every mark that is this process's to repair.
   * @throws when it is repairing already or has stopped; a failure is logged, and the next call tries again
   */
  async repair(): Promise<void> {
    this.#state.enter('repairing');
    const { signal } = this.#stopping;
    try {
      while (await this.#repairStep(signal));
      this.#outage.recovered();
    } catch (error) {
      this.#hours = Math.max(1, this.#hours >> 1);
      if (!signal.aborted) this.#failed(error);
    } finally {
      this.#state.enter('idle');
    }
  }

  #failed(error: unknown): void {
    this.#options.metrics.repairFailures.inc();
    this.#outage.failed(error);
  }

  #leaveAlone(tooLarge: readonly Cell[]): void {
    tellTooLarge(this.#options, tooLarge);
    for (const { accountId } of tooLarge) {
      this.#leftAlone.delete(accountId);
      this.#leftAlone.set(accountId, performance.now() + LEFT_ALONE_MS);
    }
    for (const account of [...this.#leftAlone.keys()].slice(0, -MAX_LEFT_ALONE)) this.#leftAlone.delete(account);
  }

  #accountsLeftAlone(): readonly string[] {
    for (const [account, until] of this.#leftAlone) if (until < performance.now()) this.#leftAlone.delete(account);
    return [...this.#leftAlone.keys()];
  }

  /** @returns whether there may be more to repair */
  async #repairStep(signal: AbortSignal): Promise<boolean> {
    const { writer, shard, metrics, log } = this.#options;
    const warehouse = this.#options.warehouse.within({ signal });
    const leftAlone = this.#accountsLeftAlone();
    const { hours, oldestSeconds, due } = await readOpenMarks(warehouse, writer, leftAlone);
    const labels = shardLabel(shard);
    metrics.staleHours.labels(labels).set(hours);
    metrics.oldestMark.labels(labels).set(oldestSeconds);
    if (due === 0) return false;
    const startedAt = performance.now();
    const limits = { ...REPAIR_LIMITS, hours: this.#hours };
    const { tooLarge, ...repaired } = await repairNext(warehouse, writer, limits, leftAlone);
    this.#leaveAlone(tooLarge);
    const took = performance.now() - startedAt;
    metrics.repairDuration.observe(took / 1000);
    for (const grain of GRAINS) metrics.cellsRepaired.inc({ grain }, repaired[grain]);
    if (took > SLOW_STEP_MS) {
      log.info({ event: 'repaired', ...repaired, seconds: took / 1000 }, 'cells of late events are ready to be read');
    }
    this.#hours = Math.min(REPAIR_LIMITS.hours, this.#hours * 2);
    this.#outage.recovered();
    return true;
  }
}
