/**
 * Takes jobs from the queue, and acknowledges a job only after all its rows are durable.
 *
 * Each job is taken, checked and priced, stored (steps 1 to 4 of `EventStore.store()`), and then acknowledged (step 5). A crash before the
 * acknowledgement leaves the job with a lock that expires. Then any worker takes the job again, and inserting its rows twice changes
 * nothing.
 */

import { backOffMs, type EpochMs, QUEUE_NAME } from '@meterline/catalog';
import { Outage, onceAMinute } from '@meterline/service';
import type { RedisClient } from '@meterline/service/access';
import { isConnectionError, workerOptions } from '@meterline/service/queue';
import { trace } from '@opentelemetry/api';
import { DelayedError, type Job, type JobJson, type Telemetry, WaitingError, Worker } from 'bullmq';
import type { Logger } from 'pino';
import type { Slice } from './batcher.js';
import type { JobPreparer } from './intake.js';
import type { Lanes } from './lanes.js';
import type { IngestMetrics } from './metrics.js';
import { WorkInProgress } from './work-in-progress.js';

const RETRY_MS = 1_000;
/** How long a job with late events waits in the queue while too many other such jobs are in progress. */
const DEFERRAL = { firstMs: 2_000, longestMs: 15_000 };
const TOLERATED_CLOCK_MS = 10_000;
/** Later times do not fit into the column received_at. */
const LATEST_RECEIPT: EpochMs = Date.UTC(2200, 0, 1);
/** Number of acknowledged jobs that stay readable in Redis. Unusually large jobs are removed at once. */
const KEPT_COMPLETED_JOBS = 20;
const LARGEST_KEPT_LENGTH = 4 * 1024 * 1024;

/** Leaves a job's data as the string from Redis, which may be invalid JSON. The string is parsed once, when the job is checked. */
class RawJobWorker extends Worker<string, void> {
  protected override createJob(json: JobJson, jobId: string): Job<string, void> {
    // Ignore two options: a repeat schedule would repeat an event forever, and a failed child of a flow would fail the job unprocessed.
    const { data, repeatJobKey: _, deferredFailure: _failure, ...rest } = json;
    const job = super.createJob({ ...rest, data: '""' }, jobId);
    // If the job's hash was evicted or deleted in Redis, BullMQ returns a job with made-up data and without a name.
    job.data = job.name === undefined ? '' : data;
    // Override the producer's options. Keeping all completed jobs would fill Redis, and removing failed jobs would lose events.
    job.opts.removeOnComplete = { count: data.length <= LARGEST_KEPT_LENGTH ? KEPT_COMPLETED_JOBS : 0 };
    job.opts.removeOnFail = false;
    return job;
  }
}

export interface UsageWorkerOptions {
  /** Owned by the worker, which closes it. */
  readonly connection: RedisClient;
  readonly prefix: string;
  readonly concurrency: number;
  /** How long a job stays locked after its worker has died. If a live worker loses a lock, the job's rows are inserted twice. */
  readonly lockMs: number;
  /** Maximum size of the data of jobs in progress, in characters; see {@link WorkInProgress}. */
  readonly maxDataInWork: number;
  readonly lanes: Pick<Lanes, 'split' | 'add'>;
  readonly preparer: JobPreparer;
  readonly closedBefore: () => EpochMs;
  readonly givesUp: AbortSignal;
  readonly metrics: IngestMetrics;
  readonly telemetry: Telemetry | undefined;
  readonly log: Logger;
}

/**
 * Bounds the memory of jobs, even if jobs are large or ClickHouse is unavailable for long: while the data of jobs in progress exceeds a
 * limit, the worker takes no further job. A single job cannot exceed the limit of Redis for a value (`proto-max-bulk-len`).
 */
export class UsageWorker {
  readonly #options: UsageWorkerOptions;
  readonly #worker: RawJobWorker;
  readonly #outage: Outage;
  readonly #logQueueError: (err: Error) => void;
  readonly #work: WorkInProgress;
  #lastProgressAt = Date.now();
  #unacknowledged = 0;
  #queueError: string | undefined;

