/**
 * Masters of a Redis Cluster and of Sentinels fail again and again while an emitter sends: what it was told is accepted is stored, each
 * event once. The short cases are redis-cluster.test.ts and redis-sentinel.test.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it, jest } from '@jest/globals';
import { openEmitter } from '@meterline/emitter';
import { type RedisProcess, startRedisCluster, startWatchedRedis } from '../redis-topology.js';
import { killServices, type ServiceEnvironment, type ServiceProcess, startIngest } from '../services.js';
import { createTestDatabase, databaseVariables, uniquePrefix } from '../stack.js';
import { stored, until, usageEvent } from './pipeline.js';

jest.setTimeout(600_000);

const ROUNDS = 6;
const SENT_WITHIN_MS = 120_000;
const STORED_WITHIN_MS = 30_000;

afterEach(() => killServices());

interface Load {
  readonly url: string;
  readonly queueShards: number;
  /** What goes wrong while events are recorded. @returns the workers that run in the end */
  readonly failures: (env: ServiceEnvironment) => Promise<readonly ServiceProcess[]>;
}

/** Records events one after the other, each in a job of its own, until the failures are over; then all must be stored. */
async function underLoad({ url, queueShards, failures }: Load): Promise<void> {
  const database = await createTestDatabase();
  const prefix = uniquePrefix();
  const env = {
    ...databaseVariables(database.options),
    REDIS_URL: url,
    QUEUE_PREFIX: prefix,
    QUEUE_SHARDS: String(queueShards),
    SEAL_EVERY_MS: '500',
  };
  const problems: string[] = [];
  const emitter = await openEmitter({
    url,
    queuePrefix: prefix,
    queueShards,
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
    const workers = await failures(env).finally(() => over.abort());
    await recording;
    await emitter.close({ timeoutMs: SENT_WITHIN_MS });
    const { counters } = emitter;
    const last = counters.unsent > 0 ? problems.slice(-3) : [];
    expect({ counters, last }).toMatchObject({
      counters: { sent: recorded, dropped: 0, refused: 0, unsent: 0 },
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

it('masters of a Cluster are killed and frozen', async () => {
  const cluster = await startRedisCluster();
  const failures = async (env: ServiceEnvironment) => {
    const workers = [await startIngest(env), await startIngest(env)];
    for (let round = 0; round < ROUNDS; round += 1) {
      const master = cluster.masters[round % cluster.masters.length] as RedisProcess;
      await delay(1_000);
      if (round < ROUNDS / 2) {
        await master.kill();
        await delay(2_000);
        // A worker that starts now waits for the queues of that master alone.
        if (round === 1) workers.push(await startIngest(env));
        await cluster.restart(master);
      } else {
        master.signal('SIGSTOP');
        await delay(4_000);
        master.signal('SIGCONT');
      }
    }
    return workers;
  };
  try {
    await underLoad({ url: cluster.url, queueShards: 4, failures });
  } finally {
    await cluster.close();
  }
});

it('masters of a Cluster are killed, and replicas take their places', async () => {
  const cluster = await startRedisCluster(3, { replicas: true });
  const failures = async (env: ServiceEnvironment) => {
    const workers = [await startIngest(env), await startIngest(env)];
    for (let round = 0; round < ROUNDS; round += 1) {
      await delay(1_000);
      const before = await cluster.mastersNow();
      const master = before[round % before.length] as RedisProcess;
      await master.kill();
      // Its replica has not taken over yet.
      if (round === 1) workers.push(await startIngest(env));
      await cluster.replaced(master);
      await cluster.restart(master);
    }
    return workers;
  };
  try {
    await underLoad({ url: `${cluster.url}?replicas=1`, queueShards: 4, failures });
  } finally {
    await cluster.close();
  }
});

it('masters are killed and frozen, and Sentinels replace them', async () => {
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
    await underLoad({ url: `${redis.url}?replicas=1`, queueShards: 1, failures });
  } finally {
    await redis.close();
  }
});
