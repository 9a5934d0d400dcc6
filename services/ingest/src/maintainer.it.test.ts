import { EventEmitter, once } from 'node:events';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { openQueueConnection } from '@meterline/service/queue';
import { raiseWatermarks, readBounds, readOpenMarks } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { pricedEvent } from '../../../test/harness/events.js';
import { type Pause, pausing } from '../../../test/harness/interleaving.js';
import { strangerTo } from '../../../test/harness/queue.js';
import { execute, storeEvents, testRedisUrl, uniquePrefix } from '../../../test/harness/stack.js';
import { testDatabase } from '../../../test/harness/test-database.js';
import { until } from '../../../test/harness/waiting.js';
import { Maintainer } from './maintainer.js';
import { createIngestMetrics } from './metrics.js';

const HOUR = Date.UTC(2025, 9, 1);
const LOCK_MS = 1_000;
const RESCHEDULE_MS = 200;
const prefix = uniquePrefix();

const database = testDatabase();
let redis: Redis;
let registry: Registry;
let opened: Maintainer[];
let lines: { event: string; err?: { message: string } }[];
beforeEach(async () => {
  [opened, lines] = [[], []];
  for (const table of ['usage_events', 'usage_hourly', 'usage_daily', 'dirty_hours', 'rollup_watermarks'])
    await execute(database.warehouse, `TRUNCATE TABLE ${table}`);
  redis = new Redis(testRedisUrl());
});
afterEach(async () => {
  for (const maintainer of opened) await maintainer.close();
  await forgetQueue();
  redis.disconnect();
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
    ...{ prefix, everyMs: 100, delayMs: 0, rescheduleMs: RESCHEDULE_MS, lockMs: LOCK_MS },
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

const sealedUntil = async () => (await readBounds(database.warehouse)).daily.sealedUntil;

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

it('the maintainer continues to seal after Redis has lost its schedule', async () => {
  openMaintainer().run();
  await sealsAgain();
  await forgetQueue();
  // A job may have been in work; another one needs a schedule.
  for (let time = 0; time < 3; time += 1) await sealsAgain();
  expect(await redis.keys(`${prefix}:*`)).not.toEqual([]);
});

it('the maintainer continues to seal after a process whose clock was two days ahead has scheduled the next run', async () => {
  const queue = new Queue('meterline-maintenance', { prefix, connection: { url: testRedisUrl() } });
  const startDate = Date.now() + 2 * MS_PER_DAY;
  await queue.upsertJobScheduler('rollups', { every: 100, startDate });
  expect((await queue.getJobScheduler('rollups'))?.next).toBeGreaterThanOrEqual(startDate);
  await queue.close();
  openMaintainer().run();
  for (let time = 0; time < 3; time += 1) await sealsAgain();
});

it('the maintainer recomputes dirty hours, seals due hours, and reports how much there is to do', async () => {
  const maintainer = openMaintainer();
  await maintainer.runDueSteps();
  expect(await sealedUntil()).toBeGreaterThan(0);
  await storeLate();
  await storeLate(HOUR + MS_PER_HOUR);
  expect(await dirtyHours()).toBe(2);
  await maintainer.runDueSteps();
  expect(await dirtyHours()).toBe(0);
  expect(await metric('meterline_rollup_rows_recomputed_total')).toBe(3);
  expect(await metric('meterline_dirty_hours')).toBe(0);
  expect(await metric('meterline_maintenance_failures_total')).toBe(0);
});

it('the maintainer counts and logs events that differ under one id and revision', async () => {
  const maintainer = openMaintainer();
  await maintainer.runDueSteps();
  const event = pricedEvent({ timestamp: HOUR });
  await storeEvents(database.warehouse, [event]);
  await storeEvents(database.warehouse, [{ ...event, workspace: 'another' }]);
  await maintainer.runDueSteps();
  expect(await metric('meterline_conflicting_events_total')).toBe(1);
  const first = { account: event.accountId, eventId: event.eventId };
  expect(lines).toContainEqual(
    expect.objectContaining({ event: 'conflicting_events', events: 1, first: expect.objectContaining(first) }),
  );
});

it.each([
  ['a server that is away', Object.assign(new Error('broken'), { code: 'ECONNRESET' }), ['outage', 'outage_over']],
  ['a defect', new Error('broken'), ['maintenance_failed']],
])(
  'the maintainer retries a failure by %s in the next run, logs it once, and seals meanwhile',
  async (_what, error, said) => {
    const hourEnd = HOUR + MS_PER_HOUR;
    await raiseWatermarks(database.shards.all, 'hourly', { sealingUntil: hourEnd, sealedUntil: hourEnd });
    await storeLate();
    let isBroken = true;
    const maintainer = openMaintainer({
      pause: async () => {
        if (isBroken) throw error;
      },
    });
    for (let time = 0; time < 3; time += 1) await maintainer.runDueSteps();
    expect(await dirtyHours()).toBe(1);
    expect(await metric('meterline_maintenance_failures_total')).toBeGreaterThanOrEqual(3);
    expect(await sealedUntil()).toBeGreaterThan(hourEnd);
    isBroken = false;
    await maintainer.runDueSteps();
    expect(await dirtyHours()).toBe(0);
    expect(lines.map(({ event }) => event).filter((event) => event !== 'sealed')).toEqual(said);
  },
);

it('closing the maintainer aborts the running step, and leaves its marks to the next process', async () => {
  await openMaintainer().runDueSteps();
  await storeLate();
  const gate = new EventEmitter();
  const [isHeld, goesOn] = [once(gate, 'held'), once(gate, 'goesOn')];
  const maintainer = openMaintainer({
    pause: async () => {
      gate.emit('held');
      await goesOn;
    },
  });
  const turn = maintainer.runDueSteps();
  await isHeld;
  const closed = maintainer.close();
  gate.emit('goesOn');
  await Promise.all([turn, closed]);
  expect(await dirtyHours()).toBe(1);
  expect(await metric('meterline_maintenance_failures_total')).toBe(0);
});

it('the maintainer ends its run after another process has taken its job, however much there is to do', async () => {
  await openMaintainer().runDueSteps();
  await storeLate();
  let [steps, isOver] = [0, false];
  const maintainer = openMaintainer({
    pause: async () => {
      if (isOver) return;
      steps += 1;
      await storeLate();
    },
  });
  const turn = jest.spyOn(maintainer, 'runDueSteps');
  maintainer.run();
  await until('a turn has begun', () => steps > 0);
  const [lock = ''] = await redis.keys(`${prefix}:*:lock`);
  await redis.set(lock, 'of another process');
  // The turn would never end: there is a late event for each of its steps.
  await turn.mock.results[0]?.value;
  isOver = true;
});

it('a maintainer whose queue Redis rejects logs it once, and retries only when it writes its schedule again', async () => {
  const stranger = await strangerTo(redis);
  const maintainer = openMaintainer({ url: stranger.url });
  const since = performance.now();
  maintainer.run();
  await until('the schedule was refused several times', async () => (await stranger.refusals()) >= 5);
  const refusals = await stranger.refusals();
  // The first time also for the queue itself.
  expect(refusals - 2).toBeLessThanOrEqual((performance.now() - since) / (0.9 * RESCHEDULE_MS));
  await maintainer.close();
  expect(lines).toMatchObject([
    { event: 'maintenance_queue_error', err: { message: expect.stringContaining('NOPERM') } },
  ]);
  await stranger.remove();
});
