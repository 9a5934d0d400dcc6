/**
 * Masters fail again and again while events are sent, and Sentinels replace them: what the emitter was told is accepted is stored, each
 * event once. The short case is redis-sentinel.it.test.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it, jest } from '@jest/globals';
import { openEmitter } from '@meterline/emitter';
import { AccountDirectory, ApiKeyStore, createRedisClient, REDIS_PREFIX } from '@meterline/service/access';
import { usageEvent } from '../harness/events.js';
import { stored, until } from '../harness/queue.js';
import { startWatchedRedis } from '../harness/redis-servers.js';
import {
  killServices,
  type ServiceEnvironment,
  type ServiceProcess,
  startCollector,
  startIngest,
  withConstants,
} from '../harness/services.js';
import { createTestDatabase, databaseVariables, uniquePrefix } from '../harness/stack.js';

jest.setTimeout(600_000);

const ROUNDS = 6;
const SENT_WITHIN_MS = 120_000;
const STORED_WITHIN_MS = 30_000;

afterEach(() => killServices());

interface Load {
  readonly url: string;
  /** What goes wrong while events are recorded. @returns the workers that run in the end */
  readonly failures: (env: ServiceEnvironment) => Promise<readonly ServiceProcess[]>;
}

/** Records events one after the other, each in a job of its own, until the failures are over; then all must be stored. */
async function underLoad({ url, failures }: Load): Promise<void> {
  const database = await createTestDatabase();
  const prefix = uniquePrefix();
  const env = {
    ...databaseVariables(database.options),
    REDIS_URL: url,
    QUEUE_PREFIX: prefix,
  };
  const problems: string[] = [];
  const redis = createRedisClient(url, { maxRetriesPerRequest: null });
  const keys = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
  const { key } = await keys.create({ account: 'acme', role: 'emitter', clientId: 'redis-failures' }, new Date());
  redis.disconnect();
  const collector = await startCollector(env);
  const emitter = await openEmitter({
    url: collector.url,
    apiKey: key,
    batchEvents: 1,
    onProblem: ({ message, ...more }) => problems.push(`${message} ${String('cause' in more ? more.cause : '')}`),
  });
  const over = new AbortController();
  let recorded = 0;
  const recording = (async () => {
    while (!over.signal.aborted) {
      emitter.record(usageEvent(recorded));
      recorded += 1;
      await delay(5);
    }
  })();
  try {
    const workers = await failures(withConstants(env, { maintenanceEveryMs: 500 })).finally(() => over.abort());
    await recording;
    await emitter.close({ timeoutMs: SENT_WITHIN_MS });
    const { counters } = emitter;
    const last = counters.unsent > 0 ? problems.slice(-3) : [];
    expect({ counters, last }).toMatchObject({
      counters: { sent: recorded, dropped: 0, rejected: 0, unsent: 0 },
      last: [],
    });
    const all = async () => (await stored(database.warehouse)).events >= recorded;
    await until('all is stored', STORED_WITHIN_MS, all);
    expect(await stored(database.warehouse)).toEqual({ events: recorded, usage: recorded });
    expect(await Promise.all(workers.map((worker) => worker.stop()))).toEqual(workers.map(() => 0));
  } finally {
    // An emitter that is left open would keep this process for ever.
    await emitter.close({ timeoutMs: 0 });
    await killServices();
    await database.drop();
  }
}

it('a worker stores every event once while masters are killed and frozen, and Sentinels replace them', async () => {
  const redis = await startWatchedRedis();
  const failures = async (env: ServiceEnvironment) => {
    const workers = [await startIngest(env), await startIngest(env)];
    let [master, replica] = redis.servers;
    for (let round = 0; round < ROUNDS; round += 1) {
      await delay(1_000);
      const isFrozen = round % 2 === 1;
      if (isFrozen) master.signal('SIGSTOP');
      else await master.kill();
      await redis.promote(replica);
      await delay(1_000);
      // A server that was frozen believes that it is the master still, until a Sentinel tells it.
      if (isFrozen) await master.kill();
      await redis.rejoin(master);
      [master, replica] = [replica, master];
    }
    return workers;
  };
  try {
    await underLoad({ url: `${redis.url}?replicas=1`, failures });
  } finally {
    await redis.close();
  }
});
