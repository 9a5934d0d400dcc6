/**
 * BullMQ's worker with a loop of our own, which takes and acknowledges many jobs with one command.
 *
 * Everything that happens to a job in Redis stays BullMQ's own: its scripts, which the connection runs many at a time
 * (script-batch.ts), and through them delayed, prioritised, limited and paused jobs, parents, duplicates, stalled jobs, locks and
 * events. BullMQ also waits for jobs (`getNextJob`), renews locks, and ends every job that was not simply stored: deferred, given back,
 * or failed (`processJob`). What is left to this loop is how many jobs to ask for, to begin each at once, and to acknowledge it.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isNotConnectionError, type Job, type JobJson, type Processor, type WorkerOptions } from 'bullmq';
import { isConnectionError, type QueueConnection } from './queue-connection.js';
import { type JobData, KEPT_COMPLETED_JOBS, RawDataWorker } from './raw-data-worker.js';

/** So that an answer stays small, and Redis answers others in between. */
const MOST_TAKEN = 256;
/** An empty queue answers at once only while something in it changes. */
const LONG_ENOUGH_MS = 5;

export interface ManyJobsOptions {
  readonly connection: QueueConnection;
  /** Told when the scripts of this BullMQ are unknown, so that BullMQ's own loop runs. */
  readonly onUnknownScripts: () => void;
}

export class ManyJobsWorker extends RawDataWorker {
  readonly #options: ManyJobsOptions;
  /** Taken and not stored yet. */
  #inWork = 0;
  /** Not acknowledged yet. */
  #unfinished = 0;
  #onFinished: () => void = () => undefined;
  #tokens = 0;
  /** In this turn of the event loop. */
  #stored = 0;
  #countStored: Promise<number> | undefined;
  readonly #faults = new WeakMap<Job, unknown>();

  constructor(name: string, process: Processor<JobData, void>, options: WorkerOptions, many: ManyJobsOptions) {
    super(name, process, options);
    this.#options = many;
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
      const room = Math.min(this.concurrency - this.#inWork, MOST_TAKEN);
      if (room <= 0) {
        await this.#someFinished();
        continue;
      }
      const jobs = await this.#retried(() => (hasMore ? this.#takeMany(room) : this.#waitForOne()));
      hasMore = jobs.length > 0;
      for (const job of jobs) void this.#work(job);
    }
    while (this.#unfinished > 0) await this.#someFinished();
  }

  /** Many jobs are finished in one turn of the event loop, and their places are filled with one command. */
  async #someFinished(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onFinished = resolve;
    });
    await nextTurn();
  }

  /** BullMQ waits while the queue is empty, and heeds delays and limits. */
  async #waitForOne(): Promise<Job<JobData, void>[]> {
    const started = performance.now();
    const job: Job<JobData, void> | undefined = await this.getNextJob(this.#newToken());
    if (job) return [job];
    if (performance.now() - started < LONG_ENOUGH_MS) await this.delay(LONG_ENOUGH_MS);
    return [];
  }

  /** Fewer than that when there are no more, or when they are large. What one command has taken is not lost to another that failed. */
  async #takeMany(count: number): Promise<Job<JobData, void>[]> {
    const token = this.#newToken();
    const take = () => this.backend.moveToActive(token, this.opts.name);
    const answers = await Promise.allSettled(Array.from({ length: count }, take));
    return answers.flatMap((answer) => {
      if (answer.status === 'rejected') {
        this.emit('error', asError(answer.reason));
        return [];
      }
      const [json, id] = answer.value;
      return json ? [this.#taken(json, id, token)] : [];
    });
  }

  #taken(json: JobJson, id: string, token: string): Job<JobData, void> {
    const job = this.createJob(json, id);
    job.token = token;
    this.emit('active', job, 'waiting');
    return job;
  }

  #newToken(): string {
    this.#tokens += 1;
    return `${this.id}:${this.#tokens}`;
  }

  /** As BullMQ does it: an error is told, and it goes on. */
  async #retried(take: () => Promise<Job<JobData, void>[]>): Promise<Job<JobData, void>[]> {
    try {
      return await take();
    } catch (error) {
      if (!this.closing && !this.paused) {
        this.emit('error', asError(error));
        await this.delay(this.opts.runRetryDelay);
      }
      return [];
    }
  }

  async #work(job: Job<JobData, void>): Promise<void> {
    const { id = '', token = '' } = job;
    this.#inWork += 1;
    this.#unfinished += 1;
    let isInWork = true;
    try {
      if (await this.#process(job, id, token)) {
        // Its place is free: the command that fills it comes after the one that acknowledges it.
        this.#inWork -= 1;
        isInWork = false;
        await this.#acknowledge(job, id, token);
      }
    } catch (error) {
      this.emit('error', asError(error));
    }
    this.#unfinished -= 1;
    if (isInWork) this.#inWork -= 1;
    this.#onFinished();
  }

  /** @returns whether the job is stored; otherwise BullMQ has ended it */
  async #process(job: Job<JobData, void>, id: string, token: string): Promise<boolean> {
    this.lockManager.trackJob(id, token, job.processedOn ?? Date.now());
    try {
      await this.processFn(job, token);
      return true;
    } catch (error) {
      this.#faults.set(job, error);
      await this.processJob(job, token, () => false);
      return false;
    }
  }

  /** What `processJob` calls. */
  protected override async callProcessJob(job: Job<JobData, void>, token: string): Promise<void> {
    if (this.#faults.has(job)) throw this.#faults.get(job);
    return super.callProcessJob(job, token);
  }

  async #acknowledge(job: Job<JobData, void>, id: string, token: string): Promise<void> {
    this.lockManager.untrackJob(id);
    const removal = (await this.#isAmongTheLast()) ? job.opts.removeOnComplete : { count: 0 };
    for (;;) {
      try {
        await this.backend.moveToCompleted(job, undefined, removal ?? false, token, false);
        this.emit('completed', job, undefined, 'active');
        return;
      } catch (error) {
        const isAway = error instanceof Error && (!isNotConnectionError(error) || isConnectionError(error));
        if (!isAway || this.closed) throw error;
        await this.delay(this.opts.runRetryDelay);
      }
    }
  }

  /** Of hundreds that are stored at once, a few stay readable; the others need not be kept until they would be removed. */
  async #isAmongTheLast(): Promise<boolean> {
    this.#stored += 1;
    const place = this.#stored;
    this.#countStored ??= this.#storedInThisTurn();
    return place > (await this.#countStored) - KEPT_COMPLETED_JOBS;
  }

  async #storedInThisTurn(): Promise<number> {
    await nextTurn();
    const count = this.#stored;
    this.#stored = 0;
    this.#countStored = undefined;
    return count;
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
