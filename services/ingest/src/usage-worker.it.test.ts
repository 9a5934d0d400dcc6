/** What the worker does with the jobs of producers, on a real Redis, with a store that is a list; and what the admin port says of it. */

import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, expect, it } from '@jest/globals';
import { abortable, DEFAULT_PRICE_BOOK, QUEUE_NAME } from '@meterline/catalog';
import { createRedisClient } from '@meterline/service/access';
import { createRegistry } from '@meterline/service/metrics';
import { openQueueConnection } from '@meterline/service/queue';
import { Queue } from 'bullmq';
import { pino } from 'pino';
import { SANDBOX_EVENT } from '../../../test/harness/events.js';
import { testRedisUrl, uniquePrefix } from '../../../test/harness/stack.js';
import { until } from '../../../test/harness/waiting.js';
import { isConsuming, openAdminPort } from './admin.js';
import { JobPreparer, type PreparedJob } from './intake.js';
import { Lanes } from './lanes.js';
import { createIngestMetrics } from './metrics.js';
import { UsageWorker } from './usage-worker.js';

const url = testRedisUrl();
const log = pino({ level: 'silent' });
const redis = createRedisClient(url, { lazyConnect: true });
let prefix: string;
let queue: Queue;
let stored: PreparedJob[];
const closing: (() => Promise<void>)[] = [];
beforeEach(() => {
  prefix = uniquePrefix();
  queue = new Queue(QUEUE_NAME, { connection: { url }, prefix });
  stored = [];
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await queue.obliterate({ force: true });
  await queue.close();
});
afterAll(() => redis.disconnect());

const LATE = { timestamp: '2020-01-01T00:00:00Z' };
const LATE_MS = Date.parse(LATE.timestamp);
const event = (changes: object = {}) => ({
  ...SANDBOX_EVENT,
  eventId: randomUUID(),
  timestamp: new Date().toISOString(),
  ...changes,
});
const accepted = () => stored.reduce((sum, prepared) => sum + prepared.accepted.length, 0);
const holds = (condition: () => Promise<boolean> | boolean) => until(String(condition), async () => condition());
const allDone = (events: number) =>
  holds(async () => {
    const open = await queue.getJobCountByTypes('wait', 'active', 'delayed');
    return open === 0 && accepted() === events;
  });

const keep = async (batch: readonly PreparedJob[]): Promise<void> => void stored.push(...batch);
/** A store that keeps batches once it is open; @param isHeld which of them */
function gated(isHeld: (batch: readonly PreparedJob[]) => boolean = () => true) {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  const store = async (batch: readonly PreparedJob[]) => {
    if (isHeld(batch)) await opened;
    await keep(batch);
  };
  return { store, open };
}

/** @param store what becomes of a batch */
function start({
  store = keep,
  givesUp = new AbortController().signal,
  concurrency = 50,
  maxDataInWork = 1_000_000,
  address = url,
} = {}) {
  const lanes = new Lanes({ maxRows: 65_000, flushMs: 20, maxSlices: 1_000, sealDelayMs: 300_000, store });
  const worker = new UsageWorker({
    connection: openQueueConnection(address),
    ...{ prefix, concurrency, maxDataInWork, lanes, givesUp, log, lockMs: 15_000 },
    preparer: new JobPreparer(DEFAULT_PRICE_BOOK),
    closedBefore: () => 0,
    metrics: createIngestMetrics(createRegistry('ingest')),
    telemetry: undefined,
  });
  worker.run();
  closing.push(() => worker.close());
  return { worker, lanes };
}

it('the usage worker keeps the last 20 jobs that it has completed, whatever their options say', async () => {
  await queue.add('usage', event(), { deduplication: { id: 'once' } });
  for (let n = 0; n < 24; n += 1) await queue.add('usage', event(), { removeOnComplete: false });
  start();
  await allDone(25);
  expect(await queue.getJobCounts('failed', 'completed')).toEqual({ failed: 0, completed: 20 });
});

it.each(['unsuccessful', 'dependencies'])(
  'the usage worker stores the rows of a flow parent with %s children, although BullMQ then fails the job',
  async (kind) => {
    const { id = '' } = await queue.add('usage', event());
    const children = `${queue.toKey(id)}:${kind}`;
    await (kind === 'unsuccessful' ? redis.zadd(children, 1, 'child') : redis.sadd(children, 'child'));
    start();
    await holds(async () => (await queue.getFailedCount()) === 1);
    expect(accepted()).toBe(1);
  },
);

it('the usage worker sends no event of a schedule again', async () => {
  const { id = '' } = await queue.add('usage', event());
  await redis.hset(queue.toKey(id), { rjk: 'schedule', defa: 'a child failed' });
  start();
  await allDone(1);
  expect(await queue.getJobCounts('failed', 'completed')).toEqual({ failed: 0, completed: 1 });
});

it('the usage worker rejects a job whose data is gone from Redis as lost and received now, and blames no producer', async () => {
  const { id = '' } = await queue.add('usage', event());
  await redis.del(queue.toKey(id));
  const before = Date.now();
  start();
  await holds(() => stored.length === 1);
  expect(stored.flatMap(({ rejected }) => rejected)).toMatchObject([{ jobId: id, reason: 'job_lost' }]);
  expect(stored[0]?.job.receivedAt).toBeGreaterThanOrEqual(before);
  expect(stored[0]?.rejected[0]?.message).toContain('evicted or deleted in Redis');
  await allDone(0);
});

it('the usage worker takes no further job while the data of jobs in progress exceeds its limit, and continues once they are stored', async () => {
  for (let n = 0; n < 10; n += 1) await queue.add('usage', { events: [event(), event()] });
  const { store, open } = gated();
  start({ maxDataInWork: 1_500, store });
  await holds(async () => (await queue.getActiveCount()) >= 2);
  expect(await queue.getActiveCount()).toBeLessThan(5);
  open();
  await allDone(20);
});

