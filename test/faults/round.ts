/** One round: sends a known stream, injects a fault meanwhile, waits for recovery, compares. */
import { END_OF_TIME, MS_PER_HOUR } from '@meterline/catalog';
import { auditCells } from '@meterline/operations/audit';
import { createWarehouse, oneServer } from '@meterline/warehouse';
import { openWriters, repairAll } from '../late-events.js';
import type { ServiceEnvironment } from '../services.js';
import { type Asker, compareAccepted } from './accepted-events.js';
import type { Fault } from './fault.js';
import { Producer } from './producer.js';
import { compareRefused } from './refused-events.js';
import { placesOf, RoundQueues } from './round-queues.js';
import { SeededRandom } from './seeded-random.js';
import type { Site } from './site.js';
import { buildStream, firstHour, STREAM_HOURS } from './stream.js';
import { merge, type Verdict } from './verdict.js';
import { holdsWithin, pause } from './waiting.js';
import { WorkerPool } from './worker-pool.js';

/** More than the 60 s that a worker waits for an insert plus the 20 s until the locks of a dead worker expire. */
const DRAINED_WITHIN_MS = 300_000;
const STARTED_WITHIN_MS = 60_000;
const CHECKED_WITHIN_MS = 240_000;

export interface RoundOptions {
  readonly fault: Fault;
  readonly seed: number;
  readonly brief: boolean;
}

export interface RoundResult extends Verdict {
  readonly fault: string;
  readonly seed: number;
  /** Good and bad events, each counted once however often it was sent. */
  readonly events: number;
  /** Jobs left in the queue. */
  readonly stuck: number;
  /** From the end of the fault until the queue was empty. */
  readonly recoveryMs: number;
}

/** A finished round, whose comparison can be repeated later. */
export interface FinishedRound {
  readonly result: RoundResult;
  recheck(): Promise<Verdict>;
}

/** @throws AbortError, or the error of a service or server that did not start again */
export async function playRound(site: Site, options: RoundOptions, signal: AbortSignal): Promise<FinishedRound> {
  const { fault, seed, brief } = options;
  const random = new SeededRandom(seed);
  const accountId = `${fault.name}-${seed}`;
  const newMonth = site.nextMonth();
  const stream = buildStream(random, accountId, brief ? 600 : random.integer(800, 2_000), newMonth);
  const environment = site.environment(fault.proxied);
  const places = await placesOf(accountId, site.cluster);
  const sizes = {
    QUEUE_PREFIX: places.prefix,
    QUEUE_SHARDS: String(places.prefixes.length),
    INGEST_BATCH_ROWS: String(random.pick([50, 200, 1_000])),
    INGEST_FLUSH_MS: String(random.pick([5, 50, 300])),
    INGEST_CONCURRENCY: String(random.pick([10, 50, 500, 6_000])),
    INGEST_TAKE: random.pick(['many', 'many', 'one']),
  };
  const workers = new WorkerPool(() => ({ ...environment.worker, ...sizes, ...sealing(random, newMonth) }));
  const producer = new Producer(environment.redisUrl, places, stream.jobs);
  const queues = new RoundQueues(site.redisUrl, places);
  const complaints: string[] = [];
  const complain = (what: string) => void complaints.push(what);

  try {
    const key = await site.createKey(accountId);
    await workers.start(fault.workers);
    const isBusy = () => queues.isBusy();
    const moment = { share: random.integer(5, 60) / 100, ms: random.integer(0, 200) };
    const strike = async (stopped: AbortSignal) => {
      await holdsWithin(STARTED_WITHIN_MS, stopped, () => producer.sentShare >= moment.share);
      await pause(moment.ms, stopped);
      const asker = () => ({ url: site.query.url, key });
      await fault.strike({ site, workers, stream, asker, random, brief, signal: stopped, isBusy, complain });
      return Date.now();
    };
    const spreadMs = random.integer(1_000, 4_000);
    const [, overAt] = await together(signal, [(stopped) => producer.send(spreadMs, stopped), strike]);
    await holdsWithin(DRAINED_WITHIN_MS, signal, async () => (await queues.openJobs()) === 0);
    const recoveryMs = Date.now() - overAt;
    const stuck = await queues.openJobs();
    for (const code of await workers.stop()) if (code !== 0) complain(`a worker ended with ${code}`);

    const attempts = (job: number) => producer.attempts(job);
    const recheck = async () => {
      const asker: Asker = { url: site.query.url, key };
      const warehouse = createWarehouse(site.database);
      try {
        return merge(
          await compareAccepted(asker, stream, AbortSignal.timeout(CHECKED_WITHIN_MS)),
          await compareRefused(warehouse, stream, attempts),
        );
      } finally {
        await warehouse.close();
      }
    };
    const asLeft = await recheck();
    complaints.push(...(await auditRepaired(site, accountId)));
    const verdict = merge(asLeft, { lost: [], doubled: [], complaints });
    const events = stream.identities + stream.refused.length;
    return { result: { fault: fault.name, seed, events, stuck, recoveryMs, ...verdict }, recheck };
  } finally {
    site.clickhouseLink.treat({ kind: 'pass' });
    site.redisLink.treat({ kind: 'pass' });
    // A connection that stays open tries again for ever, and the process never ends.
    producer.disconnect();
    queues.disconnect();
    await workers.kill(workers.running);
  }
}

/** Repairs what the workers have left, and compares all sealed cells with their events. @returns what differs */
async function auditRepaired(site: Site, accountId: string): Promise<string[]> {
  const warehouse = createWarehouse(site.database);
  const { signal } = new AbortController();
  try {
    for (const writer of await openWriters(warehouse)) await repairAll(warehouse, writer);
    const window = { startTime: 0, endTime: END_OF_TIME };
    const audit = {
      shards: oneServer(warehouse),
      accountId,
      window,
      repair: undefined,
      signal,
      onProgress: () => undefined,
    };
    const { differences } = await auditCells(audit);
    return differences.map((difference) => `a cell differs from its events: ${JSON.stringify(difference)}`);
  } finally {
    await warehouse.close();
  }
}

/** Each worker that starts seals up to another hour of the stream, while events are still being sent. */
function sealing(random: SeededRandom, newMonth: number): ServiceEnvironment {
  const until = firstHour(newMonth) + random.integer(0, STREAM_HOURS) * MS_PER_HOUR;
  return { SEAL_EVERY_MS: '300', SEAL_DELAY_MS: String(Date.now() - until) };
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
