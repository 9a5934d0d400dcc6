/**
 * What services say of a server that is away, in log, health and metrics, that they go on by themselves when it is back, and that workers end in
 * order meanwhile. That nothing is lost or doubled is shown by test/faults; here it is that of masters which Sentinels replace.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openEmitter } from '@meterline/emitter';
import { type RunningServer, type Servers, startServers } from '@meterline/local-stack';
import { createRedisClient } from '@meterline/service/access';
import { Queue, Worker } from 'bullmq';
import { TcpProxy } from '../faults/tcp-proxy.js';
import { usageEvent } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { freeze, whileFrozen } from '../harness/programs.js';
import { drained, enqueue, stored } from '../harness/queue.js';
import { startWatchedRedis } from '../harness/redis-servers.js';
import { type ServiceProcess, startIngest, startQuery, withConstants } from '../harness/services.js';
import { testRedisUrl, uniquePrefix } from '../harness/stack.js';
import { until } from '../harness/waiting.js';
import { adminUrl, scrape } from '../observability/scrape.js';

const SECONDS = 1_000;

const constants = (of: Readonly<Record<string, number>>) => ({ METERLINE_CONSTANTS: JSON.stringify(of) });

/** Until the gauge says of ClickHouse and Redis that they are away, or not: `0,1`. */
const reports = (url: string, outages: string) =>
  until(`outages are ${outages}`, async () => {
    const { value } = await scrape(url);
    return ['ClickHouse', 'Redis'].map((server) => value(`meterline_outage{server="${server}"}`)).join() === outages;
  });

const healthOf = async (url: string) => {
  const health = await fetch(`${url}/healthz`);
  return [health.status, await health.json()];
};

/** What the worker said, each thing once, however long the outage was; on a busy machine also that a lock was renewed late. */
function saidOnce(worker: ServiceProcess): unknown[] {
  expect(worker.errorLines()).toEqual([]);
  const said = worker.entries().filter(({ event }) => event !== 'queue_error');
  expect(said.length).toBeLessThan(10);
  return [...new Set(said.map(({ event }) => event))];
}
const ONE_OUTAGE = ['migrated', 'started', 'outage', 'outage_over'];

