/** What BullMQ's worker does with the jobs of producers, on a real Redis, with a store that is a list. */

import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, QUEUE_NAME } from '@meterline/catalog';
import { abortable } from '@meterline/service';
import { createRedisClient } from '@meterline/service/access';
import { createRegistry } from '@meterline/service/metrics';
import { openQueueConnection } from '@meterline/service/queue';
import { type JobsOptions, Queue } from 'bullmq';
import { Queue as QueueOfBullMQ5 } from 'bullmq-5';
import { pino } from 'pino';
import { SANDBOX_EVENT } from '../../../test/harness/events.js';
import { until } from '../../../test/harness/queue.js';
import { testRedisUrl, uniquePrefix } from '../../../test/harness/stack.js';
import { type Intake, Pricer } from './intake.js';
import { Lanes } from './lanes.js';
import { createIngestMetrics } from './metrics.js';
import { UsageWorker } from './usage-worker.js';

const url = testRedisUrl();
const WITHIN_MS = 20_000;
let prefix: string;
let queue: Queue;
let worker: UsageWorker | undefined;
let stored: Intake[];
const redis = createRedisClient(url, { lazyConnect: true });
afterAll(() => redis.disconnect());
beforeEach(() => {
  prefix = uniquePrefix();
  queue = new Queue(QUEUE_NAME, { connection: { url }, prefix });
  stored = [];
});
afterEach(async () => {
  await worker?.close();
  worker = undefined;
  await queue.obliterate({ force: true });
  await queue.close();
});

const event = (changes: object = {}) => ({
  ...SANDBOX_EVENT,
  eventId: randomUUID(),
  timestamp: new Date().toISOString(),
  ...changes,
});
const rejected = () => stored.flatMap((intake) => intake.rejected);
const accepted = () => stored.reduce((sum, intake) => sum + intake.accepted.length, 0);
const isEmpty = async () => Object.values(await queue.getJobCounts('wait', 'active', 'delayed')).every((n) => n === 0);

/** @param store what becomes of a batch; kept in `stored` when not given */
function start({
  store = async (batch: readonly Intake[]): Promise<void> => {
    stored.push(...batch);
  },
  givesUp = new AbortController().signal,
  concurrency = 50,
  maxDataInWork = 1_000_000,
  address = url,
} = {}): UsageWorker {
  worker = new UsageWorker({
    connection: openQueueConnection(address),
    prefix,
    concurrency,
    maxDataInWork,
    lanes: new Lanes({ maxRows: 65_000, flushMs: 20, maxIntakes: 1_000, sealDelayMs: 300_000, store }),
    pricer: new Pricer(DEFAULT_PRICE_BOOK),
    closedBefore: () => 0,
    givesUp,
    metrics: createIngestMetrics(createRegistry('ingest')),
    telemetry: undefined,
    log: pino({ level: 'silent' }),
  });
  worker.run();
  return worker;
}

it.each([
  ['BullMQ 5', () => new QueueOfBullMQ5(QUEUE_NAME, { connection: { url }, prefix })],
  ['BullMQ 6', () => new Queue(QUEUE_NAME, { connection: { url }, prefix })],
])('the usage worker takes jobs of %s with any options, and keeps the last of them only', async (_, open) => {
  const producer = open();
  const options: JobsOptions[] = [
    { priority: 5 },
    { delay: 20 },
    { lifo: true },
    { deduplication: { id: 'once' } },
    { attempts: 5, backoff: 1, removeOnComplete: 500 },
    { removeOnComplete: true, removeOnFail: true, jobId: 'own-id' },
    ...Array.from({ length: 20 }, () => ({ removeOnComplete: false })),
  ];
  for (const opts of options) await producer.add('usage', event(), opts);
  await producer.close();
  start();
  await until('all jobs are done', WITHIN_MS, async () => accepted() === options.length && (await isEmpty()));
  expect(await queue.getJobCounts('failed', 'completed')).toEqual({ failed: 0, completed: 20 });
});

