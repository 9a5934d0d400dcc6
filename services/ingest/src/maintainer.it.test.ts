import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { MS_PER_HOUR } from '@meterline/catalog';
import { openQueueConnection } from '@meterline/service/queue';
import { raiseWatermarks, readOpenMarks, readWatermarks, type Warehouse } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { type Logger, pino } from 'pino';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { pricedEvent } from '../../../test/harness/events.js';
import { pausing } from '../../../test/harness/interleaving.js';
import { storeEvents } from '../../../test/harness/late-events.js';
import { until } from '../../../test/harness/queue.js';
import {
  createTestDatabase,
  execute,
  type TestDatabase,
  testRedisUrl,
  uniquePrefix,
} from '../../../test/harness/stack.js';
import { Maintainer } from './maintainer.js';
import { createIngestMetrics } from './metrics.js';

const HOUR = Date.UTC(2025, 9, 1);

const prefix = uniquePrefix();
const silent = pino({ level: 'silent' });

let database: TestDatabase;
let redis: Redis;
let registry: Registry;
beforeEach(async () => {
  database = await createTestDatabase();
  redis = new Redis(testRedisUrl());
});
afterEach(async () => {
  await forgetQueue();
  redis.disconnect();
  await database.drop();
});

interface Settings {
  readonly url?: string;
  readonly log?: Logger;
  readonly shards?: readonly Warehouse[];
}

function openMaintainer({
  url = testRedisUrl(),
  log = silent,
  shards = database.shards.all,
}: Settings = {}): Maintainer {
  registry = new Registry();
  return new Maintainer({
    connection: openQueueConnection(url),
    prefix,
    everyMs: 100,
    delayMs: 0,
    rescheduleMs: 200,
    shards,
    metrics: createIngestMetrics(registry),
    log,
  });
}

async function forgetQueue(): Promise<void> {
  const keys = await redis.keys(`${prefix}:*`);
  if (keys.length > 0) await redis.del(...keys);
}

/** Removes the watermarks, and waits until they are there again. */
async function sealsAgain(): Promise<void> {
  await execute(database.warehouse, 'TRUNCATE TABLE rollup_watermarks');
  const isSealed = async () => (await readWatermarks(database.warehouse)).daily.sealedUntil > 0;
  await until('hours and days are sealed', 20_000, isSealed);
}

it('the maintainer goes on sealing after Redis has lost its schedule', async () => {
  const maintainer = openMaintainer();
  try {
    maintainer.run();
    await sealsAgain();
    await forgetQueue();
    // A job may have been in work; another one needs a schedule.
    for (let time = 0; time < 3; time += 1) await sealsAgain();
    expect(await redis.keys(`${prefix}:*`)).not.toEqual([]);
  } finally {
    await maintainer.close();
  }
});

it('the maintainer goes on sealing after a process whose clock was two days ahead has set the next moment', async () => {
  const queue = new Queue('meterline-maintenance', { prefix, connection: { url: testRedisUrl() } });
  const startDate = Date.now() + 2 * 86_400_000;
  await queue.upsertJobScheduler('rollups', { every: 100, startDate });
  const maintainer = openMaintainer();
  try {
    expect((await queue.getJobScheduler('rollups'))?.next).toBeGreaterThanOrEqual(startDate);
    maintainer.run();
    for (let time = 0; time < 3; time += 1) await sealsAgain();
  } finally {
    await maintainer.close();
    await queue.close();
  }
});

/** An event of an hour that is sealed: it is dirty now. */
async function storeLate(hour = HOUR): Promise<void> {
  await storeEvents(database.warehouse, [pricedEvent({ timestamp: hour })]);
}

async function dirtyHours(): Promise<number> {
  return (await readOpenMarks(database.warehouse)).hours;
}

async function metric(name: string): Promise<number | undefined> {
  const found = await registry.getSingleMetric(name)?.get();
  return found?.values.reduce((sum, { value }) => sum + value, 0);
}

it('the maintainer recomputes dirty hours, seals what is due, and says how much there is to do', async () => {
  const maintainer = openMaintainer();
  await maintainer.turn();
  expect((await readWatermarks(database.warehouse)).daily.sealedUntil).toBeGreaterThan(0);
  await storeLate();
  await storeLate(HOUR + MS_PER_HOUR);
  expect(await dirtyHours()).toBe(2);
  await maintainer.turn();
  expect(await dirtyHours()).toBe(0);
  expect(await metric('meterline_rollup_rows_recomputed_total')).toBe(3);
  expect(await metric('meterline_dirty_hours')).toBe(0);
  expect(await metric('meterline_maintenance_failures_total')).toBe(0);
  await maintainer.close();
});

