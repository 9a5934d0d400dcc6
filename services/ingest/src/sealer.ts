/**
 * Seals past hours and days. Every ingest process can, a job scheduler in Redis wakes one of them at a time, and two at
 * once would do no harm: see sealing.ts and repair.ts in packages/warehouse.
 */
import { Outage } from '@meterline/service';
import { sealNext, type Warehouse } from '@meterline/warehouse';
import { Queue, Worker } from 'bullmq';
import type { Logger } from 'pino';

const SEALING_QUEUE = 'meterline-sealing';
const SCHEDULER = 'seal';
/** A catch-up after a long downtime takes many steps; the lock of a job is renewed meanwhile. */
const LOCK_MS = 60_000;

export interface SealerOptions {
  readonly redisUrl: string;
  readonly prefix: string;
  /** How often to look for an hour that is due. */
  readonly everyMs: number;
  /** How long after its end an hour is sealed. Events later than that are exact too, but cost a recomputed cell. */
  readonly delayMs: number;
  readonly warehouse: Warehouse;
  readonly log: Logger;
}

export class Sealer {
  readonly #options: SealerOptions;
  readonly #queue: Queue;
  readonly #worker: Worker;
  readonly #outage: Outage;
  #isStopping = false;

  constructor(options: SealerOptions) {
    const { redisUrl, prefix, log } = options;
    this.#options = options;
    this.#outage = new Outage(log, 'ClickHouse', 'hours stay unsealed until it does');
    this.#queue = new Queue(SEALING_QUEUE, { connection: { url: redisUrl }, prefix });
    this.#worker = new Worker(SEALING_QUEUE, () => this.#seal(), {
      connection: { url: redisUrl, maxRetriesPerRequest: null },
      prefix,
      concurrency: 1,
      autorun: false,
      lockDuration: LOCK_MS,
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      removeOnComplete: { count: 1 },
      removeOnFail: { count: 1 },
    });
    // The connections of the usage worker tell of an outage of Redis.
    this.#queue.on('error', () => undefined);
    this.#worker.on('error', () => undefined);
  }

  async run(): Promise<void> {
    await this.#queue.setGlobalConcurrency(1);
    await this.#queue.upsertJobScheduler(SCHEDULER, { every: this.#options.everyMs });
    this.#worker.run().catch((error: unknown) => {
      this.#options.log.fatal({ event: 'sealer_stopped', err: error }, 'The sealer has stopped');
      throw error;
    });
  }

  /** Resolves after the step under way. */
  async close(): Promise<void> {
    this.#isStopping = true;
    await this.#worker.close();
    await this.#queue.close();
  }

  async #seal(): Promise<void> {
    const { warehouse, delayMs, log } = this.#options;
    try {
      while (!this.#isStopping) {
        const startedAt = performance.now();
        const step = await sealNext(warehouse, Date.now() - delayMs);
        this.#outage.recovered();
        if (!step) return;
        const { grain, from, to } = step;
        log.info(
          {
            event: 'sealed',
            grain,
            from: new Date(from).toISOString(),
            to: new Date(to).toISOString(),
            milliseconds: Math.round(performance.now() - startedAt),
          },
          'cells are ready to be read',
        );
      }
    } catch (error) {
      // The scheduler's next job takes up the step.
      this.#outage.failed(error);
    }
  }
}
