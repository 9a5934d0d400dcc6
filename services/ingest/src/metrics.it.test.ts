import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, QUEUE_NAME } from '@meterline/catalog';
import { openQueueConnection } from '@meterline/service/queue';
import { Queue } from 'bullmq';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { until } from '../../../test/harness/queue.js';
import { testRedisUrl, uniquePrefix } from '../../../test/harness/stack.js';
import { openQueueReader, type QueueReader } from './admin.js';
import { Pricer } from './intake.js';
import { Lanes } from './lanes.js';
import { createIngestMetrics, isConsuming, registerWorkerGauges } from './metrics.js';
import { UsageWorker } from './usage-worker.js';

const redisUrl = testRedisUrl();
let prefix: string;
let queue: Queue;
let reader: QueueReader;
let worker: UsageWorker;
let registry: Registry;
/** How far the gauges' clock is ahead. */
let secondsLater: number;
let storing: () => Promise<void>;

beforeEach(async () => {
  prefix = uniquePrefix();
  queue = new Queue(QUEUE_NAME, { connection: { url: redisUrl }, prefix });
  reader = await openQueueReader(redisUrl, prefix);
  registry = new Registry();
  secondsLater = 0;
  storing = async () => undefined;
  worker = new UsageWorker({
    connection: openQueueConnection(redisUrl),
    prefix,
    concurrency: 5,
    maxDataInWork: 1_000_000,
    lanes: new Lanes({ maxRows: 10, flushMs: 1, maxIntakes: 1, sealDelayMs: 0, store: () => storing() }),
    closedBefore: () => 0,
    pricer: new Pricer(DEFAULT_PRICE_BOOK),
    givesUp: new AbortController().signal,
    metrics: createIngestMetrics(new Registry()),
    telemetry: undefined,
    log: pino({ level: 'silent' }),
  });
});
afterEach(async () => {
  await worker.close();
  await reader.close();
  await queue.obliterate({ force: true });
  await queue.close();
});

function register(): void {
  registerWorkerGauges(registry, {
    readQueue: reader.depth,
    isRedisFull: reader.isRedisFull,
    consumption: (depth) => ({
      lastProgressAt: worker.lastProgressAt,
      outage: worker.isWaiting,
      waitingJobs: depth?.waiting,
      unacknowledged: worker.unacknowledged,
    }),
    waitingRows: () => 7,
    clock: () => Date.now() + secondsLater * 1000,
  });
}

async function consuming(): Promise<number | undefined> {
  return (await registry.getSingleMetric('meterline_consuming')?.get())?.values[0]?.value;
}

it('a worker that has not taken any of the jobs that wait for a minute is reported, until it takes them', async () => {
  register();
  for (let n = 0; n < 3; n += 1) await queue.add('usage', {});
  expect(await consuming()).toBe(1);
  secondsLater = 61;
  expect(await consuming()).toBe(0);
  worker.run();
  await until('all jobs are done', 10_000, async () => (await queue.getCompletedCount()) === 3);
  expect(await consuming()).toBe(1);
});

it('a worker that has taken jobs and can acknowledge none is reported', async () => {
  register();
  let release = () => {};
  storing = () => new Promise((resolve) => (release = resolve));
  await queue.add('usage', {});
  worker.run();
  await until('the job is taken', 10_000, async () => (await queue.getActiveCount()) === 1);
  expect(await consuming()).toBe(1);
  secondsLater = 61;
  expect(await consuming()).toBe(0);
  release();
  await until('the job is done', 10_000, async () => (await queue.getCompletedCount()) === 1);
  expect(await consuming()).toBe(1);
});

const NOW = 10_000_000;
const LONG_AGO = NOW - 60_000;
const RECENTLY = NOW - 59_999;

it.each([
  ['nothing waits', { waitingJobs: 0, unacknowledged: 0, lastProgressAt: LONG_AGO, outage: false }],
  [
    'jobs wait and some was taken in the last minute',
    { waitingJobs: 5, unacknowledged: 0, lastProgressAt: RECENTLY, outage: false },
  ],
  [
    'jobs wait for a server that is away',
    { waitingJobs: 5, unacknowledged: 0, lastProgressAt: LONG_AGO, outage: true },
  ],
])('a worker consumes when %s', (_, consumption) => {
  expect(isConsuming(consumption, NOW)).toBe(true);
});
