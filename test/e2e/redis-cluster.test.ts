/** All services on a Redis Cluster, with two queues and a third one that only a producer knows. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { createRedisClient } from '@meterline/access';
import { SharedLimits } from '@meterline/api';
import { QUEUE_NAME, queuePrefixOf } from '@meterline/catalog';
import { openEmitter } from '@meterline/emitter';
import { Queue } from 'bullmq';
import { runCommand } from '../cli/run-command.js';
import { type RedisCluster, startRedisCluster } from '../redis-topology.js';
import { killServices, startCollector, startIngest, startQuery } from '../services.js';
import { createTestDatabase, databaseVariables, type TestDatabase } from '../stack.js';
import { stored, until, usageEvent } from './pipeline.js';

jest.setTimeout(600_000);

let cluster: RedisCluster;
let database: TestDatabase;
let prefix: string;
let env: Record<string, string>;

beforeAll(async () => {
  [cluster, database] = await Promise.all([startRedisCluster(), createTestDatabase()]);
  prefix = await prefixApart();
  env = {
    ...databaseVariables(database.options),
    REDIS_URL: cluster.url,
    QUEUE_PREFIX: prefix,
    QUEUE_SHARDS: '2',
  };
});
afterAll(async () => {
  await killServices();
  await Promise.all([cluster.close(), database.drop()]);
});

/** Of queues of which the second is alone on its master: neither keys of accounts nor the first queue are there. */
async function prefixApart(): Promise<string> {
  const others = [await cluster.masterOf('{meterline}'), await cluster.masterOf('{meterline:collector}')];
  for (let n = 0; n < 1_000; n += 1) {
    const own = `test${n}`;
    const [first, second] = [await cluster.masterOf(`{${own}}`), await cluster.masterOf(`{${own}-1}`)];
    if (first !== second && !others.includes(second)) return own;
  }
  throw new Error('no prefix puts the second queue on a master of its own');
}

it('counts requests and leases statements for all processes together', async () => {
  const [one, other] = [cluster.connect(), cluster.connect()];
  const limits = {
    accountRate: { perSecond: 1, burst: 1 },
    callerRate: { perSecond: 1, burst: 1 },
    account: 1,
    caller: 1,
  };
  const [first, second] = [one, other].map((redis) => new SharedLimits(redis, 'test', limits));
  const party = { account: 'acme', caller: 'a' };
  expect(await first?.enter(party, { counts: true, leases: true })).toMatchObject({ account: { waitMs: 0 } });
  expect(await second?.enter(party, { counts: false, leases: true })).toMatchObject({ full: 'account' });
  expect((await second?.enter(party, { counts: true, leases: false }))?.account.waitMs).toBeGreaterThan(0);
  for (const redis of [one, other]) redis.disconnect();
});

it('waits with a command for a master that is away', async () => {
  const redis = createRedisClient(cluster.url, { maxRetriesPerRequest: null, waitsForNodes: true });
  redis.on('error', () => undefined);
  try {
    const away = await cluster.masterOf('key');
    await redis.set('key', 'before');
    await away.kill();
    const written = redis.set('key', 'after').catch((error: unknown) => error);
    // ioredis by itself asks 16 times, for about two seconds.
    await delay(5_000);
    await cluster.restart(away);
    expect(await written).toBe('OK');
  } finally {
    redis.disconnect();
  }
});

async function createKey(role: string, account = 'acme'): Promise<string> {
  const { stdout } = await runCommand(['keys', 'create', '--account', account, '--role', role, '--json'], { env });
  return JSON.parse(stdout).key;
}

