import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { openQueueConnection } from '@meterline/service/queue';
import { raiseWatermarks, readOpenMarks, readWatermarks } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { pricedEvent } from '../../../test/harness/events.js';
import { type Pause, pausing } from '../../../test/harness/interleaving.js';
import { strangerTo } from '../../../test/harness/queue.js';
import {
  createTestDatabase,
  execute,
  storeEvents,
  type TestDatabase,
  testRedisUrl,
  uniquePrefix,
} from '../../../test/harness/stack.js';
import { until } from '../../../test/harness/waiting.js';
import { Maintainer } from './maintainer.js';
import { createIngestMetrics } from './metrics.js';

const HOUR = Date.UTC(2025, 9, 1);
const LOCK_MS = 1_000;
const prefix = uniquePrefix();

let database: TestDatabase;
let redis: Redis;
let registry: Registry;
let opened: Maintainer[];
let lines: { event: string; err?: { message: string } }[];
beforeEach(async () => {
  [opened, lines] = [[], []];
  database = await createTestDatabase();
  redis = new Redis(testRedisUrl());
});
afterEach(async () => {
  for (const maintainer of opened) await maintainer.close();
  await forgetQueue();
  redis.disconnect();
  await database.drop();
});

/** @param pause is called before each statement that clears dirty hours: the last of a recomputation */
function openMaintainer({
  url = testRedisUrl(),
  pause,
}: {
  url?: string;
  pause?: () => Promise<void>;
} = {}): Maintainer {
  registry = new Registry();
  const before: Pause = async (name) => (name === 'clear_dirty_hours' ? pause?.() : undefined);
  const maintainer = new Maintainer({
    connection: openQueueConnection(url),
    ...{ prefix, everyMs: 100, delayMs: 0, rescheduleMs: 200, lockMs: LOCK_MS },
    shards: pause ? [pausing(database.warehouse, before)] : database.shards.all,
    metrics: createIngestMetrics(registry),
    log: pino({}, { write: (line: string) => lines.push(JSON.parse(line)) }),
  });
  opened.push(maintainer);
  return maintainer;
}

async function forgetQueue(): Promise<void> {
  const keys = await redis.keys(`${prefix}:*`);
  if (keys.length > 0) await redis.del(...keys);
}

const sealedUntil = async () => (await readWatermarks(database.warehouse)).daily.sealedUntil;

/** Removes the watermarks, and waits until they are there again. */
async function sealsAgain(): Promise<void> {
  await execute(database.warehouse, 'TRUNCATE TABLE rollup_watermarks');
  await until('hours and days are sealed', async () => (await sealedUntil()) > 0);
}

/** An event of an hour that is sealed: it is dirty now. */
const storeLate = (timestamp = HOUR) => storeEvents(database.warehouse, [pricedEvent({ timestamp })]);
const dirtyHours = async () => (await readOpenMarks(database.warehouse)).hours;

async function metric(name: string): Promise<number | undefined> {
  const found = await registry.getSingleMetric(name)?.get();
  return found?.values.reduce((sum, { value }) => sum + value, 0);
}

it('the maintainer goes on sealing after Redis has lost its schedule', async () => {
  openMaintainer().run();
  await sealsAgain();
  await forgetQueue();
  // A job may have been in work; another one needs a schedule.
  for (let time = 0; time < 3; time += 1) await sealsAgain();
  expect(await redis.keys(`${prefix}:*`)).not.toEqual([]);
});

it('the maintainer goes on sealing after a process whose clock was two days ahead has set the next moment', async () => {
  const queue = new Queue('meterline-maintenance', { prefix, connection: { url: testRedisUrl() } });
  const startDate = Date.now() + 2 * MS_PER_DAY;
  await queue.upsertJobScheduler('rollups', { every: 100, startDate });
  expect((await queue.getJobScheduler('rollups'))?.next).toBeGreaterThanOrEqual(startDate);
  await queue.close();
  openMaintainer().run();
  for (let time = 0; time < 3; time += 1) await sealsAgain();
});

it('the maintainer recomputes dirty hours, seals what is due, and says how much there is to do', async () => {
  const maintainer = openMaintainer();
  await maintainer.turn();
  expect(await sealedUntil()).toBeGreaterThan(0);
  await storeLate();
  await storeLate(HOUR + MS_PER_HOUR);
  expect(await dirtyHours()).toBe(2);
  await maintainer.turn();
  expect(await dirtyHours()).toBe(0);
  expect(await metric('meterline_rollup_rows_recomputed_total')).toBe(3);
  expect(await metric('meterline_dirty_hours')).toBe(0);
  expect(await metric('meterline_maintenance_failures_total')).toBe(0);
});

it('the maintainer tries again at the next turn what fails, says so once, and seals meanwhile', async () => {
  const hourEnd = HOUR + MS_PER_HOUR;
  await raiseWatermarks(database.shards.all, 'hourly', { sealingUntil: hourEnd, sealedUntil: hourEnd });
  await storeLate();
  let isBroken = true;
  const maintainer = openMaintainer({
    pause: async () => {
      if (isBroken) throw new Error('broken');
    },
  });
  for (let time = 0; time < 3; time += 1) await maintainer.turn();
  expect(await dirtyHours()).toBe(1);
  expect(await metric('meterline_maintenance_failures_total')).toBeGreaterThanOrEqual(3);
  expect(await sealedUntil()).toBeGreaterThan(hourEnd);
  isBroken = false;
  await maintainer.turn();
  expect(await dirtyHours()).toBe(0);
  expect(lines.map(({ event }) => event).filter((event) => event.startsWith('outage'))).toEqual([
    'outage',
    'outage_over',
  ]);
});

it('the maintainer leaves the step under way when it is closed, and its marks to the next', async () => {
  await openMaintainer().turn();
  await storeLate();
  const gate = new EventEmitter();
  const [isHeld, goesOn] = [once(gate, 'held'), once(gate, 'goesOn')];
  const maintainer = openMaintainer({
    pause: async () => {
      gate.emit('held');
      await goesOn;
    },
  });
  const turn = maintainer.turn();
  await isHeld;
  const closed = maintainer.close();
  gate.emit('goesOn');
  await Promise.all([turn, closed]);
  expect(await dirtyHours()).toBe(1);
  expect(await metric('meterline_maintenance_failures_total')).toBe(0);
});

it('the maintainer ends its turn when another process has taken its job, however much there is to do', async () => {
  await openMaintainer().turn();
  await storeLate();
  let [steps, isOver] = [0, false];
  const maintainer = openMaintainer({
    pause: async () => {
      if (isOver) return;
      steps += 1;
      await storeLate();
    },
  });
  maintainer.run();
  await until('it has begun', async () => steps > 0);
  const [lock = ''] = await redis.keys(`${prefix}:*:lock`);
  await redis.set(lock, 'of another process');
  const isStill = async () => {
    const before = steps;
    await delay(LOCK_MS);
    return steps === before;
  };
  await until('it does no more steps', isStill).finally(() => {
    isOver = true;
  });
});

it('the maintainer says that Redis refuses its queue, and does not ask again and again', async () => {
  const stranger = await strangerTo(redis);
  const maintainer = openMaintainer({ url: stranger.url });
  maintainer.run();
  await until('it has said so', async () => lines.length > 0);
  await delay(500);
  await maintainer.close();
  expect(await stranger.refusals()).toBeLessThan(20);
  expect(lines).toMatchObject([
    { event: 'maintenance_queue_error', err: { message: expect.stringContaining('NOPERM') } },
  ]);
  await stranger.remove();
});
