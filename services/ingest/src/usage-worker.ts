/**
 * Takes jobs from the queue and acknowledges each only after all its rows are durable.
 *
 * Crash order for one job: taken → checked and priced → stored (steps 1 to 5 of `store()` in event-store.ts) →
 * acknowledged (step 6). A crash before the acknowledgement leaves the job with an expiring lock; any worker takes it
 * again, and inserting its rows twice is harmless.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, jobIdIn, tooManyBytes, tooManyValues } from '@meterline/catalog';
import type { PayloadPart } from '@meterline/warehouse';
import { trace } from '@opentelemetry/api';
import { DelayedError, type Job, type Telemetry, WaitingError } from 'bullmq';
import type { Logger } from 'pino';
import { Budget, type Claim } from './budget.js';
import type { Intake, Pricer } from './intake.js';
import { JobPlaces } from './job-places.js';
import { INLINE_BYTES } from './job-reader.js';
import type { ShortWay } from './many-jobs-worker.js';
import type { IngestMetrics } from './metrics.js';
import { keepOversized } from './oversized.js';
import type { PlainJob } from './plain-jobs.js';
import { type QueueConnection, readNote } from './queue-connection.js';
import { QueueOutage } from './queue-outage.js';
import { openQueueWorker } from './queue-worker.js';
import { bytesOf, type JobData, type RawDataWorker, receivedAt } from './raw-data-worker.js';
import type { ShardLanes, ShardPart } from './shard-lanes.js';

/** How long a job that would hold up others waits for its turn before it is put back into the queue, and for how long. */
const PATIENCE_MS = 250;
/** Of the slots, how many the jobs of one shard may have: while it is slow, the rest is for others. */
const SHARD_SHARE = 0.75;
const FIRST_DEFERRAL_MS = 2_000;
const LONGEST_DEFERRAL_MS = 15_000;
/** Of a job whose shard is away. Any number of them may wait so, and each costs Redis something when it comes round. */
const LONGEST_AWAY_MS = 120_000;
const TOLERATED_CLOCK_MS = 10_000;

export interface UsageWorkerOptions {
  /** Is the worker's own: it closes it. */
  readonly connection: QueueConnection;
  readonly prefix: string;
  /** Which queue of several it is: jobs of two may have the same id. */
  readonly shard: number;
  /** It falls when another queue is found, which has its share from then on. */
  readonly concurrency: () => number;
  /** About how much job data may be in work at once; see {@link UsageWorker}. It falls likewise. */
  readonly maxBytesInWork: () => number;
  /** Whether many jobs are taken with one command; otherwise as BullMQ's worker takes them. */
  readonly takesMany: boolean;
  /** Told when they are taken as BullMQ's worker takes them nevertheless. */
  readonly onUnknownScripts: () => void;
  /** One turn for all workers of the process. */
  readonly oversized: Budget;
  readonly lanes: ShardLanes;
  readonly keepPayloadPart: (part: PayloadPart) => Promise<void>;
  readonly pricer: Pricer;
  /** Events before this instant are refused. */
  readonly closedBefore: () => EpochMs;
  /** Aborted when a shutdown no longer waits for ClickHouse. */
  readonly givesUp: AbortSignal;
  readonly metrics: IngestMetrics;
  /** Undefined when jobs are not traced. */
  readonly telemetry: Telemetry | undefined;
  readonly log: Logger;
}

/** A job goes back into the queue: others of its kind are before it, or its shard is away. */
interface Deferral {
  readonly longestMs: number;
}

/**
 * Memory stays bounded whatever the size of jobs and however long ClickHouse is away: no more jobs are
 * fetched than its concurrency, which follows the size of the jobs that arrive (`JobPlaces`). Those that were under way before it had
 * followed come without their data if that is large; it is fetched when there is room. A job that is too large to be read
 * passes through a piece at a time, one such job at a time; others of that kind go back into the queue meanwhile.
 */
export class UsageWorker {
  readonly #options: UsageWorkerOptions;
  readonly #worker: RawDataWorker;
  readonly #places: JobPlaces;
  readonly #outage: QueueOutage;
  readonly #largeBytes: Budget;
  readonly #lateJobs: Budget;
  /** Jobs with rows for each shard; empty on one server. */
  readonly #shardJobs: readonly Budget[];
  #lastProgressAt = Date.now();

