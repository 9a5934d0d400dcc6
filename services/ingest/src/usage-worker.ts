/**
 * Takes jobs from the queue and acknowledges each only after all its rows are durable.
 *
 * Crash order for one job: taken → checked and priced → stored (steps 1 to 4 of `store()` in event-store.ts) → acknowledged (step 5). A
 * crash before the acknowledgement leaves the job with an expiring lock; any worker takes it again, and inserting its rows twice is
 * harmless.
 */

import { backOffMs, type EpochMs, QUEUE_NAME } from '@meterline/catalog';
import { Outage, onceAMinute } from '@meterline/service';
import type { RedisClient } from '@meterline/service/access';
import { isConnectionError, workerOptions } from '@meterline/service/queue';
import { trace } from '@opentelemetry/api';
import { DelayedError, type Job, type JobJson, type Telemetry, WaitingError, Worker } from 'bullmq';
import type { Logger } from 'pino';
import type { Slice } from './batcher.js';
import type { Pricer } from './intake.js';
import type { Lanes, Split } from './lanes.js';
import type { IngestMetrics } from './metrics.js';

const RETRY_MS = 1_000;
/** How long a late job that finds too many of its kind in work is left in the queue: at first, and after some times. */
const DEFERRAL = { firstMs: 2_000, longestMs: 15_000 };
const TOLERATED_CLOCK_MS = 10_000;
/** A later time does not fit its column. */
const LATEST_RECEIPT: EpochMs = Date.UTC(2200, 0, 1);
/** Acknowledged jobs that stay readable in Redis, if their data is not much larger than that of most jobs. */
const KEPT_COMPLETED_JOBS = 20;
const LARGEST_KEPT_LENGTH = 4 * 1024 * 1024;

/** Leaves the data of a job as the text that Redis holds: it is parsed once, where it is checked, and need not be valid JSON. */
class RawJobWorker extends Worker<string, void> {
  protected override createJob(json: JobJson, jobId: string): Job<string, void> {
    // A schedule would send the same event for ever, which counts once; and no child of a flow makes an event invalid.
    const { data, repeatJobKey: _, deferredFailure: _failure, ...rest } = json;
    const job = super.createJob({ ...rest, data: '""' }, jobId);
    // BullMQ returns a job without a name, and makes up its data, if its hash was evicted or deleted.
    job.data = job.name === undefined ? '' : data;
    // A producer's options must not count here: keeping all completed jobs would fill Redis, and dropping failed ones would lose events.
    job.opts.removeOnComplete = { count: data.length <= LARGEST_KEPT_LENGTH ? KEPT_COMPLETED_JOBS : 0 };
    job.opts.removeOnFail = false;
    return job;
  }
}

export interface UsageWorkerOptions {
  /** Is the worker's own: it closes it. */
  readonly connection: RedisClient;
  readonly prefix: string;
  /** How many jobs may be in work at once. */
  readonly concurrency: number;
  /** How long it keeps a job after its death. A lock lost by mistake costs a second insert. */
  readonly lockMs: number;
  /** How much job data may be in work at once, in characters. One job more is always taken. */
  readonly maxDataInWork: number;
  readonly lanes: Pick<Lanes, 'split' | 'add'>;
  readonly pricer: Pricer;
  /** Events before this instant are rejected. */
  readonly closedBefore: () => EpochMs;
  /** Aborted when a shutdown no longer waits for ClickHouse. */
  readonly givesUp: AbortSignal;
  readonly metrics: IngestMetrics;
  /** Undefined when jobs are not traced. */
  readonly telemetry: Telemetry | undefined;
  readonly log: Logger;
}

/**
 * Memory stays bounded whatever the size of jobs and however long ClickHouse is away: while their data is more than its limit, no further
 * job is taken, and Redis refuses one that is larger than any job may be (`proto-max-bulk-len`).
 */
export class UsageWorker {
  readonly #options: UsageWorkerOptions;
  readonly #worker: RawJobWorker;
  readonly #outage: Outage;
  readonly #logQueueError: (err: Error) => void;
  #jobsInWork = 0;
  #dataInWork = 0;
  #lateJobs = 0;
  /** The data of the jobs that are stored late, which is not counted as in work any more. */
  #lateData = 0;
  #lastProgressAt = Date.now();
  /** Jobs that were taken since one was acknowledged. */
  #unacknowledged = 0;
  #queueError: string | undefined;
  /** Parents of flows, on their way back into the queue. */
  #returning = Promise.resolve();

