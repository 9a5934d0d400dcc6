import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readWatermarks } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { type Logger, pino } from 'pino';
import { Registry } from 'prom-client';
import { z } from 'zod';
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

function openSealer(url = testRedisUrl(), log: Logger = pino({ level: 'silent' })): Sealer {
  return new Sealer({
    shard: undefined,
    connection: new QueueConnection({ url, knowsScriptFlags: true, readsUsageJobs: false }),
    prefix,
    everyMs: 100,
    delayMs: 0,
    rescheduleMs: 200,
    warehouse: database.warehouse,
    metrics: createIngestMetrics(new Registry()),
    log,
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

it('says that Redis refuses its queue, and does not ask again and again', async () => {
  const user = uniquePrefix();
  await redis.acl('SETUSER', user, 'on', '>secret', '+@all', '~another-queue:*');
  const url = new URL(testRedisUrl());
  [url.username, url.password] = [user, 'secret'];
  const lines: { event: string; err: { message: string } }[] = [];
  const sealer = openSealer(url.href, pino({ level: 'error' }, { write: (line) => lines.push(JSON.parse(line)) }));
  const refused = async () => {
    const entries = z.array(z.array(z.unknown())).parse(await redis.acl('LOG', '100'));
    const own = entries.filter((entry) => entry[entry.indexOf('username') + 1] === user);
    return own.reduce((sum, entry) => sum + Number(entry[entry.indexOf('count') + 1]), 0);
  };
  try {
    sealer.run();
    await until('it has said so', 20_000, async () => lines.length > 0);
    await delay(500);
    expect(await refused()).toBeLessThan(20);
    expect(lines).toEqual([expect.objectContaining({ event: 'sealing_queue_error' })]);
    expect(lines[0]?.err.message).toContain('NOPERM');
  } finally {
    await sealer.close();
    await redis.acl('DELUSER', user);
  }
});