it('the usage worker leaves late jobs in the queue for others while half of its places have some', async () => {
  for (let n = 0; n < 8; n += 1) await queue.add('usage', event(LATE));
  for (let n = 0; n < 4; n += 1) await queue.add('usage', event());
  const isLate = ({ accepted: { earliest } }: PreparedJob) => earliest === LATE_MS;
  const { store, open } = gated((batch) => batch.some(isLate));
  start({ concurrency: 4, store });
  await holds(() => accepted() === 4);
  open();
  await allDone(12);
});

it('the usage worker stores the current events of a job while late ones of another account must wait', async () => {
  for (let n = 0; n < 4; n += 1) await queue.add('usage', event(LATE));
  await queue.add('usage', {
    events: [event({ ...LATE, accountId: 'late' }), event({ accountId: 'current' }), event({ usage: -1 })],
  });
  const { store, open } = gated((batch) => batch.some(({ accepted: { earliest } }) => earliest === LATE_MS));
  const rejections: number[] = [];
  const counting = (batch: readonly PreparedJob[]) => {
    rejections.push(...batch.map(({ rejected }) => rejected.length));
    return store(batch);
  };
  start({ concurrency: 4, store: counting });
  await holds(() => accepted() === 1);
  // It is judged when its job is stored whole: an event that comes too early may be accepted then.
  expect(rejections).not.toContain(1);
  open();
  // The current event is stored again with the late one of its job.
  await allDone(7);
});

it('the usage worker puts jobs that cannot be stored before a shutdown back into the queue', async () => {
  await queue.addBulk(Array.from({ length: 30 }, () => ({ name: 'usage', data: event() })));
  const givesUp = new AbortController();
  const aborted = abortable(new Promise<void>(() => {}), givesUp.signal);
  // Redis has them in work a moment before the first of them is stored.
  aborted.catch(() => undefined);
  const { worker } = start({ givesUp: givesUp.signal, store: () => aborted });
  await holds(async () => (await queue.getActiveCount()) === 30);
  givesUp.abort();
  await worker.close();
  expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 30, active: 0 });
});

it('the usage worker keeps a job that fails by a defect among the failed ones, and has none in work then', async () => {
  await queue.add('usage', event(), { removeOnFail: true });
  const { worker } = start({ store: () => Promise.reject(new Error('a defect')) });
  await holds(async () => (await queue.getFailedCount()) === 1);
  await holds(() => worker.state.unacknowledged === 0);
});

it('the usage worker reports the error of Redis while it may take jobs but not acknowledge them', async () => {
  const user = uniquePrefix();
  await redis.acl('SETUSER', user, 'on', '>secret', '+@all', '~*', '&*', '-lrem');
  closing.push(async () => void (await redis.acl('DELUSER', user)));
  const address = new URL(url);
  [address.username, address.password] = [user, 'secret'];
  const { worker } = start({ address: address.href });
  await queue.add('usage', event());
  await holds(() => worker.state.queueError !== undefined);
  expect(worker.state.queueError).toMatch(/NOPERM|can't run this command/);
  expect(worker.state.unacknowledged).toBe(1);
  await redis.acl('SETUSER', user, '+lrem');
  await queue.add('usage', event());
  await holds(() => worker.state.queueError === undefined);
});

/** The status of the health check, and the gauge, when the clock of the admin port is so many seconds ahead. */
async function openPort({ worker, lanes }: ReturnType<typeof start>) {
  const registry = createRegistry('ingest');
  let secondsLater = 0;
  const clock = () => Date.now() + secondsLater * 1000;
  const env = { ADMIN_PORT: 0, LISTEN_HOST: '127.0.0.1', QUEUE_PREFIX: prefix, REDIS_URL: url };
  const watched = { worker, lanes, store: { isClickHouseAway: false }, clock };
  const admin = await openAdminPort(env, registry, watched, log);
  closing.push(async () => admin?.close());
  return async (later: number) => {
    secondsLater = later;
    const health = await fetch(`http://127.0.0.1:${admin?.port}/healthz`, { headers: { connection: 'close' } });
    const gauge = await registry.getSingleMetric('meterline_consuming')?.get();
    return [health.status, gauge?.values[0]?.value];
  };
}

it('the admin port reports a worker that has acknowledged no job for a minute as not consuming, until it acknowledges one', async () => {
  await queue.add('usage', event());
  const { store, open } = gated();
  const says = await openPort(start({ store }));
  await holds(async () => (await queue.getActiveCount()) === 1);
  expect([await says(0), await says(61)]).toEqual([
    [200, 1],
    [503, 0],
  ]);
  open();
  await allDone(1);
  expect(await says(61)).toEqual([200, 1]);
});

const NOW = 10_000_000;
const [LONG_AGO, RECENTLY] = [NOW - 60_000, NOW - 59_999];
it.each([
  ['consumes while nothing waits', true, {}],
  ['does not consume while jobs wait and it has taken none for a minute', false, { waitingJobs: 5 }],
  ['does not consume while it is not known whether jobs wait', false, { waitingJobs: undefined }],
  ['consumes while jobs wait and it has taken one', true, { waitingJobs: 5, lastProgressAt: RECENTLY }],
  ['consumes while jobs wait for a server that is away', true, { waitingJobs: 5, outage: true }],
])('a worker %s', (_, consumes, changes) => {
  const idle = { waitingJobs: 0, unacknowledged: 0, lastProgressAt: LONG_AGO, outage: false };
  expect(isConsuming({ ...idle, ...changes }, NOW)).toBe(consumes);
});