  constructor(options: UsageWorkerOptions) {
    this.#options = options;
    this.#places = new JobPlaces(options);
    this.#largeBytes = new Budget(options.maxBytesInWork);
    // The other half of the slots is for jobs whose events are current.
    this.#lateJobs = new Budget(() => Math.floor(this.#places.most / 2));
    const { count: shards } = options.lanes;
    const ofOneShard = () => Math.ceil(this.#places.most * SHARD_SHARE);
    this.#shardJobs = Array.from({ length: shards > 1 ? shards : 0 }, () => new Budget(ofOneShard));
    const { connection, prefix, takesMany, onUnknownScripts, telemetry, log } = options;
    const process = (job: Job<JobData, void>, token: string | undefined) => this.#process(job, token);
    const concurrency = this.#places.now;
    const shortWay: ShortWay = {
      taken: (jobs) => this.#onJobsTaken(jobs),
      begin: (job, end) => this.#begin(job, end),
      acknowledged: ({ length }) => options.metrics.jobsFinished.inc({ result: 'acknowledged' }, length),
    };
    const settings = { connection, prefix, concurrency, takesMany, onUnknownScripts, telemetry, log };
    this.#worker = openQueueWorker({ ...settings, process, shortWay });
    this.#outage = new QueueOutage(this.#worker, connection, log);
    this.#worker.on('active', (job) => this.#onJobsTaken([readNote(job.progress)]));
    this.#worker.on('drained', () => this.#places.foundNoMore());
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
    return this.#outage.isOn;
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
    this.#outage.close();
    this.#options.connection.redis.disconnect();
  }

  /** BullMQ tells it of each job that it has fetched, before it decides whether to fetch another. */
  #onJobsTaken(jobs: readonly Pick<PlainJob, 'bytes'>[]): void {
    this.#outage.recovered();
    this.#lastProgressAt = Date.now();
    this.#options.metrics.jobsTaken.inc(jobs.length);
    for (const { bytes } of jobs) this.#places.taken(bytes);
    this.#worker.concurrency = this.#places.now;
  }

  /** The short way of a job that is as producers write it, on one server, and not late: its rows go into the next insert. */
  #begin({ id, timestamp, data }: PlainJob, end: (isStored: boolean) => void): boolean {
    const { givesUp, lanes, log, pricer, shard } = this.#options;
    if (!data || lanes.count > 1) return false;
    const queued = { id: jobIdIn(shard, id), receivedAt: receivedAt({ timestamp }) };
    const now = Date.now();
    const intake = pricer.priceUsualJob(queued, data, now, this.#options.closedBefore());
    const ending = {
      resolve: () => {
        this.#places.ended();
        this.#lastProgressAt = Date.now();
        end(true);
      },
      reject: (err: unknown) => {
        if (!givesUp.aborted) log.error({ event: 'job_not_stored', jobId: id, err }, 'A job is stored once more');
        this.#places.ended();
        end(false);
      },
    };
    if (!intake || !lanes.addCurrent(intake, now, ending)) return false;
    this.#places.begun();
    this.#worker.concurrency = this.#places.now;
    return true;
  }

  async #process(job: Job<JobData, void>, token: string | undefined): Promise<void> {
    this.#places.begun();
    this.#worker.concurrency = this.#places.now;
    this.#reportUnreadable(job);
    const claims: Claim[] = [];
    let deferral: Deferral | undefined;
    try {
      deferral = await this.#store(job, claims);
    } catch (error) {
      if (!this.#options.givesUp.aborted) throw error;
      await job.moveToWait(token);
      this.#options.metrics.jobsFinished.inc({ result: 'returned' });
      throw new WaitingError();
    } finally {
      for (const claim of claims) claim.release();
      this.#places.ended();
    }
    if (deferral) await this.#defer(job, token, deferral);
    this.#lastProgressAt = Date.now();
  }

