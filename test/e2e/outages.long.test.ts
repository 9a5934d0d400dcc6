/**
 * What services say of a server that is away, in log, health and metrics, that they go on by themselves when it is back, and that workers end in
 * order meanwhile. That nothing is lost or doubled is shown by test/faults.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import {
  DataDirectory,
  type RunningClickHouse,
  type RunningRedis,
  startClickHouse,
  startRedis,
} from '@meterline/local-stack';
import { freeze } from '../harness/faults.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, keepBusy, PATIENCE, stored, until } from '../harness/queue.js';
import { type ServiceProcess, startIngest, startQuery } from '../harness/services.js';
import { adminUrl, scrape } from '../observability/scrape.js';

jest.setTimeout(600_000);

/** After which Prometheus gives up: a scrape that hangs would report nothing. */
const SCRAPE_SECONDS = 10;
const SECONDS = 1_000;

let directory: DataDirectory;
let clickhouse: RunningClickHouse;
let redis: RunningRedis;
let product: Product;
beforeEach(async () => {
  directory = await DataDirectory.open(await mkdtemp(join(tmpdir(), 'meterline-outages-')));
  [clickhouse, redis] = await Promise.all([
    startClickHouse({ dataDir: directory }),
    startRedis({ dataDir: directory }),
  ]);
  product = await startProduct({ clickhouse, redisUrl: redis.url });
});
afterEach(async () => {
  await product.close();
  await Promise.all([redis.kill(), clickhouse.kill()]);
  await rm(directory.path, { recursive: true, maxRetries: 20 });
});

async function restartClickHouse(): Promise<void> {
  clickhouse = await startClickHouse({ dataDir: directory, httpPort: clickhouse.httpPort });
}
async function restartRedis(): Promise<void> {
  redis = await startRedis({ dataDir: directory, port: redis.port });
}

const constants = (of: Readonly<Record<string, number>>) => ({ METERLINE_CONSTANTS: JSON.stringify(of) });

async function quickScrape(url: string) {
  const started = performance.now();
  const page = await scrape(url);
  expect((performance.now() - started) / SECONDS).toBeLessThan(SCRAPE_SECONDS * PATIENCE);
  return page;
}

/** What the gauge says of both servers: `0,1` while Redis is away. */
async function outages(url: string): Promise<string> {
  const { value } = await quickScrape(url);
  return ['ClickHouse', 'Redis'].map((server) => value(`meterline_outage{server="${server}"}`)).join();
}

const healthOf = async (url: string) => {
  const health = await fetch(`${url}/healthz`);
  return [health.status, await health.json()];
};

const someAreStored = () =>
  until('some rows are stored', 10 * SECONDS, async () => (await stored(product.warehouse)).events > 0);

/** Each thing it said once, however long the outage was; on a busy machine also that a lock was renewed late. */
function saidOnce(worker: ServiceProcess): unknown[] {
  expect(worker.errorLines()).toEqual([]);
  const said = worker.entries().filter(({ event }) => event !== 'queue_error');
  expect(said.length).toBeLessThan(10);
  return [...new Set(said.map(({ event }) => event))];
}

