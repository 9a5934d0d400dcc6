/** A master fails, and the Sentinels make its replica the master: what was promised with `replicas=1` is there. */
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { runCommand } from '../cli/run-command.js';
import { usageEvent } from '../harness/events.js';
import { stored, until } from '../harness/queue.js';
import { startWatchedRedis, type WatchedRedis } from '../harness/redis-servers.js';
import { killServices, startCollector, startIngest, withConstants } from '../harness/services.js';
import { createTestDatabase, databaseVariables, type TestDatabase, uniquePrefix } from '../harness/stack.js';

jest.setTimeout(600_000);

let redis: WatchedRedis;
let database: TestDatabase;
beforeAll(async () => {
  [redis, database] = await Promise.all([startWatchedRedis(), createTestDatabase()]);
});
afterAll(async () => {
  await killServices();
  await Promise.all([redis.close(), database.drop()]);
});

it.each([
  ['', [1]],
  ['?replicas=1', []],
])('a collector and a worker with REDIS_URL=redis://…%s warn of %j replicas at their start', async (query, warned) => {
  const [master] = redis.servers;
  const REDIS_URL = `redis://127.0.0.1:${master.port}${query}`;
  const env = { ...databaseVariables(database.options), REDIS_URL, QUEUE_PREFIX: uniquePrefix() };
  for (const service of [await startCollector(env), await startIngest(env)]) {
    const warnings = service.entries().filter(({ event }) => event === 'replicas_not_awaited');
    expect(warnings.map(({ replicas }) => replicas)).toEqual(warned);
    expect(await service.stop()).toBe(0);
  }
});

it('a collector answers for what its master and a replica have, and for nothing else', async () => {
  const [master, replica] = redis.servers;
  const env = {
    ...databaseVariables(database.options),
    REDIS_URL: `${redis.url}?replicas=1`,
    QUEUE_PREFIX: uniquePrefix(),
  };
  const created = await runCommand(['keys', 'create', '--account', 'acme', '--role', 'emitter', '--json'], { env });
  const { key } = JSON.parse(created.stdout);
  const collector = await startCollector({ ...env, METERLINE_CONSTANTS: JSON.stringify({ writeMs: 1_000 }) });
  const post = async (n: number) => {
    const answer = await fetch(`${collector.url}/v0/accounts/acme/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify([usageEvent(n)]),
    });
    return answer.status;
  };
  for (let n = 0; n < 10; n += 1) expect(await post(n)).toBe(202);

  // The master has it, on its disk, and has answered. That would be lost.
  replica.signal('SIGSTOP');
  expect(await post(10)).toBe(503);
  await master.kill();
  replica.signal('SIGCONT');
  await redis.promote(replica);
  // Alone it has nobody to pass an event on to.
  await until('the collector finds the new master', 20_000, async () => (await readiness(collector.url)) === 200);
  expect(await post(11)).toBe(503);
  await redis.rejoin(master);
  for (const n of [10, 11, 12]) {
    await until('the event is taken', 20_000, async () => (await post(n)) === 202);
  }

  const worker = await startIngest(withConstants(env, { maintenanceEveryMs: 500 }));
  await until('all events are stored', 30_000, async () => (await stored(database.warehouse)).events === 13);
  expect(await stored(database.warehouse)).toEqual({ events: 13, usage: 13 });
  expect(await Promise.all([worker.stop(), collector.stop()])).toEqual([0, 0]);
});

async function readiness(url: string): Promise<number> {
  return (await fetch(`${url}/readyz`, { headers: { connection: 'close' } })).status;
}
