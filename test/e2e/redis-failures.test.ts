/**
 * Masters of a Redis Cluster and of Sentinels fail again and again while an emitter sends: what it was told is accepted is stored, each
 * event once. The short cases are redis-cluster.test.ts and redis-sentinel.test.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it, jest } from '@jest/globals';
import { openEmitter } from '@meterline/emitter';
import { type RedisProcess, startRedisCluster, startWatchedRedis } from '../redis-topology.js';
import { killServices, startIngest } from '../services.js';
import { createTestDatabase, databaseVariables, type TestDatabase, uniquePrefix } from '../stack.js';
import { stored, until, usageEvent } from './pipeline.js';

jest.setTimeout(600_000);

const ROUNDS = 6;
const STORED_WITHIN_MS = 120_000;

afterEach(() => killServices());

interface Load {
  /** Ends it, when everything is accepted. @returns how many events there were */
  end(): Promise<number>;
}

/** Records events one after the other, each in a job of its own. */
async function startLoad(url: string, queuePrefix: string, queueShards: number): Promise<Load> {
  const emitter = await openEmitter({ url, queuePrefix, queueShards, batchEvents: 1, onProblem: () => undefined });
  const stop = new AbortController();
  let recorded = 0;
  const recording = (async () => {
    while (!stop.signal.aborted) {
      emitter.record(usageEvent(recorded));
      recorded += 1;
      await delay(5);
    }
  })();
  return {
    end: async () => {
      stop.abort();
      await recording;
      await emitter.close({ timeoutMs: STORED_WITHIN_MS });
      expect(emitter.counters).toMatchObject({ sent: recorded, dropped: 0, refused: 0, unsent: 0 });
      return recorded;
    },
  };
}

async function expectStored({ warehouse }: TestDatabase, events: number): Promise<void> {
  await until('all is stored', STORED_WITHIN_MS, async () => (await stored(warehouse)).events >= events);
  expect(await stored(warehouse)).toEqual({ events, usage: events });
}

it('masters of a Cluster are killed and frozen', async () => {
  const [cluster, database] = await Promise.all([startRedisCluster(), createTestDatabase()]);
  const prefix = uniquePrefix();
  const env = {
    ...databaseVariables(database.options),
    REDIS_URL: cluster.url,
    QUEUE_PREFIX: prefix,
    QUEUE_SHARDS: '4',
    SEAL_EVERY_MS: '500',
  };
  try {
    const workers = [await startIngest(env), await startIngest(env)];
    const load = await startLoad(cluster.url, prefix, 4);
    for (let round = 0; round < ROUNDS; round += 1) {
      const master = cluster.masters[round % cluster.masters.length] as RedisProcess;
      await delay(1_000);
      if (round < ROUNDS / 2) {
        await master.kill();
        await delay(2_000);
        // A worker that starts now waits for that queue alone.
        if (round === 1) workers.push(await startIngest(env));
        await cluster.restart(master);
      } else {
        master.signal('SIGSTOP');
        await delay(4_000);
        master.signal('SIGCONT');
      }
    }
    await expectStored(database, await load.end());
    expect(await Promise.all(workers.map((worker) => worker.stop()))).toEqual([0, 0, 0]);
  } finally {
    await killServices();
    await Promise.all([cluster.close(), database.drop()]);
  }
});

it('masters are killed and frozen, and Sentinels replace them', async () => {
  const [redis, database] = await Promise.all([startWatchedRedis(), createTestDatabase()]);
  const prefix = uniquePrefix();
  const url = `${redis.url}?replicas=1`;
  const env = { ...databaseVariables(database.options), REDIS_URL: url, QUEUE_PREFIX: prefix, SEAL_EVERY_MS: '500' };
  try {
    const workers = [await startIngest(env), await startIngest(env)];
    const load = await startLoad(url, prefix, 1);
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
    await expectStored(database, await load.end());
    expect(await Promise.all(workers.map((worker) => worker.stop()))).toEqual([0, 0]);
  } finally {
    await killServices();
    await Promise.all([redis.close(), database.drop()]);
  }
});
