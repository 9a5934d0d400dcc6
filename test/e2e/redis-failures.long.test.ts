/**
 * Masters fail again and again while events are sent, and Sentinels replace them: what the emitter was told is accepted is stored, each
 * event once. The short case is redis-sentinel.it.test.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { type Emitter, openEmitter } from '@meterline/emitter';
import { runCommand } from '../cli/run-command.js';
import { usageEvent } from '../harness/events.js';
import { stored, until } from '../harness/queue.js';
import { startWatchedRedis, type WatchedRedis } from '../harness/redis-servers.js';
import { killServices, startCollector, startIngest, withConstants } from '../harness/services.js';
import { createTestDatabase, databaseVariables, type TestDatabase, uniquePrefix } from '../harness/stack.js';

jest.setTimeout(1_200_000);

const ROUNDS = 6;
/** Recorded one after the other, each in a job of its own. */
const EVERY_MS = 5;
/** That a master must have accepted before it fails. */
const EVENTS_OF_A_MASTER = 50;
const SENT_WITHIN_MS = 600_000;

let redis: WatchedRedis;
let database: TestDatabase;
let emitter: Emitter;
const problems: string[] = [];
beforeAll(async () => {
  [redis, database] = await Promise.all([startWatchedRedis(), createTestDatabase()]);
});
afterAll(async () => {
  // An emitter that is left open would keep this process for ever.
  await emitter.close({ timeoutMs: 0 });
  await killServices();
  await Promise.all([redis.close(), database.drop()]);
});

/** Records events until it is ended. */
function startRecording() {
  let recorded = 0;
  let isOver = false;
  const recording = (async () => {
    for (; !isOver; recorded += 1) {
      emitter.record(usageEvent(recorded));
      await delay(EVERY_MS);
    }
  })();
  return async (): Promise<number> => {
    isOver = true;
    await recording;
    return recorded;
  };
}

it('a worker stores every event once while masters are killed and frozen, and Sentinels replace them', async () => {
  const REDIS_URL = `${redis.url}?replicas=1`;
  const env = { ...databaseVariables(database.options), REDIS_URL, QUEUE_PREFIX: uniquePrefix() };
  const created = await runCommand(['keys', 'create', '--account', 'acme', '--role', 'emitter', '--json'], { env });
  emitter = await openEmitter({
    url: (await startCollector(env)).url,
    apiKey: JSON.parse(created.stdout).key,
    batchEvents: 1,
    onProblem: ({ message, ...more }) => problems.push(`${message} ${String('cause' in more ? more.cause : '')}`),
  });
  const maintaining = withConstants(env, { maintenanceEveryMs: 500 });
  const workers = [await startIngest(maintaining), await startIngest(maintaining)];
  const endRecording = startRecording();
  let [master, replica] = redis.servers;
  for (let round = 0; round < ROUNDS; round += 1) {
    const { sent } = emitter.counters;
    const accepts = async () => emitter.counters.sent >= sent + EVENTS_OF_A_MASTER;
    await until('the master has accepted events', 60_000, accepts);
    const isFrozen = round % 2 === 1;
    if (isFrozen) master.signal('SIGSTOP');
    else await master.kill();
    await redis.promote(replica);
    // The workers go on with the new master, which accepts nothing while it has no replica.
    await delay(1_000);
    // A server that was frozen believes that it is the master still, until a Sentinel tells it.
    if (isFrozen) await master.kill();
    await redis.rejoin(master);
    [master, replica] = [replica, master];
  }
  const recorded = await endRecording();
  await emitter.close({ timeoutMs: SENT_WITHIN_MS });
  const { counters } = emitter;
  const last = counters.unsent > 0 ? problems.slice(-3) : [];
  expect({ counters, last }).toMatchObject({
    counters: { sent: recorded, dropped: 0, rejected: 0, unsent: 0 },
    last: [],
  });
  const all = async () => (await stored(database.warehouse)).events >= recorded;
  await until('all is stored', 30_000, all);
  expect(await stored(database.warehouse)).toEqual({ events: recorded, usage: recorded });
  expect(await Promise.all(workers.map((worker) => worker.stop()))).toEqual([0, 0]);
});
