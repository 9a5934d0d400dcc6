import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, QUEUE_NAME } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { until } from '../../../test/e2e/pipeline.js';
import { testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { QueueReader } from './admin.js';
import { Budget } from './budget.js';
import { Pricer } from './intake.js';
import { Lanes } from './lanes.js';
import { createIngestMetrics, isConsuming, registerWorkerGauges } from './metrics.js';
import { QueueConnection } from './queue-connection.js';
import { ShardLanes } from './shard-lanes.js';
import { UsageWorker } from './usage-worker.js';

const redisUrl = testRedisUrl();
let prefix: string;
let queue: Queue;
let reader: QueueReader;
let worker: UsageWorker;
let registry: Registry;
/** How far the gauges' clock is ahead. */
let secondsLater: number;

beforeEach(async () => {
  prefix = uniquePrefix();
  queue = new Queue(QUEUE_NAME, { connection: { url: redisUrl }, prefix });
  reader = await QueueReader.open(redisUrl, prefix, () => [0]);
  registry = new Registry();
  secondsLater = 0;
  worker = new UsageWorker({
    connection: new QueueConnection({ url: redisUrl, knowsScriptFlags: true, readsUsageJobs: true }),
    prefix,
    shard: 0,
    takesMany: true,
    onUnknownScripts: () => undefined,
    concurrency: () => 5,
    maxBytesInWork: () => 1_000_000,
    oversized: new Budget(() => 1),
    lanes: new ShardLanes({
      lanes: [
        new Lanes({ maxRows: 10, flushMs: 1, maxIntakes: () => 1, sealDelayMs: 0, store: async () => undefined }),
      ],
      indexOf: () => 0,
      isAway: () => false,
    }),
    keepPayloadPart: async () => undefined,
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
    readQueues: () => reader.read(),
    isRedisFull: () => reader.isRedisFull(),
    consumption: (depths) => [
      {
        shard: 0,
        takesMany: true,
        onUnknownScripts: () => undefined,
        lastProgressAt: worker.lastProgressAt,
        outage: worker.isWaiting,
        waitingJobs: depths.get(0)?.waiting,
      },
    ],
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

it('a worker that idles consumes, however long', async () => {
  register();
  secondsLater = 100_000;
  expect(await consuming()).toBe(1);
});

const NOW = 10_000_000;
const LONG_AGO = NOW - 60_000;
const RECENTLY = NOW - 59_999;

describe('isConsuming', () => {
  it.each([
    ['nothing waits', { waitingJobs: 0, lastProgressAt: LONG_AGO, outage: false }, true],
    [
      'jobs wait and some was taken in the last minute',
      { waitingJobs: 5, lastProgressAt: RECENTLY, outage: false },
      true,
    ],
    ['jobs wait and none was taken for a minute', { waitingJobs: 5, lastProgressAt: LONG_AGO, outage: false }, false],
    ['jobs wait for a server that is away', { waitingJobs: 5, lastProgressAt: LONG_AGO, outage: true }, true],
  ])('when %s', (_, consumption, expected) => {
    expect(isConsuming(consumption, NOW)).toBe(expected);
  });
});
