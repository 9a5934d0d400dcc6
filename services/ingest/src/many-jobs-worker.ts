/**
 * BullMQ's worker with a loop of our own, which takes and acknowledges many jobs with one command.
 *
 * Plain jobs are taken and acknowledged by two scripts of our own (plain-jobs.ts). Everything else is done by BullMQ: it takes and
 * ends all other jobs, waits for jobs (`getNextJob`), renews locks and finds those that are lost, and ends every job that was not simply
 * stored: deferred, given back, or failed (`processJob`). A plain job begins the short way (`ShortWay`), without an object of BullMQ and
 * a promise of its own; if it cannot take it, it takes the way of all jobs, from the beginning.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isNotConnectionError, type Job, type Processor, type WorkerOptions } from 'bullmq';
import { MOST_AT_ONCE, type PlainJob, PlainJobs, type Taken } from './plain-jobs.js';
import { isConnectionError, type QueueConnection } from './queue-connection.js';
import { type JobData, KEPT_COMPLETED_JOBS, RawDataWorker } from './raw-data-worker.js';

/** An empty queue answers at once only while something in it changes. */
const LONG_ENOUGH_MS = 5;

/** What becomes of plain jobs. */
export interface ShortWay {
  taken(jobs: readonly PlainJob[]): void;
  /**
   * @param end to be told once, later: the job is durable, or has to take the way of all jobs
   * @returns false when it takes that way at once
   */
  begin(job: PlainJob, end: (isStored: boolean) => void): boolean;
  acknowledged(jobs: readonly PlainJob[]): void;
}

export interface ManyJobsOptions {
  readonly connection: QueueConnection;
  readonly shortWay: ShortWay;
  /** Told when the scripts of this BullMQ are unknown, so that BullMQ's own loop runs. */
  readonly onUnknownScripts: () => void;
}

export class ManyJobsWorker extends RawDataWorker {
  readonly #options: ManyJobsOptions;
  readonly #plain: PlainJobs;
  /** Asked for while the jobs before them begin, so that Redis and this process work at the same time. */
  #next: Promise<Taken> | undefined;
  /** Taken and not stored yet. */
  #inWork = 0;
  /** Not acknowledged yet. */
  #unfinished = 0;
  /** Stored in this turn of the event loop. */
  #stored: PlainJob[] = [];
  #onFinished: () => void = () => undefined;
  #tokens = 0;
  readonly #faults = new WeakMap<Job, unknown>();

