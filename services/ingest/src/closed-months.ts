/**
 * Which events are too old to be accepted. A worker that has not heard of a bound yet stores events that others refuse already;
 * what happens to those is decided after they are stored: see packages/warehouse/src/retention/bounds.ts.
 */
import { type EpochMs, formatTimestamp } from '@meterline/catalog';
import { readRetentionBounds, type Shards } from '@meterline/warehouse';
import type { Logger } from 'pino';
import type { IngestMetrics } from './metrics.js';

/** How long it takes until every worker knows of a bound. */
const REFRESH_MS = 5_000;

export interface ClosedMonthsOptions {
  readonly shards: Pick<Shards, 'all'>;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
}

export class ClosedMonths {
  readonly #options: ClosedMonthsOptions;
  #before: EpochMs = 0;
  #refreshing: NodeJS.Timeout | undefined;

  constructor(options: ClosedMonthsOptions) {
    this.#options = options;
  }

  /** Events before this instant are refused. */
  get before(): EpochMs {
    return this.#before;
  }

  /** Resolves when the bound of this moment is known. @throws when ClickHouse does not tell */
  async run(): Promise<void> {
    await this.#refresh();
    // The store reports an outage.
    this.#refreshing = setInterval(() => this.#refresh().catch(() => undefined), REFRESH_MS);
  }

  stop(): void {
    clearInterval(this.#refreshing);
  }

  async #refresh(): Promise<void> {
    const { shards, metrics, log } = this.#options;
    const bounds = await Promise.all(shards.all.map((shard) => readRetentionBounds(shard)));
    // They differ only while an operator's command is at work, or after one that has failed.
    const closedBefore = Math.max(...bounds.map((bound) => bound.closedBefore));
    metrics.closedBefore.set(closedBefore / 1000);
    if (closedBefore === this.#before) return;
    this.#before = closedBefore;
    const before = formatTimestamp(closedBefore);
    log.info({ event: 'months_closed', before }, 'events before this time are refused from now on');
  }
}