it('connects, and starts services, while a master is away: the other queue is worked off at once, and this one when it is back', async () => {
  const emitterKey = await createKey('emitter', 'starting');
  const away = await cluster.masterOf(`{${prefix}-1}`);
  await away.kill();
  // Each asks any of the nodes how the Cluster is.
  const connections = Array.from({ length: 20 }, () => createRedisClient(cluster.url, { lazyConnect: true }));
  await Promise.all(connections.map((redis) => redis.connect()));
  for (const redis of connections) redis.disconnect();

  const [worker, collector, query] = await Promise.all([
    startIngest({ ...env, ADMIN_PORT: '0' }),
    startCollector(env),
    startQuery({ ...env, CURSOR_SECRET: 'x'.repeat(32) }),
  ]);
  const post = async (n: number) => {
    const answer = await fetch(`${collector.url}/v0/accounts/starting/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${emitterKey}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify([usageEvent(n, { accountId: 'starting' })]),
    });
    return answer.status;
  };
  const events = async () => (await stored(database.warehouse, 'starting')).events;
  for (let n = 0; n < 5; n += 1) expect(await post(n)).toBe(202);
  await until('the queue that is there is emptied', 30_000, async () => (await events()) === 5);
  await worker.entry(({ event, server }) => event === 'outage' && server === 'Redis');
  expect(collector.entries()).toContainEqual(expect.objectContaining({ event: 'queue_away', shard: 1 }));

  await cluster.restart(away);
  await worker.entry(({ event, server }) => event === 'outage_over' && server === 'Redis');
  const readiness = async () => (await fetch(`${collector.url}/readyz`, { headers: { connection: 'close' } })).json();
  await until('the collector fills both', 30_000, async () => (await readiness()).degraded === undefined);
  for (let n = 5; n < 10; n += 1) expect(await post(n)).toBe(202);
  await until('both queues are emptied', 30_000, async () => (await events()) === 10);
  for (const service of [worker, collector, query]) expect(await service.stop()).toBe(0);
});

it('takes events while a master is away, loses and doubles none, and leaves no queue behind', async () => {
  const [emitterKey, adminKey] = [await createKey('emitter'), await createKey('admin')];
  const worker = await startIngest({ ...env, ADMIN_PORT: '0' });
  const [collector, query] = await Promise.all([
    startCollector(env),
    startQuery({ ...env, CURSOR_SECRET: 'x'.repeat(32) }),
  ]);
  let sent = 0;
  const post = async () => {
    const answer = await fetch(`${collector.url}/v0/accounts/acme/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${emitterKey}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify([usageEvent(sent)]),
    });
    if (answer.status === 202) sent += 1;
    return answer.status;
  };
  for (let n = 0; n < 10; n += 1) expect(await post()).toBe(202);
  // Both queues had their turns.
  await until('all events are stored', 30_000, async () => (await stored(database.warehouse)).events === sent);
  const status = await runCommand(['queue', 'status', '--json'], { env });
  expect(JSON.parse(status.stdout)).toMatchObject({ queues: 2, waiting: 0, workers: 1 });

  const away = await cluster.masterOf(`{${prefix}-1}`);
  await away.kill();
  for (let n = 0; n < 10; n += 1) expect(await post()).toBe(202);
  await until('the first queue goes on', 30_000, async () => (await stored(database.warehouse)).events === sent);
  const ready = await (await fetch(`${collector.url}/readyz`)).json();
  expect(ready).toMatchObject({ degraded: [{ message: expect.stringContaining('1 of 2 queues') }] });
  await cluster.restart(away);

  // Producers may be configured with more queues than the workers.
  const emitter = await openEmitter({ url: cluster.url, queuePrefix: prefix, queueShards: 3, batchEvents: 1 });
  for (let n = 0; n < 30; n += 1) emitter.record(usageEvent(sent + n));
  await emitter.close({ timeoutMs: 30_000 });
  expect(emitter.counters).toMatchObject({ sent: 30 });
  sent += 30;
  const own = cluster.connect();
  const third = new Queue(QUEUE_NAME, { connection: own, prefix: queuePrefixOf(prefix, 2, true) });
  await until(
    'the third queue is emptied',
    30_000,
    async () => (await third.getJobCountByTypes('waiting', 'active')) === 0,
  );
  await until('all events are stored', 30_000, async () => (await stored(database.warehouse)).events === sent);
  expect(await third.getCompletedCount()).toBeGreaterThan(0);
  expect(worker.entries()).toContainEqual(expect.objectContaining({ event: 'queue_found', shard: 2 }));

  const window = 'startTime=2026-01-01T00:00:00Z&endTime=2026-01-02T00:00:00Z';
  const answer = await fetch(`${query.url}/v0/accounts/acme/metrics?${window}`, {
    headers: { authorization: `Bearer ${adminKey}`, connection: 'close' },
  });
  expect([answer.status, await answer.json()]).toMatchObject([200, { summary: { totalCost: 50 * 0.000_011_5 } }]);
  expect(await stored(database.warehouse)).toEqual({ events: 50, usage: 50 });
  await third.close();
  own.disconnect();
  for (const service of [worker, collector, query]) {
    expect(service.log()).not.toMatch(/CROSSSLOT/);
    expect(await service.stop()).toBe(0);
  }
});