  constructor(options: UsageWorkerOptions) {
    const { connection, prefix, concurrency, maxDataInWork, lockMs, telemetry, log, metrics } = options;
    this.#options = options;
    this.#outage = new Outage(log, 'Redis', 'jobs stay in the queue until it does');
    // Every attempt to take a job may fail with the same error, so log it at most once a minute.
    this.#logQueueError = onceAMinute((err) => {
      log.error({ event: 'queue_error', err }, 'the queue returned an error');
    });
    this.#worker = new RawJobWorker(QUEUE_NAME, (job, token) => this.#process(job, token), {
      connection,
      prefix,
      concurrency,
      ...workerOptions(lockMs),
      runRetryDelay: RETRY_MS,
      ...(telemetry && { telemetry }),
    });
    this.#worker.on('active', (job) => this.#onTaken(job));
    this.#worker.on('completed', () => {
      metrics.jobsFinished.inc({ result: 'acknowledged' });
      this.#onProgress();
    });
    this.#worker.on('failed', (job, err) => {
      this.#forgetGone();
      metrics.jobsFinished.inc({ result: 'failed' });
      log.error({ event: 'job_failed', jobId: job?.id, err }, 'a job failed because of a bug; its data stays in Redis');
    });
    this.#worker.on('error', (error) => this.#onError(error));
    this.#work = new WorkInProgress({ concurrency, maxData: maxDataInWork }, (bound) => {
      this.#worker.concurrency = bound;
    });
  }

  get state() {
    return {
      /** When the worker last acknowledged a job, or took a job while it had none, in epoch milliseconds. */
      lastProgressAt: this.#lastProgressAt,
      unacknowledged: this.#unacknowledged,
      /** The latest error of the queue since the last acknowledgement, if any. */
      queueError: this.#queueError,
      isWaiting: this.#outage.isOn,
    };
  }

  run(): void {
    this.#worker.run().catch((error: unknown) => {
      this.#options.log.fatal({ event: 'worker_stopped', err: error }, 'the worker has stopped taking jobs');
      throw error;
    });
  }

  /** Takes no more jobs. Resolves when every job in progress is acknowledged or back in the queue. */
  async close(): Promise<void> {
    await this.#worker.close();
    this.#options.connection.disconnect();
  }

  /** Called for each fetched job, before BullMQ decides whether to fetch another. */
  #onTaken(job: Job<string, void>): void {
    this.#outage.recovered();
    if (this.#unacknowledged === 0) this.#lastProgressAt = Date.now();
    this.#unacknowledged += 1;
    this.#options.metrics.jobsTaken.inc();
    this.#work.begin(job.data.length);
  }

  #onProgress(): void {
    this.#lastProgressAt = Date.now();
    this.#unacknowledged = 0;
    this.#queueError = undefined;
  }

  /**
   * Resets the count of unacknowledged jobs if no job is in progress, for example because a job failed. This is not progress, so it does
   * not update `lastProgressAt`. While Redis rejects calls, jobs only seem to leave, so the count stays.
   */
  #forgetGone(): void {
    if (this.#work.isEmpty && this.#queueError === undefined) this.#unacknowledged = 0;
  }

  /** Handles an `error` event. BullMQ emits such events for many conditions, but only connection errors mean an outage. */
  #onError(error: Error & { readonly code?: unknown }): void {
    if (isConnectionError(error)) {
      // An empty queue yields no job to signal recovery, so ping: it resolves once Redis is back.
      if (!this.#outage.isOn) {
        this.#options.connection.ping().then(
          () => this.#outage.recovered(),
          () => undefined,
        );
      }
      this.#outage.failed(error);
    } else if (typeof error.code === 'number') {
      // One of BullMQ's scripts rejected a call. Usually the lock was lost, and another worker has the job.
      this.#forgetGone();
      this.#options.log.debug({ event: 'queue_refusal', err: error }, 'the queue rejected a call');
    } else {
      this.#queueError = error.message;
      this.#logQueueError(error);
    }
  }

  async #process(job: Job<string, void>, token: string | undefined): Promise<void> {
    const { givesUp, metrics } = this.#options;
    const data = job.data.length;
    try {
      if (await this.#store(job)) return;
      await this.#defer(job, token);
    } catch (error) {
      if (!givesUp.aborted || error instanceof DelayedError) throw error;
      await job.moveToWait(token);
      metrics.jobsFinished.inc({ result: 'returned' });
      throw new WaitingError();
    } finally {
      this.#work.end(data);
    }
  }

  /** Stores the events of a job. Returns false if the job must wait in the queue, because too many other late jobs are in progress. */
  async #store(job: Job<string, void>): Promise<boolean> {
    const { closedBefore, givesUp, lanes, preparer } = this.#options;
    // During a shutdown, return the job at once. There may be thousands of jobs, and only two seconds to return all of them.
    givesUp.throwIfAborted();
    const now = Date.now();
    const span = trace.getActiveSpan()?.spanContext();
    const { data } = job;
    const queued = { id: job.id ?? '', receivedAt: data === '' ? now : receivedAt(job), span, data };
    const split = lanes.split(preparer.prepare(queued, now, closedBefore()), now);
    // Release the memory. Only the rows are needed from here on.
    job.data = '';
    if (split.late.length === 0) await lanes.add(split);
    else if (this.#work.hasRoomForLate) await this.#work.asLate(data.length, () => lanes.add(split));
    // If the local clock is wrong, a job cannot be deferred, so store it now. Its data still counts as current, so memory stays bounded.
    else if (await this.#isClockOff()) await lanes.add(split);
    else {
      // Store the current events now, so that late events, perhaps of another account, do not delay them. The deferred job comes back with
      // all its events, but an event that is stored twice counts once.
      if (job.attemptsStarted === 1) await lanes.add({ current: split.current.map(onlyAccepted), late: [] });
      return false;
    }
    return true;
  }

  /** Returns the job to the queue with a delay, so that other jobs can take its place. The delay grows with each attempt. */
  async #defer(job: Job<string, void>, token: string | undefined): Promise<never> {
    await job.moveToDelayed(Date.now() + backOffMs(Math.max(0, job.attemptsStarted - 1), DEFERRAL), token);
    this.#options.metrics.jobsFinished.inc({ result: 'deferred' });
    this.#onProgress();
    throw new DelayedError();
  }

  /**
   * Compares the local clock with the clock of Redis, which all workers share. BullMQ delays by the local clock, so a clock that is days
   * ahead would hide the job from all workers for days.
   */
  async #isClockOff(): Promise<boolean> {
    const [seconds] = await this.#options.connection.time();
    return Math.abs(Number(seconds) * 1000 - Date.now()) > TOLERATED_CLOCK_MS;
  }
}

/** Drops the rejections. The next attempt checks all events again, and may accept an event whose timestamp was in the future. */
function onlyAccepted({ prepared }: Slice): Slice {
  return { prepared: { ...prepared, rejected: [] } };
}

/** Returns when the job was added, according to the producer's clock. Producers can write any value, so an impossible value becomes 0. */
function receivedAt({ timestamp }: Pick<Job, 'timestamp'>): EpochMs {
  return timestamp >= 0 && timestamp <= LATEST_RECEIPT ? timestamp : 0;
}