it('a worker whose ClickHouse is away says so in log, health and metrics, fails no job, and goes on by itself when it is back', async () => {
  const worker = await product.startIngest({ ADMIN_PORT: '0', ...constants({ batchRows: 1_000 }) });
  const url = await adminUrl(worker);
  expect(await outages(url)).toBe('0,0');
  await enqueue(product.queue, 2_000, 10);
  await someAreStored();
  await clickhouse.kill();
  // A slow test may have left the worker nothing to store until here.
  await enqueue(product.queue, 500, 10, 20_000);
  await worker.entry(({ event }) => event === 'outage');
  await until('an insert is tried again', 20 * SECONDS, async () => {
    return ((await quickScrape(url)).value('meterline_insert_retries_total{table="usage_events"}') ?? 0) >= 2;
  });
  const { value } = await quickScrape(url);
  expect(value('meterline_consuming')).toBe(1);
  expect(value('meterline_events_accepted_total')).toBeLessThan(25_000);
  const statements = 'meterline_clickhouse_statement_duration_seconds_count';
  expect(value(`${statements}{statement="insert_usage_events",outcome="unanswered"}`)).toBeGreaterThanOrEqual(2);
  expect(await outages(url)).toBe('1,0');
  expect(await healthOf(url)).toMatchObject([200, { outage: true }]);

  await restartClickHouse();
  await drained(product.queue);
  expect(await stored(product.warehouse)).toEqual({ events: 25_000, usage: 25_000 });
  expect(await outages(url)).toBe('0,0');
  expect(saidOnce(worker)).toEqual(['migrated', 'started', 'outage', 'outage_over']);
});

it.each([
  ['is killed', () => redis.kill(), restartRedis],
  ['hangs', () => freeze(redis.pid), async () => void process.kill(redis.pid, 'SIGCONT')],
])(
  'a worker whose Redis %s reports all metrics but those of the queue, is healthy, and goes on by itself when it is back',
  async (how, fail, restore) => {
    const env = { ADMIN_PORT: '0', ...constants({ batchRows: 500, concurrency: 50 }) };
    const worker = await product.startIngest(env);
    const url = await adminUrl(worker);
    await enqueue(product.queue, 2_000, 10);
    await someAreStored();
    expect((await quickScrape(url)).names).toContain('meterline_queue_jobs');
    await fail();
    await until('the outage is reported', 20 * SECONDS, async () => (await outages(url)) === '0,1');
    const { value, names } = await quickScrape(url);
    expect(names).not.toContain('meterline_queue_jobs');
    expect(names).not.toContain('meterline_queue_oldest_waiting_age_seconds');
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(0);
    // A Redis that hangs keeps its connections, by which the worker would notice.
    const outage = how === 'is killed';
    if (outage) await worker.entry(({ event }) => event === 'outage');
    expect(await healthOf(url)).toMatchObject([200, outage ? { outage } : {}]);

    await restore();
    await drained(product.queue, 45 * SECONDS);
    expect(await stored(product.warehouse)).toEqual({ events: 20_000, usage: 20_000 });
    await until('the outage is over', 20 * SECONDS, async () => (await outages(url)) === '0,0');
    if (outage) expect(saidOnce(worker)).toEqual(['migrated', 'started', 'outage', 'outage_over']);
  },
);

it('a query service reports each server that is away, and its return', async () => {
  // Nobody else asks the service anything.
  const url = await adminUrl(await product.startQuery({ ADMIN_PORT: '0' }));
  expect(await outages(url)).toBe('0,0');
  await clickhouse.kill();
  await until('ClickHouse is missed', 10 * SECONDS, async () => (await outages(url)) === '1,0');
  await redis.kill();
  await until('Redis is missed too', 10 * SECONDS, async () => (await outages(url)) === '1,1');
  await Promise.all([restartClickHouse(), restartRedis()]);
  await until('both are back', 20 * SECONDS, async () => (await outages(url)) === '0,0');
});

it('a query service reports a server that hangs, whose connections stay open', async () => {
  const url = await adminUrl(await product.startQuery({ ADMIN_PORT: '0' }));
  for (const [server, reported] of [
    [redis, '0,1'],
    [clickhouse, '1,0'],
  ] as const) {
    await freeze(server.pid);
    await until('it is missed', 10 * SECONDS, async () => (await outages(url)) === reported);
    process.kill(server.pid, 'SIGCONT');
    await until('it is back', 20 * SECONDS, async () => (await outages(url)) === '0,0');
  }
});