describe('with servers of its own', () => {
  let servers: Servers;
  let clickhouse: RunningServer;
  let redis: RunningServer;
  let product: Product;
  beforeEach(async () => {
    servers = await startServers();
    ({ clickhouse, redis } = servers);
    product = await startProduct({ clickhouse: servers.clickhouse, redisUrl: redis.url });
  });
  afterEach(async () => {
    await product.close();
    await Promise.all([redis.kill(), clickhouse.kill()]);
    await servers.stop();
  });

  async function restartRedis(): Promise<void> {
    redis = await redis.restart();
  }
  const inWork = (jobs: number) =>
    until(`${jobs} jobs are in work`, async () => (await product.queue.getActiveCount()) === jobs);
  const someAreStored = () => until('some rows are stored', async () => (await stored(product.warehouse)).events > 0);
  async function allAreStored(events: number): Promise<void> {
    await drained(product.queue);
    expect(await stored(product.warehouse)).toEqual({ events, usage: events });
  }

  it('a worker whose ClickHouse is away says so in log, health and metrics, fails no job, and goes on by itself when it is back', async () => {
    const worker = await product.startIngest({ ADMIN_PORT: '0', ...constants({ batchRows: 1_000 }) });
    const url = await adminUrl(worker);
    await reports(url, '0,0');
    await enqueue(product.queue, 2_000, 10);
    await someAreStored();
    await clickhouse.kill();
    // A slow test may have left the worker nothing to store until here.
    await enqueue(product.queue, 500, 10, 20_000);
    await worker.entry(({ event }) => event === 'outage');
    await until('an insert is tried again', async () => {
      return ((await scrape(url)).value('meterline_insert_retries_total{table="usage_events"}') ?? 0) >= 2;
    });
    const { value } = await scrape(url);
    expect(value('meterline_consuming')).toBe(1);
    expect(value('meterline_events_accepted_total')).toBeLessThan(25_000);
    const statements = 'meterline_clickhouse_statement_duration_seconds_count';
    expect(value(`${statements}{statement="insert_usage_events",outcome="unanswered"}`)).toBeGreaterThanOrEqual(2);
    await reports(url, '1,0');
    expect(await healthOf(url)).toMatchObject([200, { outage: true }]);

    clickhouse = await clickhouse.restart();
    await allAreStored(25_000);
    await reports(url, '0,0');
    expect(saidOnce(worker)).toEqual(ONE_OUTAGE);
  });

  it.each([
    ['is killed', true, () => redis.kill(), restartRedis],
    ['hangs', false, () => freeze(redis.pid), async () => void process.kill(redis.pid, 'SIGCONT')],
  ])(
    'a worker whose Redis %s reports all metrics but those of the queue, is healthy, and goes on by itself when it is back',
    async (_, isNoticed, fail, restore) => {
      const worker = await product.startIngest({ ADMIN_PORT: '0', ...constants({ batchRows: 500, concurrency: 50 }) });
      const url = await adminUrl(worker);
      await enqueue(product.queue, 2_000, 10);
      await someAreStored();
      expect((await scrape(url)).names).toContain('meterline_queue_jobs');
      await fail();
      await reports(url, '0,1');
      const { value, names } = await scrape(url);
      expect(names).not.toContain('meterline_queue_jobs');
      expect(names).not.toContain('meterline_queue_oldest_waiting_age_seconds');
      expect(value('process_resident_memory_bytes')).toBeGreaterThan(0);
      // A Redis that hangs keeps its connections, by which the worker would notice.
      if (isNoticed) await worker.entry(({ event }) => event === 'outage');
      expect(await healthOf(url)).toMatchObject([200, isNoticed ? { outage: true } : {}]);

      await restore();
      await allAreStored(20_000);
      await reports(url, '0,0');
      if (isNoticed) expect(saidOnce(worker)).toEqual(ONE_OUTAGE);
    },
  );

  it('a query service that nobody asks reports each server that is killed or hangs, and its return', async () => {
    const url = await adminUrl(await product.startQuery({ ADMIN_PORT: '0' }));
    await reports(url, '0,0');
    await clickhouse.kill();
    await reports(url, '1,0');
    await redis.kill();
    await reports(url, '1,1');
    [clickhouse, redis] = await Promise.all([clickhouse.restart(), redis.restart()]);
    await reports(url, '0,0');
    await whileFrozen(redis.pid, () => reports(url, '0,1'));
    await reports(url, '0,0');
    await whileFrozen(clickhouse.pid, () => reports(url, '1,0'));
    await reports(url, '0,0');
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
    const taken = () => product.queue.getJobCountByTypes('active', 'delayed');
    await until('all jobs were taken', async () => (await taken()) === 300);

    // A worker that waited for its insert would not give its jobs back.
    expect(await worker.stop()).toBe(0);
    expect(await product.queue.getJobCounts('active', 'failed')).toEqual({ active: 0, failed: 0 });
    expect(await product.queue.getJobCountByTypes('waiting', 'delayed')).toBe(300);
    expect(worker.entries().at(-1)).toMatchObject({ event: 'stopped' });

    await clickhouse.kill();
    clickhouse = await clickhouse.restart();
    await product.startIngest();
    await allAreStored(3_000);
  });

  /** Rows wait for others long enough that their jobs are certainly in work; it would have to be killed if it waited for them, or for Redis. */
  it.each([
    ['does not wait for a Redis that is away, and loses nothing', true],
    ['does not wait for rows to fill a batch', false],
  ])('a worker that is asked to stop %s', async (_, isAway) => {
    const worker = await product.startIngest(constants({ shutdownMs: isAway ? 1_000 : 8_000, flushMs: 60_000 }));
    await enqueue(product.queue, 20, 10);
    await inWork(20);
    if (isAway) await redis.kill();
    expect(await worker.stop()).toBe(0);
    if (!isAway) return allAreStored(200);
    await restartRedis();
    await product.startIngest();
    await allAreStored(200);
  });
});