  /** @returns what the job must wait for; undefined when it is stored */
  async #store(job: Job<JobData, void>, claims: Claim[]): Promise<Deferral | undefined> {
    // Nothing is stored any more: it goes back at once. There may be thousands, and a shutdown has two seconds for them.
    this.#options.givesUp.throwIfAborted();
    const intake = await this.#intake(job, claims);
    const { lanes } = this.#options;
    const parts = intake && lanes.split(intake, Date.now());
    if (parts && lanes.mustWait(parts)) return { longestMs: LONGEST_AWAY_MS };
    if (!parts || !(await this.#mayEnter(parts, claims))) return { longestMs: LONGEST_DEFERRAL_MS };
    await lanes.add(parts);
    return undefined;
  }

  /** @returns undefined when the job must wait for others of its kind */
  async #intake(job: Job<JobData, void>, claims: Claim[]): Promise<Intake | undefined> {
    const { connection, keepPayloadPart, pricer, shard } = this.#options;
    const span = trace.getActiveSpan()?.spanContext();
    const queued = { id: jobIdIn(shard, job.id), receivedAt: receivedAt(job), span };
    const key = this.#worker.toKey(job.id ?? '');
    const { bytes } = readNote(job.progress);

    const oversized = tooManyBytes(bytes);
    if (oversized) {
      const turn = await this.#options.oversized.takeWithin(1, PATIENCE_MS);
      if (!turn) return undefined;
      claims.push(turn);
      const read = () => connection.dataPieces(key, bytes);
      return keepOversized({ job: queued, read }, oversized, keepPayloadPart);
    }

    if (bytes > INLINE_BYTES) claims.push(await this.#largeBytes.take(bytes));
    const isApart = bytes > INLINE_BYTES || job.data.length === 0;
    const data = isApart ? await connection.redis.hgetBuffer(key, 'data') : bytesOf(job.data);
    if (data === null) throw new Error('the job has been removed from the queue');
    // The rows are all that is needed from here on.
    job.data = '';
    const [now, closedBefore] = [Date.now(), this.#options.closedBefore()];
    const usual = pricer.priceUsualJob(queued, data, now, closedBefore);
    if (usual) return usual;
    const text = data.toString();
    const crowded = tooManyValues(text);
    if (!crowded) return pricer.priceJob({ ...queued, data: text }, now, closedBefore);
    return keepOversized({ job: queued, read: () => [Buffer.from(text)] }, crowded, keepPayloadPart);
  }

  /** A late job is stored slowly. It keeps a place among those of its kind, and none of those that bound current jobs. */
  async #mayEnter(parts: readonly ShardPart[], claims: Claim[]): Promise<boolean> {
    if (parts.some(({ late }) => late.length > 0)) {
      const place = await this.#lateJobs.takeWithin(1, PATIENCE_MS);
      if (!place) return false;
      for (const claim of claims.splice(0)) claim.release();
      claims.push(place);
    }
    for (const { shard } of parts) {
      const place = await this.#shardJobs[shard]?.takeWithin(1, PATIENCE_MS);
      if (place) claims.push(place);
      else if (this.#shardJobs.length > 0) return false;
    }
    return true;
  }

  /**
   * Puts the job behind those that wait, each time for longer, so that a slot is free for others. BullMQ writes down the end of
   * the delay by this process's clock: one that is days ahead would hide the job from the others for days. With such a clock
   * the job keeps its slot for a moment instead.
   */
  async #defer(job: Job<JobData, void>, token: string | undefined, { longestMs }: Deferral): Promise<never> {
    if (await this.#isClockOff()) {
      await delay(FIRST_DEFERRAL_MS / 2);
      await job.moveToWait(token);
      this.#options.metrics.jobsFinished.inc({ result: 'deferred' });
      throw new WaitingError();
    }
    const longest = Math.min(longestMs, FIRST_DEFERRAL_MS * 2 ** Math.max(0, job.attemptsStarted - 1));
    await job.moveToDelayed(Date.now() + Math.ceil(longest * (0.5 + Math.random() / 2)), token);
    this.#options.metrics.jobsFinished.inc({ result: 'deferred' });
    throw new DelayedError();
  }

  /** Compared with that of Redis, which all workers share. */
  async #isClockOff(): Promise<boolean> {
    const [seconds] = await this.#options.connection.redis.time();
    return Math.abs(Number(seconds) * 1000 - Date.now()) > TOLERATED_CLOCK_MS;
  }

  #reportUnreadable(job: Job<JobData>): void {
    const { unreadable } = readNote(job.progress);
    if (unreadable.length === 0) return;
    this.#options.metrics.jobsUnreadable.inc();
    this.#options.log.warn(
      { event: 'job_unreadable', jobId: job.id, fields: unreadable },
      'BullMQ cannot read these fields of a job; it was taken without them',
    );
  }
}