  constructor(options: UsageWorkerOptions) {
    const { connection, prefix, concurrency, lockMs, telemetry, log, metrics } = options;
    this.#options = options;
    this.#outage = new Outage(log, 'Redis', 'jobs stay in the queue until it does');
    // The same error may come with every attempt to take a job.
    this.#logQueueError = onceAMinute((err) => {
      log.error({ event: 'queue_error', err }, 'The queue answered with an error');
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
      if (job && isParent(err)) this.#returning = this.#returning.then(() => this.#forgetChildren(job));
      else this.#onFailed(job, err);
    });
    this.#worker.on('error', (error) => this.#onError(error));
  }

  /** What tells whether it acknowledges jobs. */
  get state() {
    return {
      /** When a job was last acknowledged, or taken by a worker that had none, in epoch milliseconds. */
      lastProgressAt: this.#lastProgressAt,
      /** Jobs that were taken since one was acknowledged. */
      unacknowledged: this.#unacknowledged,
      /** What Redis has refused since a job was acknowledged, if it has. */
      queueError: this.#queueError,
      /** Whether Redis is away and the worker waits for its return. */
      isWaiting: this.#outage.isOn,
    };
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
    await this.#returning;
    this.#options.connection.disconnect();
  }

  /** The job of a flow whose children are not all done, or have failed. It is stored, and done when it comes again without them. */
  async #forgetChildren(job: Job<string, void>): Promise<void> {
    const key = this.#worker.toKey(job.id ?? '');
    try {
      await this.#options.connection.del(`${key}:dependencies`, `${key}:unsuccessful`);
      await job.retry('failed');
      this.#options.metrics.jobsFinished.inc({ result: 'returned' });
    } catch (err) {
      this.#onFailed(job, err);
    }
  }

  #onFailed(job: Job<string, void> | undefined, err: unknown): void {
    const { metrics, log } = this.#options;
    metrics.jobsFinished.inc({ result: 'failed' });
    log.error({ event: 'job_failed', jobId: job?.id, err }, 'A job failed: a defect of the worker');
  }

  /** BullMQ tells it of each job that it has fetched, before it decides whether to fetch another. */
  #onTaken(job: Job<string, void>): void {
    this.#outage.recovered();
    if (this.#unacknowledged === 0) this.#lastProgressAt = Date.now();
    this.#unacknowledged += 1;
    this.#options.metrics.jobsTaken.inc();
    this.#jobsInWork += 1;
    this.#dataInWork += job.data.length;
    this.#boundJobs();
  }

  #release(held: { data: number }): void {
    this.#dataInWork -= held.data;
    held.data = 0;
    this.#boundJobs();
  }

  #boundJobs(): void {
    const { concurrency, maxDataInWork } = this.#options;
    const isFull = this.#dataInWork > maxDataInWork;
    this.#worker.concurrency = isFull ? Math.min(concurrency, Math.max(1, this.#jobsInWork)) : concurrency;
  }

  #onProgress(): void {
    this.#lastProgressAt = Date.now();
    this.#unacknowledged = 0;
    this.#queueError = undefined;
  }

  /** A job that left without an acknowledgement is not in work any more. That is no progress, and none has left while Redis refuses to let it. */
  #forgetGone(): void {
    if (this.#jobsInWork === 0 && this.#queueError === undefined) this.#unacknowledged = 0;
  }

  /** BullMQ reports many things as errors. Only those of the connection mean an outage. */
  #onError(error: Error & { readonly code?: unknown }): void {
    if (isConnectionError(error)) {
      // While the queue is empty, no job shows that Redis is back, but a command that waits for it.
      if (!this.#outage.isOn) {
        this.#options.connection.ping().then(
          () => this.#outage.recovered(),
          () => undefined,
        );
      }
      this.#outage.failed(error);
    } else if (typeof error.code === 'number') {
      // A refusal by BullMQ's scripts. The usual one is a lost lock: another worker has the job then.
      this.#forgetGone();
      this.#options.log.debug({ event: 'queue_refusal', err: error }, 'The queue refused a call');
    } else {
      this.#queueError = error.message;
      this.#logQueueError(error);
    }
  }

  async #process(job: Job<string, void>, token: string | undefined): Promise<void> {
    const { givesUp, metrics } = this.#options;
    const held = { data: job.data.length };
    try {
      if (await this.#store(job, held)) return;
      await this.#defer(job, token);
    } catch (error) {
      if (!givesUp.aborted || error instanceof DelayedError) throw error;
      await job.moveToWait(token);
      metrics.jobsFinished.inc({ result: 'returned' });
      throw new WaitingError();
    } finally {
      this.#jobsInWork -= 1;
      this.#release(held);
    }
  }

  /** @returns false when the job must wait for other late ones */
  async #store(job: Job<string, void>, held: { data: number }): Promise<boolean> {
    const { closedBefore, concurrency, givesUp, lanes, maxDataInWork, pricer } = this.#options;
    // Nothing is stored any more: it goes back at once. There may be thousands, and a shutdown has two seconds for them.
    givesUp.throwIfAborted();
    const now = Date.now();
    const span = trace.getActiveSpan()?.spanContext();
    const queued = { id: job.id ?? '', receivedAt: job.data === '' ? now : receivedAt(job), span, data: job.data };
    const split = lanes.split(pricer.priceJob(queued, now, closedBefore()), now);
    // The rows are all that is needed from here on.
    job.data = '';
    if (split.late.length === 0) await lanes.add(split);
    // Late jobs take half of the places, and of the memory: the other half is for jobs whose events are current.
    else if (this.#lateJobs < concurrency / 2 && this.#lateData <= maxDataInWork) await this.#storeLate(split, held);
    // While the clock is off, the job cannot be put back. What it holds stays counted, so that no more is taken than there is memory for.
    else if (await this.#isClockOff()) await lanes.add(split);
    else {
      // Late events, perhaps of one account, must not delay the current ones of others. An event that is stored twice counts once.
      if (job.attemptsStarted === 1) await lanes.add({ current: split.current.map(onlyAccepted), late: [] });
      return false;
    }
    return true;
  }

  /** A late job is stored slowly. What it holds must not keep current ones from being taken. */
  async #storeLate(split: Split, held: { data: number }): Promise<void> {
    const { data } = held;
    this.#lateJobs += 1;
    this.#lateData += data;
    this.#release(held);
    try {
      await this.#options.lanes.add(split);
    } finally {
      this.#lateJobs -= 1;
      this.#lateData -= data;
    }
  }

  /** Puts the job behind those that wait, each time for longer, so that its place is free for others. */
  async #defer(job: Job<string, void>, token: string | undefined): Promise<never> {
    await job.moveToDelayed(Date.now() + backOffMs(Math.max(0, job.attemptsStarted - 1), DEFERRAL), token);
    this.#options.metrics.jobsFinished.inc({ result: 'deferred' });
    this.#onProgress();
    throw new DelayedError();
  }

  /**
   * Compared with that of Redis, which all workers share. BullMQ writes down the end of a delay by this process's clock: one that is days
   * ahead would hide the job from the others for days.
   */
  async #isClockOff(): Promise<boolean> {
    const [seconds] = await this.#options.connection.time();
    return Math.abs(Number(seconds) * 1000 - Date.now()) > TOLERATED_CLOCK_MS;
  }
}

/** Events are checked again at the next attempt, when one that came too early may be accepted. */
function onlyAccepted({ intake }: Slice): Slice {
  return { intake: { ...intake, rejected: [] } };
}

/** BullMQ does not let a job of a flow be completed while children are pending (-4), or when some have failed (-9). */
function isParent(error: Error & { readonly code?: unknown }): boolean {
  return error.code === -4 || error.code === -9;
}

/** When the queue took the job, by its producer's clock. A producer may write anything there: 0 if it cannot be right. */
function receivedAt({ timestamp }: Pick<Job, 'timestamp'>): EpochMs {
  return timestamp >= 0 && timestamp <= LATEST_RECEIPT ? timestamp : 0;
}
