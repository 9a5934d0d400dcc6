/**
 * Takes jobs from the queue and acknowledges each only after all its rows are durable.
 *
 * Crash order for one job: taken → checked and priced → inserted → acknowledged. A crash before the acknowledgement
 * leaves the job with an expiring lock; any worker takes it again, and inserting its rows twice is harmless.
 */
import { type PriceBook, QUEUE_NAME } from '@meterline/catalog';
import { type Job, type JobJson, WaitingError, Worker } from 'bullmq';
import type { Logger } from 'pino';
import type { Batcher } from './batcher.js';
import { takeIn } from './intake.js';
import { Outage } from './outage.js';

/** A worker that dies leaves its jobs to the others after this long. A lock lost by mistake costs a second insert. */
const LOCK_MS = 15_000;
const STALLED_CHECK_MS = 5_000;
/** Acknowledged jobs that stay readable in Redis. */
const KEPT_COMPLETED_JOBS = 1_000;

export interface UsageWorkerOptions {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly concurrency: number;
  readonly maxBufferedRows: number;
  readonly batcher: Batcher;
  readonly priceBook: PriceBook;
  readonly log: Logger;
}

export class UsageWorker {
  readonly #options: UsageWorkerOptions;
  readonly #worker: LenientWorker;
  readonly #redisOutage: Outage;
  #inWork = 0;
  #lastProgressAt = Date.now();

  constructor(options: UsageWorkerOptions) {
    this.#options = options;
    this.#redisOutage = new Outage(options.log, 'Redis');
    this.#worker = new LenientWorker(QUEUE_NAME, (job, token) => this.#process(job, token), {
      connection: { url: options.redisUrl, maxRetriesPerRequest: null },
      prefix: options.prefix,
      concurrency: options.concurrency,
      autorun: false,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      // A job is never at fault for the death of a worker.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      runRetryDelay: 1_000,
    });
    this.#worker.on('error', (error) => this.#redisOutage.failed(error));
    this.#worker.on('active', () => this.#redisOutage.recovered());
    this.#worker.on('drained', () => this.#redisOutage.recovered());
    this.#worker.on('failed', (job, error) => {
      options.log.error({ event: 'job_failed', jobId: job?.id, err: error }, 'A job failed: a defect of the worker');
    });
  }

  /** When a job was last taken or acknowledged, in epoch milliseconds. */
  get lastProgressAt(): number {
    return this.#lastProgressAt;
  }

  run(): void {
    this.#worker.run().catch((error: unknown) => {
      this.#options.log.fatal({ event: 'worker_stopped', err: error }, 'The worker has stopped consuming');
      throw error;
    });
  }

  /** Takes no more jobs and resolves when every one in work is acknowledged or back in the queue. */
  async close(): Promise<void> {
    await this.#worker.close();
  }

  async #process(job: Job<unknown, void>, token: string | undefined): Promise<void> {
    const intake = takeIn(
      { id: job.id ?? '', receivedAt: job.timestamp, data: job.data },
      this.#options.priceBook,
      Date.now(),
    );
    // The rows are all that is needed from here on; the payload would double what an outage holds in memory.
    job.data = undefined;
    this.#inWork += 1;
    const durable = this.#options.batcher.add(intake);
    this.#adjustConcurrency();
    try {
      await durable;
    } catch {
      // Only a shutdown ends the wait for ClickHouse.
      await job.moveToWait(token);
      throw new WaitingError();
    } finally {
      this.#inWork -= 1;
      this.#lastProgressAt = Date.now();
      this.#adjustConcurrency();
    }
  }

  /** While the buffer is full no further job is fetched; those in work keep their slots. */
  #adjustConcurrency(): void {
    const { batcher, maxBufferedRows, concurrency } = this.#options;
    const full = batcher.bufferedRows >= maxBufferedRows;
    this.#worker.concurrency = full ? Math.max(1, Math.min(this.#inWork, concurrency)) : concurrency;
  }
}

/** Keeps what BullMQ would otherwise trip over or let a producer decide. */
class LenientWorker extends Worker<unknown, void> {
  protected override createJob(json: JobJson, jobId: string): Job<unknown, void> {
    const job = this.#readJob(json, jobId);
    // A producer's wish to keep all completed jobs would fill Redis.
    job.opts.removeOnComplete = { count: KEPT_COMPLETED_JOBS };
    return job;
  }

  /** A job whose data is not JSON is handed on as a text, so that it is refused and kept like any other bad job. */
  #readJob(json: JobJson, jobId: string): Job<unknown, void> {
    try {
      return super.createJob(json, jobId);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return super.createJob({ ...json, data: JSON.stringify(json.data) }, jobId);
    }
  }
}
