/** What passes through the servers in a run: a producer, its queue, and the workers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { QUEUE_NAME } from '@meterline/catalog';
import { createRedisClient, type RedisClient } from '@meterline/service/access';
import { Queue } from 'bullmq';
import { type ServiceEnvironment, type ServiceProcess, startIngest, withConstants } from '../harness/services.js';
import { pause } from './waiting.js';

const RETRY_MS = 150;
const ANSWER_TIMEOUT_MS = 2_000;
const JOBS_AT_ONCE = 4;

/** Each attempt sends at most one command, so that the number of times a job may have been added is known. */
export const CAREFUL = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  commandTimeout: ANSWER_TIMEOUT_MS,
  connectTimeout: ANSWER_TIMEOUT_MS,
  retryStrategy: () => RETRY_MS,
};

/** A careful producer: a job whose `add` failed, or whose outcome is unknown, is sent again until one `add` succeeds. */
export class Producer {
  readonly #prefix: string;
  readonly #redis: RedisClient;
  readonly #jobs: readonly unknown[];
  readonly #attempts: number[];
  #sent = 0;

  constructor(redisUrl: string, prefix: string, jobs: readonly unknown[]) {
    this.#jobs = jobs;
    this.#attempts = jobs.map(() => 0);
    this.#prefix = prefix;
    this.#redis = createRedisClient(redisUrl, CAREFUL);
    // The same errors reject the running `add`.
    this.#redis.on('error', () => undefined);
  }

  /** The share of all jobs whose `add` has succeeded, from 0 to 1. */
  get sentShare(): number {
    return this.#sent / this.#jobs.length;
  }

  /** How often the job may have been added. */
  attempts(job: number): number {
    return this.#attempts[job] ?? 0;
  }

  /**
   * Sends every job, spread over some time. While Redis is down, jobs wait; they are sent when it is back.
   *
   * @throws AbortError
   */
  async send(spreadMs: number, signal: AbortSignal): Promise<void> {
    const queue = await this.#open(signal);
    const begun = Date.now();
    let next = 0;
    const sender = async () => {
      for (let job = next++; job < this.#jobs.length; job = next++) {
        const due = begun + (job / this.#jobs.length) * spreadMs;
        if (due > Date.now()) await pause(due - Date.now(), signal);
        await this.#send(job, queue, signal);
      }
    };
    await Promise.all(Array.from({ length: JOBS_AT_ONCE }, sender));
  }

  /** BullMQ's queue asks Redis for its version first, and is of no use when that has failed. */
  async #open(signal: AbortSignal): Promise<Queue> {
    for (;;) {
      const queue = new Queue(QUEUE_NAME, { connection: this.#redis, prefix: this.#prefix });
      queue.on('error', () => undefined);
      try {
        await queue.waitUntilReady();
        return queue;
      } catch {
        await pause(RETRY_MS, signal);
      }
    }
  }

  async #send(job: number, queue: Queue, signal: AbortSignal): Promise<void> {
    for (;;) {
      this.#attempts[job] = this.attempts(job) + 1;
      try {
        await queue.add('usage', this.#jobs[job]);
        this.#sent += 1;
        return;
      } catch {
        await pause(RETRY_MS, signal);
      }
    }
  }

  /** Closes the connection at once, whether or not Redis answers. */
  disconnect(): void {
    this.#redis.disconnect();
  }
}

/** What a run itself sees of its queue, on a connection that waits while Redis is away. */
export class QueueView {
  readonly #redis: RedisClient;
  readonly #queue: Queue;

  constructor(redisUrl: string, prefix: string) {
    this.#redis = createRedisClient(redisUrl, { maxRetriesPerRequest: null });
    // Errors are expected while the fault stops Redis.
    this.#redis.on('error', () => undefined);
    this.#queue = new Queue(QUEUE_NAME, { connection: this.#redis, prefix });
    this.#queue.on('error', () => undefined);
  }

  /** Whether a job is in work. */
  async isBusy(): Promise<boolean> {
    return (await this.#queue.getActiveCount()) > 0;
  }

  /** Counts the jobs that are not completed; a failed job is stuck until an operator handles it. */
  async openJobs(): Promise<number> {
    const { completed: _, ...open } = await this.#queue.getJobCounts();
    return Object.values(open).reduce((sum, jobs) => sum + jobs, 0);
  }

  disconnect(): void {
    this.#redis.disconnect();
  }
}

const STARTED_WITHIN_MS = 120_000;
const PAUSE_MS = 500;

/** The ingest workers of a run. A fault restarts them itself, as a supervisor would. */
export class WorkerPool {
  readonly #env: () => ServiceEnvironment;
  #workers: ServiceProcess[] = [];

  /** @param env called for each worker */
  constructor(env: () => ServiceEnvironment) {
    this.#env = env;
  }

  get running(): readonly ServiceProcess[] {
    return this.#workers;
  }

  /**
   * Starts more workers, all at the same time.
   * @param env added to that of the run, as `constants` are to its constants
   * @returns those that it started
   */
  async start(
    count: number,
    env: ServiceEnvironment = {},
    constants: Readonly<Record<string, number>> = {},
  ): Promise<ServiceProcess[]> {
    const start = () => startIngest(withConstants({ ...this.#env(), ...env }, constants));
    const starting = Array.from({ length: count }, () => supervised(start));
    const ended = await Promise.allSettled(starting);
    const started = ended.flatMap((worker) => (worker.status === 'fulfilled' ? [worker.value] : []));
    this.#workers.push(...started);
    for (const worker of ended) if (worker.status === 'rejected') throw worker.reason;
    return started;
  }

  /** Sends SIGKILL to all of them at the same moment. */
  async kill(victims: readonly ServiceProcess[]): Promise<void> {
    this.#workers = this.#workers.filter((worker) => !victims.includes(worker));
    await Promise.all(victims.map((worker) => worker.kill()));
  }

  /** Sends SIGTERM to all. @returns their exit codes */
  async stop(): Promise<(number | null)[]> {
    const stopped = this.#workers;
    const codes = await Promise.all(stopped.map((worker) => worker.stop()));
    this.#workers = [];
    return codes;
  }
}

/** A worker ends at its start while a server is away, which another fault may see to; a supervisor starts it again. */
async function supervised(start: () => Promise<ServiceProcess>): Promise<ServiceProcess> {
  const patienceEnds = Date.now() + STARTED_WITHIN_MS;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (Date.now() > patienceEnds) throw error;
      await sleep(PAUSE_MS);
    }
  }
}