it('the maintainer tries again at the next turn what fails, says so once, and seals meanwhile', async () => {
  const lines: { event: string }[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const until = HOUR + MS_PER_HOUR;
  await raiseWatermarks(database.shards.all, 'hourly', { sealingUntil: until, sealedUntil: until });
  await storeLate();
  const breaking = { isOn: true };
  const pause = async (name: string) => {
    if (breaking.isOn && name === 'clear_dirty_hours') throw new Error('broken');
  };
  const maintainer = openMaintainer({ log, shards: [pausing(database.warehouse, pause)] });
  for (let time = 0; time < 3; time += 1) await maintainer.turn();
  expect(await dirtyHours()).toBe(1);
  expect(await metric('meterline_maintenance_failures_total')).toBeGreaterThanOrEqual(3);
  expect((await readWatermarks(database.warehouse)).daily.sealedUntil).toBeGreaterThan(until);
  breaking.isOn = false;
  await maintainer.turn();
  expect(await dirtyHours()).toBe(0);
  expect(lines.map(({ event }) => event).filter((event) => event !== 'sealed')).toEqual(['outage', 'outage_over']);
  await maintainer.close();
});

it('the maintainer leaves the step under way when it is closed, and its marks to the next', async () => {
  const maintaining = openMaintainer();
  await maintaining.turn();
  await maintaining.close();
  await storeLate();
  const gate = new EventEmitter();
  const [isHeld, goesOn] = [once(gate, 'held'), once(gate, 'goesOn')];
  const holding = pausing(database.warehouse, async (name) => {
    if (name !== 'clear_dirty_hours') return;
    gate.emit('held');
    await goesOn;
  });
  const maintainer = openMaintainer({ shards: [holding] });
  const turn = maintainer.turn();
  await isHeld;
  const closed = maintainer.close();
  gate.emit('goesOn');
  await Promise.all([turn, closed]);
  expect(await dirtyHours()).toBe(1);
  expect(await metric('meterline_maintenance_failures_total')).toBe(0);
});

it('the maintainer ends its turn when another process has taken its job, however much there is to do', async () => {
  const first = openMaintainer();
  await first.turn();
  await first.close();
  await storeLate();
  let steps = 0;
  let isOver = false;
  const endless = pausing(database.warehouse, async (name) => {
    if (name !== 'clear_dirty_hours' || isOver) return;
    steps += 1;
    await storeLate();
  });
  const maintainer = openMaintainer({ shards: [endless] });
  maintainer.run();
  await until('it has begun', 20_000, async () => steps > 0);
  const [lock = ''] = await redis.keys(`${prefix}:*:lock`);
  await redis.set(lock, 'of another process');
  const isStill = async () => {
    const before = steps;
    await delay(3_000);
    return steps === before;
  };
  try {
    await until('it does no more steps', 40_000, isStill);
  } finally {
    isOver = true;
    await maintainer.close();
  }
});

it('the maintainer says that Redis refuses its queue, and does not ask again and again', async () => {
  const user = uniquePrefix();
  await redis.acl('SETUSER', user, 'on', '>secret', '+@all', '~another-queue:*');
  const url = new URL(testRedisUrl());
  [url.username, url.password] = [user, 'secret'];
  const lines: { event: string; err: { message: string } }[] = [];
  const maintainer = openMaintainer({
    url: url.href,
    log: pino({ level: 'error' }, { write: (line) => lines.push(JSON.parse(line)) }),
  });
  const refused = async () => {
    const entries = z.array(z.array(z.unknown())).parse(await redis.acl('LOG', '100'));
    const own = entries.filter((entry) => entry[entry.indexOf('username') + 1] === user);
    return own.reduce((sum, entry) => sum + Number(entry[entry.indexOf('count') + 1]), 0);
  };
  try {
    maintainer.run();
    await until('it has said so', 20_000, async () => lines.length > 0);
    await delay(500);
    expect(await refused()).toBeLessThan(20);
    expect(lines).toEqual([expect.objectContaining({ event: 'maintenance_queue_error' })]);
    expect(lines[0]?.err.message).toContain('NOPERM');
  } finally {
    await maintainer.close();
    await redis.acl('DELUSER', user);
  }
});
