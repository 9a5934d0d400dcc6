import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readWatermarks } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { until } from '../../../test/e2e/pipeline.js';
import { createTestDatabase, execute, type TestDatabase, testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { createIngestMetrics } from './metrics.js';
import { QueueConnection } from './queue-connection.js';
import { Sealer } from './sealer.js';

const prefix = uniquePrefix();

let database: TestDatabase;
let redis: Redis;
beforeEach(async () => {
  database = await createTestDatabase();
  redis = new Redis(testRedisUrl());
});
afterEach(async () => {
  await forgetQueue();
  redis.disconnect();
  await database.drop();
});

function openSealer(): Sealer {
  return new Sealer({
    shard: undefined,
    connection: new QueueConnection({ url: testRedisUrl(), knowsScriptFlags: true, readsUsageJobs: false }),
    prefix,
    everyMs: 100,
    delayMs: 0,
    rescheduleMs: 200,
    warehouse: database.warehouse,
    metrics: createIngestMetrics(new Registry()),
    log: pino({ level: 'silent' }),
  });
}

async function forgetQueue(): Promise<void> {
  const keys = await redis.keys(`${prefix}:*`);
  if (keys.length > 0) await redis.del(...keys);
}

/** Removes the watermarks, and waits until they are there again. */
async function sealsAgain(): Promise<void> {
  await execute(database.warehouse, 'TRUNCATE TABLE rollup_seals');
  const isSealed = async () => (await readWatermarks(database.warehouse)).daily.sealedUntil > 0;
  await until('hours and days are sealed', 20_000, isSealed);
}

it('goes on sealing after Redis has lost its schedule', async () => {
  const sealer = openSealer();
  try {
    sealer.run();
    await sealsAgain();
    await forgetQueue();
    // A job may have been in work; another one needs a schedule.
    for (let time = 0; time < 3; time += 1) await sealsAgain();
    expect(await redis.keys(`${prefix}:*`)).not.toEqual([]);
  } finally {
    await sealer.close();
  }
});

it('goes on sealing after a process whose clock was two days ahead has set the next moment', async () => {
  const queue = new Queue('meterline-sealing', { prefix, connection: { url: testRedisUrl() } });
  const startDate = Date.now() + 2 * 86_400_000;
  await queue.upsertJobScheduler('seal', { every: 100, startDate });
  const sealer = openSealer();
  try {
    expect((await queue.getJobScheduler('seal'))?.next).toBeGreaterThanOrEqual(startDate);
    sealer.run();
    for (let time = 0; time < 3; time += 1) await sealsAgain();
  } finally {
    await sealer.close();
    await queue.close();
  }
});

it('refuses to seal twice at once, after it has stopped, and to stop twice', async () => {
  const sealer = openSealer();
  const sealing = sealer.seal();
  await expect(sealer.seal()).rejects.toThrow('the sealer cannot go from sealing to sealing');
  await sealing;
  expect((await readWatermarks(database.warehouse)).daily.sealedUntil).toBeGreaterThan(0);
  await sealer.seal();
  await sealer.close();
  await expect(sealer.seal()).rejects.toThrow('the sealer cannot go from stopped to sealing');
  await expect(sealer.close()).rejects.toThrow('the sealer cannot go from stopped to stopped');
});