  constructor(name: string, process: Processor<JobData, void>, options: WorkerOptions, many: ManyJobsOptions) {
    super(name, process, options);
    this.#options = many;
    this.#plain = new PlainJobs({
      connection: many.connection,
      keyOf: (key) => this.toKey(key),
      newToken: () => this.#newToken(),
      lockMs: this.opts.lockDuration ?? 0,
    });
  }

  /** As BullMQ's, with another loop. */
  override async run(): Promise<void> {
    await this.waitUntilReady().catch(() => undefined);
    if (this.closing) return;
    if (!this.#options.connection.knowsScripts) {
      this.#options.onUnknownScripts();
      return super.run();
    }
    if (this.running) throw new Error('the worker is running already');
    this.running = true;
    try {
      await this.startStalledCheckTimer();
      this.lockManager.start();
      this.mainLoopRunning = this.#takeJobs();
      await this.mainLoopRunning;
    } finally {
      this.running = false;
    }
  }

  async #takeJobs(): Promise<void> {
    let hasMore = false;
    while (!this.closing && !this.paused) {
      const room = Math.min(this.concurrency - this.#inWork, MOST_AT_ONCE);
      // What Redis has given begins also when larger jobs have taken its room: nobody renews the locks of jobs that wait here.
      if (room <= 0 && !this.#next) await this.#someFinished();
      else hasMore = await this.#retried(() => (hasMore ? this.#takeMany(room) : this.#waitForOne()));
    }
    // Redis may have given them already.
    if (this.#next) await this.#retried(() => this.#takeMany(0));
    while (this.#unfinished > 0) await this.#someFinished();
  }

  /** Many jobs are finished in one turn of the event loop, and their places are filled with one command. */
  async #someFinished(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onFinished = resolve;
    });
    await nextTurn();
  }

  /** BullMQ waits while the queue is empty, and heeds delays and limits. @returns whether there was one */
  async #waitForOne(): Promise<boolean> {
    const started = performance.now();
    const job: Job<JobData, void> | undefined = await this.getNextJob(this.#newToken());
    if (job) this.#work(job);
    else if (performance.now() - started < LONG_ENOUGH_MS) await this.delay(LONG_ENOUGH_MS);
    return job !== undefined;
  }

  /** @returns whether there were any */
  async #takeMany(room: number): Promise<boolean> {
    const asked = this.#next ?? this.#plain.take(room);
    this.#next = undefined;
    const { jobs, others } = await asked;
    if (jobs.length === 0) return this.#takeOthers(Math.min(others, room));
    this.#askForNext(this.concurrency - this.#inWork - jobs.length);
    this.#options.shortWay.taken(jobs);
    for (const job of jobs) this.#begin(job);
    return true;
  }

  /** @param room beside the jobs that begin now */
  #askForNext(room: number): void {
    if (room <= 0 || this.closing || this.paused) return;
    this.#next = this.#plain.take(Math.min(room, MOST_AT_ONCE));
    // An error is told where the answer is used.
    this.#next.catch(() => undefined);
  }

  /** What one command has taken is not lost to another that failed. @returns whether there were any */
  async #takeOthers(count: number): Promise<boolean> {
    const token = this.#newToken();
    const take = () => this.moveToActive(token, this.opts.name);
    const answers = await Promise.allSettled(Array.from({ length: count }, take));
    let found = false;
    for (const answer of answers) {
      if (answer.status === 'rejected') this.emit('error', asError(answer.reason));
      else if (answer.value) {
        this.#work(answer.value);
        found = true;
      }
    }
    return found;
  }

  #newToken(): string {
    this.#tokens += 1;
    return `${this.id}:${this.#tokens}`;
  }

  /** As BullMQ does it: an error is told, and it goes on. */
  async #retried(take: () => Promise<boolean>): Promise<boolean> {
    try {
      return await take();
    } catch (error) {
      if (!this.closing && !this.paused) {
        this.emit('error', asError(error));
        await this.delay(this.opts.runRetryDelay);
      }
      // The command may have taken jobs: the next one asks for them.
      return true;
    }
  }

  #begin(job: PlainJob): void {
    this.lockManager.trackJob(job.id, job.token, Date.now());
    this.#inWork += 1;
    this.#unfinished += 1;
    // Its data is not held while it waits; if it is needed once more, it is read by itself.
    const rest = { ...job, data: undefined };
    const end = (isStored: boolean) => {
      if (isStored) this.#onStored(rest);
      else void this.#process(this.plainJob(rest), rest);
    };
    if (!this.#beginsShort(job, end)) void this.#process(this.plainJob(job), rest);
  }

  /** What is wrong with a job is found on the other way, too, and fails it there. */
  #beginsShort(job: PlainJob, end: (isStored: boolean) => void): boolean {
    try {
      return this.#options.shortWay.begin(job, end);
    } catch (error) {
      this.emit('error', asError(error));
      return false;
    }
  }

  /** A job that BullMQ has taken. */
  #work(job: Job<JobData, void>): void {
    this.lockManager.trackJob(job.id ?? '', job.token ?? '', job.processedOn ?? Date.now());
    this.#inWork += 1;
    this.#unfinished += 1;
    void this.#process(job);
  }

  /** The way of all jobs. */
  async #process(job: Job<JobData, void>, plain?: PlainJob): Promise<void> {
    const isStored = await this.#isStored(job);
    if (isStored && plain) {
      this.#onStored(plain);
      return;
    }
    this.#inWork -= 1;
    if (isStored) await this.#acknowledgeAlone(job);
    this.#onAcknowledged(1);
  }

  /** Otherwise BullMQ has ended it. */
  async #isStored(job: Job<JobData, void>): Promise<boolean> {
    const { token = '' } = job;
    try {
      await this.processFn(job, token);
      return true;
    } catch (fault) {
      this.#faults.set(job, fault);
      await this.processJob(job, token, () => false).catch((error: unknown) => this.emit('error', asError(error)));
      return false;
    }
  }

  /** What `processJob` calls. */
  protected override async callProcessJob(job: Job<JobData, void>, token: string): Promise<void> {
    if (this.#faults.has(job)) throw this.#faults.get(job);
    return super.callProcessJob(job, token);
  }

  /** Its place is free: the command that fills it comes after the one that acknowledges it, together with those stored with it. */
  #onStored(job: PlainJob): void {
    this.#inWork -= 1;
    this.#stored.push(job);
    if (this.#stored.length === 1) setImmediate(() => this.#acknowledgeStored());
    this.#onFinished();
  }

  #onAcknowledged(jobs: number): void {
    this.#unfinished -= jobs;
    this.#onFinished();
  }

  /** Of hundreds that are stored at once, a few stay readable; the others need not be kept until they would be removed. */
  #acknowledgeStored(): void {
    const jobs = this.#stored;
    this.#stored = [];
    for (let from = 0; from < jobs.length; from += MOST_AT_ONCE) {
      const some = jobs.slice(from, from + MOST_AT_ONCE);
      void this.#acknowledge(some, Math.max(0, KEPT_COMPLETED_JOBS - (jobs.length - from - some.length)));
    }
  }

  async #acknowledge(jobs: readonly PlainJob[], kept: number): Promise<void> {
    for (const { id } of jobs) this.lockManager.untrackJob(id);
    let left = jobs;
    try {
      left = await this.#untilConnected(() => this.#plain.acknowledge(jobs, kept));
      this.#options.shortWay.acknowledged(left.length === 0 ? jobs : jobs.filter((job) => !left.includes(job)));
    } catch (error) {
      this.emit('error', asError(error));
    }
    await Promise.all(left.map((job) => this.#acknowledgeAlone(this.plainJob(job))));
    this.#onAcknowledged(jobs.length);
  }

  async #acknowledgeAlone(job: Job<JobData, void>): Promise<void> {
    const { id = '', token = '', opts } = job;
    this.lockManager.untrackJob(id);
    const { removeOnComplete: removal = false } = opts;
    try {
      await this.#untilConnected(() => this.backend.moveToCompleted(job, undefined, removal, token, false));
      this.emit('completed', job, undefined, 'active');
    } catch (error) {
      this.emit('error', asError(error));
    }
  }

  async #untilConnected<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const isAway = error instanceof Error && (!isNotConnectionError(error) || isConnectionError(error));
        if (!isAway || this.closed) throw error;
        await this.delay(this.opts.runRetryDelay);
      }
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
