/** One run of a stream: sends it, injects a fault meanwhile, waits for recovery, compares. */
import { END_OF_TIME, MS_PER_HOUR, QUEUE_NAME } from '@meterline/catalog';
import { auditRollups } from '@meterline/cli/operations/audit';
import { createRedisClient, type RedisClient } from '@meterline/service/access';
import { oneServer, type Warehouse } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { holdsWithin, openJobs, pause } from '../harness/queue.js';
import { type ServiceEnvironment, type ServiceProcess, withConstants } from '../harness/services.js';
import { recomputeAll } from '../harness/stack.js';
import type { Asker } from './compare.js';
import { compareAccepted, compareRejected } from './compare.js';
import type { Proxied } from './fixture.js';
import type { SeededRandom } from './stream.js';
import { buildStream, firstHour, STREAM_HOURS, type UsageStream } from './stream.js';
import type { Found, Run } from './suite.js';

/** How long a process of a run keeps the locks of its jobs after its death; others look for such locks three times as often. */
export const LOCK_MS = 5_000;
/** More than the 60 s that a worker waits for an insert, and the time until the locks of a dead worker expire. */
const DRAINED_WITHIN_MS = 600_000;
const STARTED_WITHIN_MS = 600_000;
const CHECKED_WITHIN_MS = 600_000;

/** What an injection may break, while events are sent and workers process them. */
export interface StreamRun extends Run {
  readonly workers: WorkerPool;
  readonly stream: UsageStream;
  /** The query API as it is now, with a key of the stream's account. */
  readonly asker: () => Asker;
}
export type Injection = (run: StreamRun) => Promise<void>;

/** How a stream passes through the servers, and what befalls them meanwhile. */
export interface StreamFault {
  readonly inject: Injection;
  /** How many; one, or two in the long form, if it does not matter. */
  readonly workers?: number;
  /** The servers that are reached through proxies, which the injection breaks. */
  readonly proxied?: Proxied;
}

/** @throws AbortError, or the error of a service or server that did not start again */
export async function playStream(
  run: Run,
  { inject, workers: wanted = run.brief ? 1 : 2, proxied = 'nothing' }: StreamFault,
): Promise<Found> {
  const { fixture, name, random, brief, signal, complain } = run;
  const { product, clickhouseLink, redisLink } = fixture;
  const newMonth = fixture.nextMonth();
  const stream = buildStream(random, name, brief ? 200 : random.integer(800, 2_000), newMonth);
  const env = fixture.environment(proxied);
  const sizes = {
    batchRows: random.pick([50, 200, 1_000]),
    flushMs: random.pick([5, 50, 300]),
    concurrency: random.pick([10, 50, 500, 2_000]),
    lockMs: LOCK_MS,
  };
  const workers = new WorkerPool(product.startIngest, () =>
    withConstants(env, { ...sizes, ...sealing(random, newMonth) }),
  );
  const producer = new Producer(env.REDIS_URL, product.env.QUEUE_PREFIX ?? '', stream.jobs);

  try {
    const key = await product.key(name);
    await workers.start(wanted);
    const moment = { share: random.integer(5, 60) / 100, ms: random.integer(0, 200) };
    const injected = async (stopped: AbortSignal) => {
      await holdsWithin(STARTED_WITHIN_MS, stopped, () => producer.sentShare >= moment.share);
      await pause(moment.ms, stopped);
      await inject({ ...run, workers, stream, asker: () => ({ url: fixture.query.url, key }), signal: stopped });
      return Date.now();
    };
    const spreadMs = random.integer(1_000, brief ? 2_000 : 4_000);
    const [, overAt] = await together(signal, [(stopped) => producer.send(spreadMs, stopped), injected]);
    await holdsWithin(DRAINED_WITHIN_MS, signal, async () => (await openJobs(product.queue)) === 0);
    const recoveryMs = Date.now() - overAt;
    const stuck = await openJobs(product.queue);
    for (const code of await workers.stop()) if (code !== 0) complain(`a worker ended with ${code}`);

    const compare = async () => [
      ...(await compareAccepted({ url: fixture.query.url, key }, stream, AbortSignal.timeout(CHECKED_WITHIN_MS))),
      ...(await compareRejected(product.warehouse, stream, (job) => producer.attempts(job))),
    ];
    const differences = [...(await compare()), ...(await auditRepaired(product.warehouse, name))];
    const events = stream.identities + stream.rejected.length;
    return { events, stuck, recoveryMs, differences, compare };
  } finally {
    clickhouseLink.treat({ kind: 'pass' });
    redisLink.treat({ kind: 'pass' });
    // A connection that stays open tries again for ever, and the process never ends.
    producer.disconnect();
    await workers.kill(workers.running);
  }
}

/**
 * Recomputes what the workers have left, and compares all sealed rollup rows with their events.
 * @param accountId undefined: every account @returns what differs
 */
export async function auditRepaired(warehouse: Warehouse, accountId: string | undefined): Promise<string[]> {
  await recomputeAll(warehouse);
  const { differences } = await auditRollups({
    shards: oneServer(warehouse),
    accountId,
    window: { startTime: 0, endTime: END_OF_TIME },
    repair: false,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });
  return differences.map((difference) => `a rollup row differs from its events: ${JSON.stringify(difference)}`);
}

/** Each worker that starts seals up to another hour of the stream, while events are still being sent. */
function sealing(random: SeededRandom, newMonth: number) {
  const until = firstHour(newMonth) + random.integer(0, STREAM_HOURS) * MS_PER_HOUR;
  return { maintenanceEveryMs: 300, sealDelayMs: Date.now() - until };
}

/** Runs both. When one fails, stops the other, waits for it, and then rejects with the failure. */
async function together<A, B>(
  signal: AbortSignal,
  [a, b]: readonly [(signal: AbortSignal) => Promise<A>, (signal: AbortSignal) => Promise<B>],
): Promise<[A, B]> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const guarded = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    try {
      return await work(either);
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  };
  const [first, second] = await Promise.allSettled([guarded(a), guarded(b)]);
  if (first.status === 'fulfilled' && second.status === 'fulfilled') return [first.value, second.value];
  throw either.reason;
}

const RETRY_MS = 150;
const RESPONSE_TIMEOUT_MS = 2_000;
const JOBS_AT_ONCE = 4;

/** Each attempt sends at most one command, so that the number of times a job may have been added is known. */
export const CAREFUL = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  commandTimeout: RESPONSE_TIMEOUT_MS,
  connectTimeout: RESPONSE_TIMEOUT_MS,
  retryStrategy: () => RETRY_MS,
};

/** A careful producer: a job whose `add` failed, or whose outcome is unknown, is sent again until one `add` succeeds. */
class Producer {
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

const RESTART_MS = 500;

/** The ingest workers of a run. A fault restarts them itself, as a supervisor would. */
class WorkerPool {
  readonly #start: (env: ServiceEnvironment) => Promise<ServiceProcess>;
  readonly #env: () => ServiceEnvironment;
  #workers: ServiceProcess[] = [];

  /** @param env called for each worker that is started */
  constructor(start: (env: ServiceEnvironment) => Promise<ServiceProcess>, env: () => ServiceEnvironment) {
    this.#start = start;
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
    const start = () => this.#start(withConstants({ ...this.#env(), ...env }, constants));
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
  const deadline = Date.now() + STARTED_WITHIN_MS;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await pause(RESTART_MS);
    }
  }
}
