/** Runs a stream: sends its events, injects a fault meanwhile, waits for recovery, and compares what is stored. */
import { setMaxListeners } from 'node:events';
import { END_OF_TIME, MS_PER_HOUR } from '@meterline/catalog';
import { auditRollups } from '@meterline/cli/operations/audit';
import { oneServer, type Warehouse } from '@meterline/warehouse';
import { holdsWithin, openJobs, pause } from '../harness/queue.js';
import type { SeededRandom } from '../harness/seeded-random.js';
import { type ServiceEnvironment, type ServiceProcess, withConstants } from '../harness/services.js';
import { recomputeAll } from '../harness/stack.js';
import type { StreamJob } from '../harness/stream.js';
import type { Asker } from './compare.js';
import { compareAccepted, compareRejected } from './compare.js';
import type { Proxied } from './fixture.js';
import { QueueProducer } from './queue-producer.js';
import { firstHour, type MonthStream, monthStream, STREAM_HOURS } from './stream.js';
import type { Found, Run } from './suite.js';

/** The locks of a killed worker's jobs expire after this time. Other workers look for expired locks three times as often. */
export const LOCK_MS = 5_000;
/** Longer than the 60 s timeout of an insert, and than the locks of a killed worker. */
const DRAINED_WITHIN_MS = 600_000;
const STARTED_WITHIN_MS = 600_000;
const CHECKED_WITHIN_MS = 600_000;

/** The part of a run that an injection can break, while events are sent and processed. */
export interface StreamRun extends Run {
  readonly workers: WorkerPool;
  readonly stream: MonthStream;
  /** The query API as it is now, with a key of the stream's account. */
  readonly asker: () => Asker;
}
export type Injection = (run: StreamRun) => Promise<void>;

/** The injection, and the path of the events. */
export interface StreamFault {
  readonly inject: Injection;
  /** The number of workers. Default: two, or one in the short form. */
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
  const stream = monthStream(random, name, brief ? 200 : random.integer(800, 2_000), newMonth);
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
  const producer = new QueueProducer({ ...product.env, ...env });
  /** How often a job that is in the queue may have been added. */
  const attempts = new Map<StreamJob, number>();
  const rejected = stream.jobs.flatMap((job) =>
    [...job.rejections.values()].map((rejection) => ({ ...rejection, job })),
  );

  try {
    const key = await product.key(name);
    await workers.start(wanted);
    const moment = { share: random.integer(5, 60) / 100, ms: random.integer(0, 200) };
    let overAt = 0;
    const injected = async (stopped: AbortSignal) => {
      await holdsWithin(STARTED_WITHIN_MS, stopped, () => attempts.size >= moment.share * stream.jobs.length);
      await pause(moment.ms, stopped);
      await inject({ ...run, workers, stream, asker: () => ({ url: fixture.query.url, key }), signal: stopped });
      overAt = Date.now();
    };
    const spreadMs = random.integer(1_000, brief ? 2_000 : 4_000);
    const sending = (stopped: AbortSignal) =>
      spread(stream.jobs, { from: Date.now(), ms: spreadMs }, stopped, async (job) => {
        attempts.set(job, await producer.add(job.data, stopped));
      });
    await together(signal, [sending, injected]);
    await holdsWithin(DRAINED_WITHIN_MS, signal, async () => (await openJobs(product.queue)) === 0);
    const recoveryMs = Date.now() - overAt;
    const stuck = await openJobs(product.queue);
    for (const code of await workers.stop()) if (code !== 0) complain(`a worker ended with ${code}`);

    const compare = async () => [
      ...(await compareAccepted({ url: fixture.query.url, key }, stream, AbortSignal.timeout(CHECKED_WITHIN_MS))),
      ...(await compareRejected(
        product.warehouse,
        name,
        rejected.map(({ job, ...rejection }) => ({ ...rejection, attempts: attempts.get(job) ?? 0 })),
      )),
    ];
    const differences = [...(await compare()), ...(await auditRepaired(product.warehouse, name))];
    const events = stream.events.length + rejected.length;
    return { events, stuck, recoveryMs, differences, compare };
  } finally {
    clickhouseLink.treat({ kind: 'pass' });
    redisLink.treat({ kind: 'pass' });
    // An open connection reconnects forever, and keeps the process alive.
    producer.disconnect();
    await workers.kill(workers.running);
  }
}

/**
 * Recomputes the remaining dirty hours, and compares all sealed rollup rows with their events.
 * @param accountId undefined: every account @returns the differences
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

const JOBS_AT_ONCE = 4;

/** Handles every item, a few at the same time, evenly over the time from `from` on. @throws AbortError */
export async function spread<T>(
  items: readonly T[],
  { from, ms }: { readonly from: number; readonly ms: number },
  signal: AbortSignal,
  handle: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.entries();
  const handleRest = async () => {
    for (const [index, item] of left) {
      const due = from + (index / items.length) * ms;
      if (due > Date.now()) await pause(due - Date.now(), signal);
      await handle(item);
    }
  };
  await Promise.all(Array.from({ length: JOBS_AT_ONCE }, handleRest));
}

/** Each worker that starts seals up to another hour of the stream, while events are still being sent. */
function sealing(random: SeededRandom, newMonth: number) {
  const until = firstHour(newMonth) + random.integer(0, STREAM_HOURS) * MS_PER_HOUR;
  return { maintenanceEveryMs: 300, sealDelayMs: Date.now() - until };
}

/** Runs all tasks at the same time. When one fails, stops the others, waits for them, and then rejects with the failure. */
export async function together(
  signal: AbortSignal,
  tasks: readonly ((signal: AbortSignal) => Promise<void>)[],
): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  setMaxListeners(0, either);
  const guarded = tasks.map(async (task) => task(either).catch((error) => failed.abort(error)));
  await Promise.all(guarded);
  either.throwIfAborted();
}

const RESTART_MS = 500;

/** The ingest workers of a run. Faults restart them, as a supervisor would. */
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
   * @param env added to the environment of the run, as `constants` to its constants
   * @returns the new workers
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

/** A worker exits if a server is away when it starts, which another fault may cause. A supervisor would start it again. */
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