it('services do not tell the password of Redis when Redis refuses them at its return', async () => {
  const rotated = (password: string) =>
    product.redis.acl('SETUSER', 'rotated', 'on', 'resetpass', `>${password}`, '~*', '&*', '+@all');
  await rotated('s3cret-of-old');
  const address = new URL(redis.url);
  [address.username, address.password] = ['rotated', 's3cret-of-old'];
  const env = { ...product.env, REDIS_URL: address.href };
  const services = await Promise.all([startIngest(env), startQuery(env)]);
  await rotated('s3cret-of-new');
  await product.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  for (const service of services) {
    await service.entry(({ err }) => JSON.stringify(err ?? '').includes('WRONGPASS'));
    expect(service.log()).not.toContain('s3cret');
  }
});

it.each([
  ['refuses connections', () => clickhouse.kill()],
  ['takes connections and never answers', () => freeze(clickhouse.pid)],
])('a worker whose ClickHouse %s gives its jobs back and ends with code 0 within the deadline', async (_, fail) => {
  const worker = await product.startIngest(constants({ shutdownMs: 1_000 }));
  await fail();
  await enqueue(product.queue, 300, 10);
  // The events are late: half of the worker's places are for such jobs, and it puts back those that find none.
  const taken = async () => Object.values(await product.queue.getJobCounts('active', 'delayed'));
  await until('all jobs were taken', 10 * SECONDS, async () => (await taken()).reduce((a, b) => a + b) === 300);

  // A worker that waited for its insert would not give its jobs back.
  expect(await worker.stop()).toBe(0);
  const { active, failed } = await product.queue.getJobCounts('active', 'failed');
  expect([await product.queue.getJobCountByTypes('waiting', 'delayed'), active, failed]).toEqual([300, 0, 0]);
  expect(worker.entries().at(-1)).toMatchObject({ event: 'stopped' });

  await clickhouse.kill();
  await restartClickHouse();
  await product.startIngest();
  await drained(product.queue);
  expect(await stored(product.warehouse)).toEqual({ events: 3_000, usage: 3_000 });
});

/** Rows wait for others long enough that their jobs are certainly in work. */
const SLOW = { shutdownMs: 1_000, flushMs: 60_000 };
const inWork = (jobs: number) =>
  until(`${jobs} jobs are in work`, 10 * SECONDS, async () => (await product.queue.getActiveCount()) === jobs);

it('a worker whose Redis is away ends with code 0 within the deadline, and loses nothing', async () => {
  const worker = await product.startIngest(constants(SLOW));
  await enqueue(product.queue, 20, 10);
  await inWork(20);
  await redis.kill();
  // It would have to be killed if it waited for Redis.
  expect(await worker.stop()).toBe(0);

  await restartRedis();
  await product.startIngest();
  await drained(product.queue, 45 * SECONDS);
  expect(await stored(product.warehouse)).toEqual({ events: 200, usage: 200 });
});

it('a worker that is asked to stop does not wait for rows to fill a batch', async () => {
  await enqueue(product.queue, 20, 1);
  const stopped = await product.startIngest(constants({ flushMs: SLOW.flushMs }));
  await inWork(20);
  // It would have to be killed if it waited as long as the rows do.
  expect(await stopped.stop()).toBe(0);
  expect(await stored(product.warehouse)).toEqual({ events: 20, usage: 20 });
});

it.each(['SIGTERM', 'SIGINT'] as const)(
  'a worker that gets %s under load ends with code 0 and leaves no job in work',
  async (signal) => {
    const env = constants({ batchRows: 500, concurrency: 50 });
    const stopped = await product.startIngest(env);
    await enqueue(product.queue, 1_000, 20);
    const load = keepBusy(product.queue, 20, 20_000);
    await someAreStored();
    process.kill(stopped.pid, signal);
    expect(await stopped.exited).toEqual({ code: 0, signal: null });
    const events = await load.end();
    expect(await product.queue.getJobCounts('active', 'failed')).toEqual({ active: 0, failed: 0 });

    await product.startIngest(env);
    await drained(product.queue);
    expect(await stored(product.warehouse)).toEqual({ events, usage: events });
  },
);
