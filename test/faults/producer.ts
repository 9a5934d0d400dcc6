/** A careful producer: a job whose `add` failed, or whose outcome is unknown, is sent again until one `add` succeeds. */
import { QUEUE_NAME } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { pause } from './waiting.js';

const RETRY_MS = 150;
const ANSWER_TIMEOUT_MS = 2_000;
const JOBS_AT_ONCE = 4;

export class Producer {
  readonly #queue: Queue;
  readonly #jobs: readonly unknown[];
  readonly #attempts: number[];
  #sent = 0;

  constructor(redisUrl: string, prefix: string, jobs: readonly unknown[]) {
    this.#jobs = jobs;
    this.#attempts = jobs.map(() => 0);
    this.#queue = new Queue(QUEUE_NAME, {
      prefix,
      connection: {
        url: redisUrl,
        // Each attempt sends at most one command, so that the number of times a job may have been added is known.
        autoResendUnfulfilledCommands: false,
        maxRetriesPerRequest: 0,
        enableOfflineQueue: false,
        commandTimeout: ANSWER_TIMEOUT_MS,
        connectTimeout: ANSWER_TIMEOUT_MS,
        retryStrategy: () => RETRY_MS,
      },
    });
    // The same errors reject the running `add`.
    this.#queue.on('error', () => undefined);
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
    await this.#queue.waitUntilReady();
    const begun = Date.now();
    let next = 0;
    const sender = async () => {
      for (let job = next++; job < this.#jobs.length; job = next++) {
        const due = begun + (job / this.#jobs.length) * spreadMs;
        if (due > Date.now()) await pause(due - Date.now(), signal);
        await this.#add(job, signal);
      }
    };
    await Promise.all(Array.from({ length: JOBS_AT_ONCE }, sender));
  }

  async #add(job: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      this.#attempts[job] = this.attempts(job) + 1;
      try {
        await this.#queue.add('usage', this.#jobs[job]);
        this.#sent += 1;
        return;
      } catch {
        await pause(RETRY_MS, signal);
      }
    }
  }

  /** Closes the connection at once, whether or not Redis answers. */
  async disconnect(): Promise<void> {
    await this.#queue.disconnect();
  }
}
