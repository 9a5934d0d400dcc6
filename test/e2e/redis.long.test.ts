/**
 * What becomes of the queue with its Redis. One with exactly the users of redis/users.conf, as docker-compose.yml starts it, keeps everything
 * when it is started again: on the server of PATH; METERLINE_TEST_REDIS_SERVERS names more, separated by colons (test/containers/redis-servers.sh
 * has two). One that is full is emptied by the workers. One that Sentinels replace has what was promised with `replicas=1`.
 */
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { QUEUE_NAME } from '@meterline/catalog';
import { findFreePort, type RedisUser, startServers } from '@meterline/local-stack';
import { AlertStore } from '@meterline/service/alerts';
import { Queue } from 'bullmq';
import { runCommand } from '../cli/run-command.js';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { usageEvent, usageEvents } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, enqueueData, stored } from '../harness/queue.js';
import { fillRedis, RedisProcess, startWatchedRedis, type WatchedRedis } from '../harness/redis-servers.js';
import { killServices, launchService, startCollector, withConstants } from '../harness/services.js';
import { uniquePrefix } from '../harness/stack.js';
import { testFolder } from '../harness/test-folder.js';
import { until } from '../harness/waiting.js';
import { adminUrl } from '../observability/scrape.js';

const USERS = fileURLToPath(new URL('../../redis/users.conf', import.meta.url));
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'];
const SERVERS = ['redis-server', ...(process.env['METERLINE_TEST_REDIS_SERVERS']?.split(':') ?? [])];

afterAll(() => killServices());

async function readiness(url: string): Promise<string> {
  const response = await fetch(`${url}/readyz`, { headers: { connection: 'close' } });
  return `${response.status} ${await response.text()}`;
}
const becomes = (url: string, text: string) =>
  until(`the collector says ${text}`, async () => (await readiness(url)).includes(text));

describe.each(SERVERS)('%s', (binary) => {
  let server: RedisProcess;
  afterEach(() => server.kill());
  const folder = testFolder('each test');
  beforeEach(async () => {
    const admin = { username: 'admin', password: 'ADMIN_PASSWORD' };
    server = new RedisProcess(await findFreePort(), folder(), admin, binary);
    await server.start(USERS, ...DURABLE);
  });

  const urlOf = (user: RedisUser) => `redis://${user}:${user.toUpperCase()}_PASSWORD@127.0.0.1:${server.port}`;

  /** Every key with all that it holds, by name. */
  const contents = () =>
    server.command(async (redis) => {
      const value = async (name: string) => {
        const type = await redis.type(name);
        if (type === 'hash') return redis.hgetall(name);
        if (type === 'list') return redis.lrange(name, 0, -1);
        if (type === 'zset') return redis.zrange(name, '0', '-1', 'WITHSCORES');
        if (type === 'stream') return redis.xrange(name, '-', '+');
        return redis.get(name);
      };
      const names = (await redis.keys('*')).sort();
      return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await value(name)])));
    });

  /** Jobs that wait, that are delayed, and one that was taken; API keys; a paused queue. */
  async function fill(): Promise<void> {
    const env = { REDIS_URL: urlOf('operator') };
    expect((await runCommand(['keys', 'create', '--account', 'acme', '--role', 'admin'], { env })).code).toBe(0);
    const queueOf = (user: RedisUser) => new Queue(QUEUE_NAME, { connection: { url: urlOf(user) } });
    const [producer, worker, operator] = [queueOf('producer'), queueOf('worker'), queueOf('operator')];
    for (const events of [usageEvents(1, 3), usageEvents(4, 2)]) await producer.add('usage', { events });
    await producer.add('usage', { events: usageEvents(6, 1) }, { delay: 3_600_000 });
    await worker.upsertJobScheduler('seal', { every: 3_600_000 });
    await operator.pause();
    await Promise.all([producer, worker, operator].map((queue) => queue.close()));
  }

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'a Redis that %s ended has all jobs, keys and its paused queue when it is started again, also after its file was rewritten',
    async (signal) => {
      await fill();
      await server.command((redis) => redis.bgrewriteaof());
      await until('the append-only file is rewritten', async () =>
        (await server.command((redis) => redis.info('persistence'))).includes('aof_rewrite_in_progress:0'),
      );
      await fill();
      const before = await contents();
      expect(Object.keys(before).length).toBeGreaterThan(10);
      await server.kill(signal);
      await server.start(USERS, ...DURABLE);
      expect(await contents()).toEqual(before);
      expect(server.log).not.toContain('CRITICAL');
    },
  );

  it('a collector takes nothing, and says why, while Redis has left something out of its data', async () => {
    const collector = await startCollector({ REDIS_URL: urlOf('collector') });
    expect(await readiness(collector.url)).toBe('200 {"status":"ready"}');
    const before = await contents();
    const lacking = folder('users.conf');
    await writeFile(lacking, (await readFile(USERS, 'utf8')).replace(/^user default off .*$/m, 'user default off'));
    await server.kill();
    await server.start(lacking, ...DURABLE);
    await becomes(collector.url, 'give its user default all rights');
    expect(await readiness(collector.url)).toMatch(/^503 /);
    await expect(startCollector({ REDIS_URL: urlOf('collector') })).rejects.toThrow('collector was not ready');

    await server.kill('SIGTERM');
    await server.start(USERS, ...DURABLE);
    await becomes(collector.url, '"status":"ready"');
    expect(Object.keys(await contents())).toEqual(Object.keys(before));
    expect(await collector.stop()).toBe(0);
  });

  it('a collector takes nothing, and says why, when Redis comes back empty', async () => {
    const collector = await startCollector({ REDIS_URL: urlOf('collector') });
    await server.kill();
    await rm(folder(String(server.port)), { recursive: true });
    await server.start(USERS, ...DURABLE);
    await becomes(collector.url, 'has lost its data since this collector started');
    expect(await readiness(collector.url)).toMatch(/^503 /);
    expect(await collector.stop()).toBe(0);

    const next = await startCollector({ REDIS_URL: urlOf('collector') });
    expect(await readiness(next.url)).toMatch(/^200 /);
    expect(await next.stop()).toBe(0);
  });

  it('nobody can log in as the user default, with or without a password', async () => {
    const socket = connect(server.port, '127.0.0.1');
    const said = [];
    for (const line of ['GET x', 'AUTH x', 'AUTH default x', 'AUTH default ""']) {
      socket.write(`${line}\r\n`);
      said.push(String(await once(socket, 'data')).split(' ')[0]);
    }
    socket.destroy();
    expect(said).toEqual(['-NOAUTH', '-WRONGPASS', '-WRONGPASS', '-WRONGPASS']);
  });
});