it.each(['{"eventId": oops', '5', '[]'])(
  'the usage worker keeps a job whose data is %j as rejected, and acknowledges it',
  async (data) => {
    const { id = '' } = await queue.add('usage', {});
    await redis.hset(queue.toKey(id), 'data', data);
    await queue.add('usage', event());
    start();
    await until('both are done', WITHIN_MS, async () => accepted() === 1 && (await isEmpty()));
    expect(rejected()).toMatchObject([{ jobId: id, position: 0, payload: data }]);
  },
);

it('the usage worker sends no event of a schedule again', async () => {
  const { id = '' } = await queue.add('usage', event());
  await redis.hset(queue.toKey(id), { rjk: 'schedule', defa: 'a child failed' });
  start();
  await until('it is done', WITHIN_MS, async () => accepted() === 1 && (await isEmpty()));
  expect(await queue.getJobCounts('failed', 'completed')).toEqual({ failed: 0, completed: 1 });
});

it('the usage worker takes no further job while their data is more than may be in work, and goes on when they are stored', async () => {
  for (let n = 0; n < 10; n += 1) await queue.add('usage', { events: [event(), event()] });
  let release = () => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  start({
    maxDataInWork: 1_500,
    store: async (batch) => {
      await gate;
      stored.push(...batch);
    },
  });
  await until('some are taken', WITHIN_MS, async () => (await queue.getActiveCount()) >= 2);
  expect(await queue.getActiveCount()).toBeLessThan(5);
  release();
  await until('all are done', WITHIN_MS, async () => accepted() === 20 && (await isEmpty()));
});

it('the usage worker leaves late jobs in the queue for others while half of its places have some', async () => {
  const late = { timestamp: '2020-01-01T00:00:00Z' };
  for (let n = 0; n < 8; n += 1) await queue.add('usage', event(late));
  for (let n = 0; n < 4; n += 1) await queue.add('usage', event());
  let release = () => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  start({
    concurrency: 4,
    store: async (batch) => {
      if (batch.some((intake) => intake.accepted.earliest < Date.now() - 3_600_000)) await gate;
      stored.push(...batch);
    },
  });
  await until('current events are stored', WITHIN_MS, async () => accepted() === 4);
  release();
  await until('late ones are stored, too', WITHIN_MS, async () => accepted() === 12 && (await isEmpty()));
});

it('the usage worker puts jobs that cannot be stored before a shutdown back into the queue', async () => {
  await queue.addBulk(Array.from({ length: 30 }, () => ({ name: 'usage', data: event() })));
  const givesUp = new AbortController();
  const aborted = abortable(new Promise<void>(() => {}), givesUp.signal);
  // Redis has them in work a moment before the first of them is stored.
  aborted.catch(() => undefined);
  const store = () => aborted;
  const started = start({ givesUp: givesUp.signal, store });
  await until('all are in work', WITHIN_MS, async () => (await queue.getActiveCount()) === 30);
  givesUp.abort();
  await started.close();
  worker = undefined;
  expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 30, active: 0 });
});

it('the usage worker says what Redis refuses to a worker that may take jobs and not acknowledge them, until it may', async () => {
  const user = uniquePrefix();
  await redis.acl('SETUSER', user, 'on', '>secret', '+@all', '~*', '&*', '-lrem');
  const address = new URL(url);
  [address.username, address.password] = [user, 'secret'];
  const refused = start({ address: address.href });
  try {
    await queue.add('usage', event());
    await until('it has said so', WITHIN_MS, async () => refused.queueError !== undefined);
    expect(refused.queueError).toMatch(/NOPERM|can't run this command/);
    expect(refused.unacknowledged).toBe(1);
    await redis.acl('SETUSER', user, '+lrem');
    await queue.add('usage', event());
    await until('it acknowledges', WITHIN_MS, async () => refused.queueError === undefined);
  } finally {
    await refused.close();
    worker = undefined;
    await redis.acl('DELUSER', user);
  }
});

it('the usage worker keeps a job that fails by a defect among the failed ones', async () => {
  await queue.add('usage', event(), { removeOnFail: true });
  start({ store: () => Promise.reject(new Error('a defect')) });
  await until('it has failed', WITHIN_MS, async () => (await queue.getFailedCount()) === 1);
});