/** As when a firewall forgets them; new ones work. */
it('a worker and other clients replace connections that fell silent for ever, and an idle worker keeps its own', async () => {
  const prefix = uniquePrefix();
  const address = new URL(testRedisUrl());
  const proxy = await TcpProxy.open(Number(address.port));
  address.port = String(proxy.port);
  // As a worker has them: it waits for Redis as long as it takes.
  const open = () => createRedisClient(address.href, { maxRetriesPerRequest: null, retryStrategy: () => 100 });
  const [redis, connection, straight] = [open(), open(), createRedisClient(testRedisUrl(), {})];
  for (const each of [redis, connection]) each.on('error', () => undefined);
  const queue = new Queue('silent', { connection: straight, prefix });
  const worker = new Worker('silent', async () => undefined, { connection, prefix });
  worker.on('error', () => undefined);
  const done: string[] = [];
  worker.on('completed', ({ name }) => void done.push(name));
  const isDone = (...names: string[]) => until(`${names} are done`, async () => done.join() === names.join());
  try {
    await queue.add('first', {});
    await isDone('first');
    const ids = async () =>
      String(await straight.client('LIST')).match(new RegExp(`id=\\d+(?=.* name=${prefix})`, 'g'));
    const before = await ids();
    // Longer than a connection may be silent that owes a response: the worker waits for jobs, in pieces of five seconds.
    await delay(20 * SECONDS);
    expect([before?.length, await ids()]).toEqual([1, before]);
    proxy.forsake();
    await queue.add('second', {});
    expect(await redis.ping()).toBe('PONG');
    await isDone('first', 'second');
  } finally {
    await worker.close(true);
    await queue.close();
    for (const each of [redis, connection, straight]) each.disconnect();
    await proxy.close();
  }
});

it('a worker stores every event once while masters are killed and frozen, and Sentinels replace them', async () => {
  const redis = await startWatchedRedis();
  const product = await startProduct({ redisUrl: `redis://127.0.0.1:${redis.servers[0].port}` });
  const watched = { REDIS_URL: `${redis.url}?replicas=1` };
  const problems: string[] = [];
  const emitter = await openEmitter({
    url: (await product.startCollector(watched)).url,
    apiKey: await product.key('acme', 'emitter'),
    batchEvents: 1,
    onProblem: ({ message, ...more }) => problems.push(`${message} ${String('cause' in more ? more.cause : '')}`),
  });
  const maintaining = withConstants(watched, { maintenanceEveryMs: 500 });
  const workers = [await product.startIngest(maintaining), await product.startIngest(maintaining)];
  let [recorded, isOver] = [0, false];
  const recording = (async () => {
    for (; !isOver; recorded += 1) {
      emitter.record(usageEvent(recorded));
      await delay(5);
    }
  })();
  try {
    let [master, replica] = redis.servers;
    for (let round = 0; round < 6; round += 1) {
      const { sent } = emitter.counters;
      const accepts = async () => emitter.counters.sent >= sent + 50;
      await until('the master has accepted events', accepts);
      const isFrozen = round % 2 === 1;
      if (isFrozen) master.signal('SIGSTOP');
      else await master.kill();
      await redis.promote(replica);
      // The workers go on with the new master, which accepts nothing while it has no replica.
      await delay(SECONDS);
      // A server that was frozen believes that it is the master still, until a Sentinel tells it.
      if (isFrozen) await master.kill();
      await redis.rejoin(master);
      [master, replica] = [replica, master];
    }
    isOver = true;
    await recording;
    await emitter.close({ timeoutMs: 600 * SECONDS });
    const { counters } = emitter;
    expect({ counters, last: counters.unsent > 0 ? problems.slice(-3) : [] }).toMatchObject({
      counters: { sent: recorded, dropped: 0, rejected: 0, unsent: 0 },
      last: [],
    });
    const all = async () => (await stored(product.warehouse)).events >= recorded;
    await until('all is stored', all);
    expect(await stored(product.warehouse)).toEqual({ events: recorded, usage: recorded });
    expect(await Promise.all(workers.map((worker) => worker.stop()))).toEqual([0, 0]);
  } finally {
    isOver = true;
    // An emitter that is left open would keep this process for ever.
    await emitter.close({ timeoutMs: 0 });
    await product.close();
    await redis.close();
  }
});