it('a full Redis refuses producers, is emptied by a worker that starts, and the API answers meanwhile', async () => {
  const servers = await startServers({ shards: 0 });
  const product = await startProduct({ redisUrl: servers.redis.url });
  try {
    const { queue, redis, warehouse } = product;
    const key = await product.key('acme', 'admin', 'e2e');
    const query = await product.startQuery();
    const get = (path: string) => fetch(query.url + path, { headers: { authorization: `Bearer ${key}` } });

    const alerts = new AlertStore(redis, uniquePrefix());
    const { deliveries } = alerts;
    const webhook = await deliveries.addTest(await alerts.create('acme', ALERT_SETTINGS, new Date()), new Date(), '{}');

    await enqueue(queue, 100, 100);
    await fillRedis(redis);
    await expect(enqueueData(queue, usageEvent(20_000))).rejects.toThrow('OOM');
    // A delivered webhook that could not be noted would be sent again and again.
    const leaseUntil = Date.now() + 60_000;
    expect(await deliveries.claim(Date.now(), leaseUntil, 1)).toEqual([webhook.id]);
    const attempt = { at: new Date(), outcome: '204', state: 'delivered', leaseUntil, dueAt: 0 } as const;
    await deliveries.noteAttempt(webhook, attempt);
    expect(await deliveries.find(webhook.id)).toMatchObject({ state: 'delivered' });
    expect(await (await get('/readyz')).json()).toMatchObject({ status: 'ready', degraded: [{ server: 'Redis' }] });
    // That the key is used for the first time cannot be written down, which is no reason to refuse.
    expect((await get('/v0/accounts')).status).toBe(200);
    expect((await get('/v0/service_accounts/e2e/api_keys')).status).toBe(200);

    const ingest = await product.startIngest(withConstants({ ADMIN_PORT: '0' }, { maintenanceEveryMs: 1_000 }));
    await drained(queue);
    expect(await stored(warehouse)).toEqual({ events: 10_000, usage: 10_000 });
    const taken = async () => (await enqueueData(queue, usageEvent(20_000)).catch(() => undefined)) !== undefined;
    await until('a producer is taken again', taken);
    await drained(queue);
    expect(await stored(warehouse)).toMatchObject({ events: 10_001 });

    const { adminPort } = await ingest.entry(({ event }) => event === 'started');
    const health = await fetch(`http://127.0.0.1:${adminPort}/healthz`);
    expect([health.status, await health.json()]).toMatchObject([200, { redisFull: false }]);
    expect(await (await get('/readyz')).json()).toEqual({ status: 'ready' });
    expect(await ingest.stop()).toBe(0);
  } finally {
    await product.close();
    await servers.stop();
  }
});

