/**
 * Takes jobs from the queue and acknowledges each only after all its rows are durable.
 *
 * Crash order for one job: taken → checked and priced → stored (steps 1 to 4 of `store()` in event-store.ts) →
 * acknowledged (step 5). A crash before the acknowledgement leaves the job with an expiring lock; any worker takes it
 * again, and inserting its rows twice is harmless.
 */
import { type EpochMs, type PriceBook, QUEUE_NAME } from '@meterline/catalog';
import { Outage, onceAMinute } from '@meterline/service';
import { trace } from '@opentelemetry/api';
import { isNotConnectionError, type Job, type JobJson, type Telemetry, WaitingError, Worker } from 'bullmq';
import type { Logger } from 'pino';
import type { Batcher } from './batcher.js';
import { priceJob } from './intake.js';
import type { IngestMetrics } from './metrics.js';

/** A worker that dies leaves its jobs to the others after this long. A lock lost by mistake costs a second insert. */
const LOCK_MS = 15_000;
const STALLED_CHECK_MS = 5_000;
/** Acknowledged jobs that stay readable in Redis, with their data: up to 5,000 events each. */
const KEPT_COMPLETED_JOBS = 20;
/** A later time does not fit its column. */
const LATEST_RECEIPT: EpochMs = Date.UTC(2200, 0, 1);
/** How fast the typical size falls: after a large job, some hundred small ones bring it down again. */
const SIZE_DECAY = 0.99;

export interface UsageWorkerOptions {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly concurrency: number;
  /** About how much job data may be in work at once; see {@link UsageWorker}. */
  readonly maxBytesInWork: number;
  readonly batcher: Batcher;
  readonly priceBook: PriceBook;
  /** Aborted when a shutdown no longer waits for ClickHouse. */
  readonly givesUp: AbortSignal;
  readonly metrics: IngestMetrics;
  /** Undefined when jobs are not traced. */
  readonly telemetry: Telemetry | undefined;
  readonly log: Logger;
}

/**
 * Memory stays bounded whatever the size of jobs and however long ClickHouse is away: BullMQ fetches no more jobs than
 * its concurrency, so the concurrency follows the size of the jobs that arrive.
 */
export class UsageWorker {
  readonly #options: UsageWorkerOptions;
  readonly #worker: RawDataWorker;
  readonly #redisOutage: Outage;
  readonly #logQueueError: (err: Error) => void;
  #typicalBytes = 0;
  #lastProgressAt = Date.now();

  constructor(options: UsageWorkerOptions) {
    this.#options = options;
    this.#redisOutage = new Outage(options.log, 'Redis', 'jobs stay in the queue until it does');
    // The same error may come with every attempt to take a job.
    this.#logQueueError = onceAMinute((err) => {
      options.log.error({ event: 'queue_error', err }, 'The queue answered with an error');
    });
    this.#worker = new RawDataWorker(QUEUE_NAME, (job, token) => this.#process(job, token), {
      connection: { url: options.redisUrl, maxRetriesPerRequest: null },
      prefix: options.prefix,
      concurrency: options.concurrency,
      autorun: false,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      // A job is never at fault for the death of a worker.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      runRetryDelay: 1_000,
      ...(options.telemetry && { telemetry: options.telemetry }),
    });
    this.#worker.on('error', (error) => this.#onWorkerError(error));
    this.#worker.on('active', (job) => this.#onJobTaken(job));
    // While the queue is empty, no job shows that Redis is back.
    this.#worker.backend.on('ready', () => this.#redisOutage.recovered());
    this.#worker.on('completed', () => options.metrics.jobsFinished.inc({ result: 'acknowledged' }));
    this.#worker.on('failed', (job, error) => {
      options.metrics.jobsFinished.inc({ result: 'failed' });
      options.log.error({ event: 'job_failed', jobId: job?.id, err: error }, 'A job failed: a defect of the worker');
    });
  }

  /** When a job was last taken or made durable, in epoch milliseconds. */
  get lastProgressAt(): number {
    return this.#lastProgressAt;
  }

  /** Whether Redis is away and the worker waits for its return. */
  get isWaiting(): boolean {
    return this.#redisOutage.isOn;
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

  /** BullMQ reports many things as errors. Only those of the connection mean an outage. */
  #onWorkerError(error: Error & { readonly code?: unknown }): void {
    if (isConnectionError(error)) {
      this.#redisOutage.failed(error);
    } else if (typeof error.code === 'number') {
      // A refusal by BullMQ's scripts. The usual one is a lost lock: another worker has the job then.
      this.#options.log.debug({ event: 'queue_refusal', err: error }, 'The queue refused a call');
    } else {
      this.#logQueueError(error);
    }
  }

  /** BullMQ emits `active` as soon as it has fetched a job, before it decides whether to fetch another. */
  #onJobTaken(job: Job<string>): void {
    this.#redisOutage.recovered();
    this.#lastProgressAt = Date.now();
    this.#options.metrics.jobsTaken.inc();
    this.#typicalBytes = Math.max(job.data.length, this.#typicalBytes * SIZE_DECAY);
    const { concurrency, maxBytesInWork } = this.#options;
    this.#worker.concurrency = Math.min(concurrency, Math.max(1, Math.floor(maxBytesInWork / this.#typicalBytes)));
  }

  async #process(job: Job<string, void>, token: string | undefined): Promise<void> {
    const span = trace.getActiveSpan()?.spanContext();
    const queued = { id: job.id ?? '', receivedAt: receivedAt(job), data: job.data, span };
    const intake = priceJob(queued, this.#options.priceBook, Date.now());
    // The rows are all that is needed from here on.
    job.data = '';
    try {
      await this.#options.batcher.add(intake);
    } catch (error) {
      if (!this.#options.givesUp.aborted) throw error;
      await job.moveToWait(token);
      this.#options.metrics.jobsFinished.inc({ result: 'returned' });
      throw new WaitingError();
    }
    this.#lastProgressAt = Date.now();
  }
}

/** System errors, such as ECONNRESET, have a `syscall`. */
function isConnectionError(error: Error): boolean {
  return !isNotConnectionError(error) || 'syscall' in error;
}

/** When the queue took the job, by its producer's clock. A producer may write anything there: 0 if it cannot be right. */
function receivedAt({ timestamp }: Job): EpochMs {
  return timestamp >= 0 && timestamp <= LATEST_RECEIPT ? timestamp : 0;
}

/** Leaves the data of a job as the text that Redis holds: `priceJob` parses it once, and it need not be valid JSON. */
class RawDataWorker extends Worker<string, void> {
  protected override createJob(json: JobJson, jobId: string): Job<string, void> {
    const job = super.createJob({ ...json, data: '""' }, jobId);
    job.data = json.data;
    // A producer's options must not count here: keeping all completed jobs would fill Redis,
    job.opts.removeOnComplete = { count: KEPT_COMPLETED_JOBS };
    // and dropping failed ones would lose events.
    job.opts.removeOnFail = false;
    return job;
  }
}
