import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readWatermarks } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { until } from '../../../test/e2e/pipeline.js';
import { createTestDatabase, execute, type TestDatabase, testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { createIngestMetrics } from './metrics.js';
import { Sealer } from './sealer.js';

const prefix = uniquePrefix();

let database: TestDatabase;
let redis: Redis;
let sealer: Sealer;
beforeEach(async () => {
  database = await createTestDatabase();
  redis = new Redis(testRedisUrl());
  sealer = new Sealer({
    redisUrl: testRedisUrl(),
    prefix,
    everyMs: 100,
    delayMs: 0,
    rescheduleMs: 200,
    warehouse: database.warehouse,
    metrics: createIngestMetrics(new Registry()),
    log: pino({ level: 'silent' }),
  });
});
afterEach(async () => {
  await sealer.close();
  await forgetQueue();
  redis.disconnect();
  await database.drop();
});

async function forgetQueue(): Promise<void> {
  await redis.del(...(await redis.keys(`${prefix}:*`)));
}

/** Takes the watermarks away, and waits for others. */
async function sealsAnew(): Promise<void> {
  await execute(database.warehouse, 'TRUNCATE TABLE rollup_seals');
  const isSealed = async () => (await readWatermarks(database.warehouse)).daily.sealedUntil > 0;
  await until('hours and days are sealed', 20_000, isSealed);
}

it('goes on sealing after Redis has lost its schedule', async () => {
  await sealer.run();
  await sealsAnew();
  await forgetQueue();
  // A job may have been in work; another one needs a schedule.
  for (let time = 0; time < 3; time += 1) await sealsAnew();
  expect(await redis.keys(`${prefix}:*`)).not.toEqual([]);
});