it('every service refuses to start with a Redis that evicts, and a running one is unhealthy or not ready until it does not', async () => {
  const servers = await startServers({ shards: 0 });
  const product = await startProduct({ redisUrl: servers.redis.url, prefix: 'bull' });
  try {
    const running = await Promise.all([
      product.startIngest({ ADMIN_PORT: '0' }),
      product.startAlerts({ ADMIN_PORT: '0' }),
      product.startQuery(),
      product.startCollector(),
    ]);
    const [ingest, alerts, query, collector] = running;
    const pages = [
      ...(await Promise.all([ingest, alerts].map(async (service) => `${await adminUrl(service)}/healthz`))),
      ...[query, collector].map(({ url }) => `${url}/readyz`),
    ];
    const statuses = () =>
      Promise.all(pages.map(async (page) => (await fetch(page, { headers: { connection: 'close' } })).status));
    expect(await statuses()).toEqual([200, 200, 200, 200]);

    await product.redis.config('SET', 'maxmemory-policy', 'volatile-lru');
    await until('all are unfit', async () => (await statuses()).every((status) => status === 503));
    const reason = 'may evict events and API keys, with maxmemory-policy volatile-lru: set maxmemory-policy noeviction';
    for (const page of pages) {
      const response = await fetch(page, { headers: { connection: 'close' } });
      expect(await response.text()).toContain(reason);
    }
    for (const name of ['ingest', 'alerts', 'query', 'collector'] as const) {
      const service = launchService(name, { ...product.env, PORT: '0' });
      expect(await service.exited).toEqual({ code: 1, signal: null });
      expect(service.errorLines()).toEqual([expect.stringContaining(reason)]);
    }

    await product.redis.config('SET', 'maxmemory-policy', 'noeviction');
    await until('all are fit again', async () => (await statuses()).every((status) => status === 200));
    expect(await Promise.all(running.map((service) => service.stop()))).toEqual([0, 0, 0, 0]);
  } finally {
    await product.close();
    await servers.stop();
  }
});

describe('with a replica', () => {
  let redis: WatchedRedis;
  let product: Product;
  beforeAll(async () => {
    redis = await startWatchedRedis();
    product = await startProduct({ redisUrl: `redis://127.0.0.1:${redis.servers[0].port}` });
  });
  afterAll(async () => {
    await product.close();
    await redis.close();
  });

  it.each([
    ['', [1]],
    ['?replicas=1', []],
  ])(
    'a collector and a worker with REDIS_URL=redis://…%s warn of %j replicas at their start',
    async (query, warned) => {
      const own = { REDIS_URL: `${product.env['REDIS_URL']}${query}` };
      for (const service of [await product.startCollector(own), await product.startIngest(own)]) {
        const warnings = service.entries().filter(({ event }) => event === 'replicas_not_awaited');
        expect(warnings.map(({ replicas }) => replicas)).toEqual(warned);
        expect(await service.stop()).toBe(0);
      }
    },
  );

  it('a collector answers for what its master and a replica have, and for nothing else', async () => {
    const [master, replica] = redis.servers;
    const own = { REDIS_URL: `${redis.url}?replicas=1` };
    const create = ['keys', 'create', '--account', 'acme', '--role', 'emitter', '--json'];
    const { key } = JSON.parse((await runCommand(create, { env: own })).stdout);
    const collector = await product.startCollector({ ...own, METERLINE_CONSTANTS: JSON.stringify({ writeMs: 1_000 }) });
    const post = async (n: number) => {
      const { status } = await fetch(`${collector.url}/v0/events`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
        body: JSON.stringify([usageEvent(n)]),
      });
      return status;
    };
    for (let n = 0; n < 10; n += 1) expect(await post(n)).toBe(202);

    // The master has it, on its disk, and has answered. That would be lost.
    replica.signal('SIGSTOP');
    expect(await post(10)).toBe(503);
    await master.kill();
    replica.signal('SIGCONT');
    await redis.promote(replica);
    // Alone it has nobody to pass an event on to.
    await becomes(collector.url, '200 ');
    expect(await post(11)).toBe(503);
    await redis.rejoin(master);
    for (const n of [10, 11, 12]) {
      await until('the event is taken', async () => (await post(n)) === 202);
    }
    const worker = await product.startIngest(withConstants(own, { maintenanceEveryMs: 500 }));
    await until('all events are stored', async () => (await stored(product.warehouse)).events === 13);
    expect(await stored(product.warehouse)).toEqual({ events: 13, usage: 13 });
    expect(await Promise.all([worker.stop(), collector.stop()])).toEqual([0, 0]);
  });
});
