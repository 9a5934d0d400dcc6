/** A careful producer: a job whose `add` failed, or whose outcome is unknown, is sent again until one `add` succeeds. */
import type { RedisClient } from '@meterline/access';
import { parseRedisUrl, QUEUE_NAME, redisClientOptions, replicated, serverFinder } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { Cluster, Redis } from 'ioredis';
import type { QueuePlaces } from './round-queues.js';
import { pause } from './waiting.js';

const RETRY_MS = 150;
const ANSWER_TIMEOUT_MS = 2_000;
const REPLICATED_WITHIN_MS = 1_000;
const JOBS_AT_ONCE = 4;

/** Each attempt sends at most one command, so that the number of times a job may have been added is known. */
const BEHAVIOUR = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  commandTimeout: ANSWER_TIMEOUT_MS,
  connectTimeout: ANSWER_TIMEOUT_MS,
  retryStrategy: () => RETRY_MS,
};
/** A Cluster would send a command again whose connection is lost; without that it must look for new masters by itself. */
const ONE_COMMAND = { retryDelayOnFailover: 0, slotsRefreshInterval: 500 };

/** Adds a job with these data, and resolves when all have it that must. */
type Add = (data: unknown) => Promise<unknown>;

export class Producer {
  readonly #replicas: number;
  readonly #prefixes: readonly string[];
  readonly #redis: RedisClient;
  readonly #jobs: readonly unknown[];
  readonly #attempts: number[];
  #sent = 0;

  constructor(redisUrl: string, { prefixes }: QueuePlaces, jobs: readonly unknown[]) {
    this.#jobs = jobs;
    this.#attempts = jobs.map(() => 0);
    this.#prefixes = prefixes;
    const address = parseRedisUrl(redisUrl);
    this.#replicas = address.replicas;
    const { nodes, options } = redisClientOptions(address, BEHAVIOUR);
    this.#redis = nodes ? new Cluster(nodes, { ...options, ...ONE_COMMAND }) : new Redis(options);
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
   * Sends every job, spread over some time, to the queues in turn. While Redis is down, jobs wait; they are sent when it is back.
   *
   * @throws AbortError
   */
  async send(spreadMs: number, signal: AbortSignal): Promise<void> {
    const adds = await Promise.all(this.#prefixes.map((prefix) => this.#open(prefix, signal)));
    const begun = Date.now();
    let next = 0;
    const sender = async () => {
      for (let job = next++; job < this.#jobs.length; job = next++) {
        const due = begun + (job / this.#jobs.length) * spreadMs;
        if (due > Date.now()) await pause(due - Date.now(), signal);
        await this.#send(job, adds, signal);
      }
    };
    await Promise.all(Array.from({ length: JOBS_AT_ONCE }, sender));
  }

  /** BullMQ's queue asks Redis for its version first, and is of no use when that has failed. */
  async #open(prefix: string, signal: AbortSignal): Promise<Add> {
    for (;;) {
      const queue = new Queue(QUEUE_NAME, { connection: this.#redis, prefix });
      queue.on('error', () => undefined);
      try {
        await queue.waitUntilReady();
        const server = await serverFinder(this.#redis, queue.toKey('wait'));
        const replication = { replicas: this.#replicas, withinMs: REPLICATED_WITHIN_MS };
        return (data) => replicated(() => queue.add('usage', data), server, replication);
      } catch {
        await pause(RETRY_MS, signal);
      }
    }
  }

  async #send(job: number, adds: readonly Add[], signal: AbortSignal): Promise<void> {
    for (let turn = job; ; turn += 1) {
      this.#attempts[job] = this.attempts(job) + 1;
      try {
        await adds[turn % adds.length]?.(this.#jobs[job]);
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
