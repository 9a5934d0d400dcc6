/** One run: sends a known stream, injects a fault meanwhile, waits for recovery, compares. */
import { END_OF_TIME, MS_PER_HOUR } from '@meterline/catalog';
import { auditRollups } from '@meterline/cli/operations/audit';
import { oneServer } from '@meterline/warehouse';
import { recomputeAll } from '../harness/late-events.js';
import { withConstants } from '../harness/services.js';
import { type Comparison, compareAccepted, compareRefused, merge } from './compare.js';
import type { Fixture, Proxied } from './fixture.js';
import type { Injection } from './injections.js';
import { SeededRandom } from './seeded-random.js';
import { buildStream, firstHour, STREAM_HOURS } from './stream.js';
import { Producer, QueueView, WorkerPool } from './traffic.js';
import { holdsWithin, pause } from './waiting.js';

/** More than the 60 s that a worker waits for an insert plus the 20 s until the locks of a dead worker expire. */
const DRAINED_WITHIN_MS = 300_000;
const STARTED_WITHIN_MS = 60_000;
const CHECKED_WITHIN_MS = 240_000;

export interface RunOptions {
  /** Its name. */
  readonly fault: string;
  readonly seed: number;
  readonly brief: boolean;
}

/** How a stream passes through the servers, and what befalls them meanwhile. */
export interface StreamFault {
  readonly inject: Injection;
  readonly workers?: number;
  /** The servers that are reached through proxies, which the injection breaks. */
  readonly proxied?: Proxied;
}

export interface RunResult extends Comparison {
  readonly fault: string;
  readonly seed: number;
  /** Good and bad events, each counted once however often it was sent. */
  readonly events: number;
  /** Jobs left in the queue. */
  readonly stuck: number;
  /** From the end of the fault until the queue was empty. */
  readonly recoveryMs: number;
}

/** A finished run, whose comparison can be repeated later. */
export interface FinishedRun {
  readonly result: RunResult;
  recheck(): Promise<Comparison>;
}

/** @throws AbortError, or the error of a service or server that did not start again */
export async function playStream(
  fixture: Fixture,
  { fault, seed, brief }: RunOptions,
  signal: AbortSignal,
  { inject, workers: wanted = 2, proxied = 'nothing' }: StreamFault,
): Promise<FinishedRun> {
  const random = new SeededRandom(seed);
  const accountId = `${fault}-${seed}`;
  const newMonth = fixture.nextMonth();
  const stream = buildStream(random, accountId, brief ? 600 : random.integer(800, 2_000), newMonth);
  const environment = fixture.environment(proxied);
  const sizes = {
    batchRows: random.pick([50, 200, 1_000]),
    flushMs: random.pick([5, 50, 300]),
    concurrency: random.pick([10, 50, 500, 2_000]),
  };
  const workers = new WorkerPool(() =>
    withConstants({ ...environment.worker, QUEUE_PREFIX: accountId }, { ...sizes, ...sealing(random, newMonth) }),
  );
  const producer = new Producer(environment.redisUrl, accountId, stream.jobs);
  const queue = new QueueView(fixture.redisUrl, accountId);
  const complaints: string[] = [];
  const complain = (what: string) => void complaints.push(what);

  try {
    const key = await fixture.createKey(accountId);
    await workers.start(wanted);
    const isBusy = () => queue.isBusy();
    const moment = { share: random.integer(5, 60) / 100, ms: random.integer(0, 200) };
    const injected = async (stopped: AbortSignal) => {
      await holdsWithin(STARTED_WITHIN_MS, stopped, () => producer.sentShare >= moment.share);
      await pause(moment.ms, stopped);
      const asker = () => ({ url: fixture.query.url, key });
      await inject({ fixture, workers, stream, asker, random, brief, signal: stopped, isBusy, complain });
      return Date.now();
    };
    const spreadMs = random.integer(1_000, 4_000);
    const [, overAt] = await together(signal, [(stopped) => producer.send(spreadMs, stopped), injected]);
    await holdsWithin(DRAINED_WITHIN_MS, signal, async () => (await queue.openJobs()) === 0);
    const recoveryMs = Date.now() - overAt;
    const stuck = await queue.openJobs();
    for (const code of await workers.stop()) if (code !== 0) complain(`a worker ended with ${code}`);

    const attempts = (job: number) => producer.attempts(job);
    const recheck = async () =>
      merge(
        await compareAccepted({ url: fixture.query.url, key }, stream, AbortSignal.timeout(CHECKED_WITHIN_MS)),
        await compareRefused(fixture.warehouse, stream, attempts),
      );
    const asLeft = await recheck();
    complaints.push(...(await auditRepaired(fixture, accountId)));
    const compared = merge(asLeft, { lost: [], doubled: [], complaints });
    const events = stream.identities + stream.refused.length;
    return { result: { fault, seed, events, stuck, recoveryMs, ...compared }, recheck };
  } finally {
    fixture.clickhouseLink.treat({ kind: 'pass' });
    fixture.redisLink.treat({ kind: 'pass' });
    // A connection that stays open tries again for ever, and the process never ends.
    producer.disconnect();
    queue.disconnect();
    await workers.kill(workers.running);
  }
}

/**
 * Recomputes what the workers have left, and compares all sealed rollup rows with their events.
 * @param accountId undefined: every account @returns what differs
 */
export async function auditRepaired({ warehouse }: Fixture, accountId: string | undefined): Promise<string[]> {
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
