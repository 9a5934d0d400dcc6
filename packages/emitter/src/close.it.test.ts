/** What finds no room before the emitter closes: of sums and timers, and events that wait for it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { findFreePort } from '@meterline/local-stack';
import { receipt, TestCollector } from '../../../test/emitter/test-collector.js';
import {
  type Emitter,
  type EmitterOptions,
  openEmitter,
  type Problem,
  type UsageToSum,
  type Workload,
} from './index.js';

const REQUESTS: UsageToSum = {
  accountId: 'acme',
  workspace: 'production',
  resourceType: 'agent',
  resourceName: 'support',
  billingDimension: 'agent_async_requests_count',
  usage: 1,
};
const { usage: _, ...OF_AGENT } = REQUESTS;
const SANDBOX: Workload = {
  ...OF_AGENT,
  resourceType: 'sandbox',
  billingDimension: 'sandbox_compute_runtime_gbs',
  gb: 4,
};
/** There is room for two events. */
const MEMORY = { memoryBytes: 600 };
const SUMS = 9;

let collector: TestCollector;
let url: string;
/** What lets the collector respond to a request that it has read; undefined when it responds at once. */
let held: (() => void)[] | undefined;
let problems: Problem[];
beforeEach(async () => {
  collector = await TestCollector.start();
  ({ url } = collector);
  held = undefined;
  problems = [];
  collector.answer = async ({ events }) => {
    if (held) await new Promise<void>((resolve) => held?.push(resolve));
    return receipt(events);
  };
});
afterEach(() => collector.stop());

async function openWith(options: Partial<EmitterOptions> & { url: string }): Promise<Emitter> {
  const onProblem = (problem: Problem) => problems.push(problem);
  return openEmitter({ ...options, apiKey: 'key', onProblem });
}

/** @returns how many events are recorded, before the one that is dropped */
function fillMemory(meter: Emitter): number {
  let recorded = 0;
  while (meter.record({ ...REQUESTS, resourceName: `${recorded}` }) !== undefined) recorded += 1;
  return recorded;
}

/** Fills its memory, and then adds sums and runs a timer. @returns how many events are recorded */
async function fill(meter: Emitter): Promise<number> {
  const recorded = fillMemory(meter);
  for (let n = 0; n < SUMS; n += 1) meter.add({ ...REQUESTS, resourceName: `sum-${n}` });
  meter.start(SANDBOX);
  // Of no time it has nothing to report.
  await sleep(5);
  return recorded;
}

it('they are sent after what there was, as soon as that has made room', async () => {
  const meter = await openWith({ url, ...MEMORY });
  const recorded = await fill(meter);
  const { dropped } = meter.counters;
  expect(await meter.close()).toBe(true);
  expect(collector.events.filter(({ resourceName }) => resourceName.startsWith('sum-'))).toHaveLength(SUMS);
  expect(collector.events.filter(({ resourceType }) => resourceType === 'sandbox')).toHaveLength(1);
  const all = recorded + SUMS + 1;
  expect(meter.counters).toMatchObject({ recorded: all, sent: all, dropped, unsent: 0 });
});

it('they are dropped and counted when the time is up, and the emitter is not said to have sent everything', async () => {
  const meter = await openWith({ url: `http://127.0.0.1:${await findFreePort()}`, ...MEMORY });
  const recorded = await fill(meter);
  const { dropped } = meter.counters;
  expect(await meter.close({ timeoutMs: 50 })).toBe(false);
  expect(meter.counters).toMatchObject({ recorded, sent: 0, dropped: dropped + SUMS + 1, unsent: recorded });
});

it('they are dropped at once when there can be no room', async () => {
  const meter = await openWith({ url, memoryBytes: 1 });
  meter.add(REQUESTS);
  expect(await meter.close({ timeoutMs: 60_000 })).toBe(false);
  expect(meter.counters).toMatchObject({ recorded: 0, dropped: 1 });
  expect(problems).toMatchObject([{ code: 'dropped', message: 'usage events are dropped: the emitter is closed' }]);
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(1);
}

it.each<[string, Partial<EmitterOptions>, (meter: Emitter) => (() => void) | undefined]>([
  ['a sum whose window ends', { reportMs: 20 }, (meter) => void meter.add(REQUESTS)],
  ['a timer whose interval ends', { reportMs: 20 }, (meter) => void meter.start(SANDBOX)],
  ['a timer that its program stops', {}, (meter) => meter.start(SANDBOX).stop],
])('%s while what there was is being sent: it is sent after that', async (_, options, use) => {
  const answers: (() => void)[] = [];
  held = answers;
  const meter = await openWith({ url, ...MEMORY, ...options, batchEvents: 1 });
  const recorded = fillMemory(meter);
  const stop = use(meter);
  await sleep(5);
  const closing = meter.close();
  // All but the last are sent, which makes room.
  for (let sent = 1; sent < recorded; sent += 1) {
    await until(() => answers.length > 0);
    answers.shift()?.();
    await until(() => meter.counters.sent === sent);
  }
  await until(() => answers.length > 0);
  stop?.();
  await until(() => meter.counters.recorded > recorded);
  held = undefined;
  answers.shift()?.();
  expect(await closing).toBe(true);
  expect(collector.events).toHaveLength(recorded + 1);
  expect(meter.counters).toMatchObject({ recorded: recorded + 1, sent: recorded + 1, unsent: 0 });
});

it('it waits for as long as the collector takes when its time has no end', async () => {
  const answers: (() => void)[] = [];
  held = answers;
  const meter = await openWith({ url });
  meter.record(REQUESTS);
  const closing = meter.close({ timeoutMs: Number.POSITIVE_INFINITY });
  await until(() => answers.length > 0);
  answers.shift()?.();
  expect(await closing).toBe(true);
});

it('events that wait for room find it, and are sent; new ones are not taken', async () => {
  const meter = await openWith({ url, ...MEMORY });
  const recorded = fillMemory(meter);
  const { dropped } = meter.counters;
  const waiting = [1, 2, 3].map(() => meter.recordWhenRoom(REQUESTS));
  const closing = meter.close();
  expect(await meter.recordWhenRoom(REQUESTS)).toBeUndefined();
  expect(await closing).toBe(true);
  expect(collector.events.slice(recorded).map(({ eventId }) => eventId)).toEqual(await Promise.all(waiting));
  expect(meter.counters).toMatchObject({ sent: recorded + 3, dropped: dropped + 1, unsent: 0 });
});

it('an event that waits for room that there cannot be is dropped, and the emitter is not said to have sent it', async () => {
  const meter = await openWith({ url, memoryBytes: 1 });
  const waiting = meter.recordWhenRoom(REQUESTS);
  expect(await meter.close({ timeoutMs: 60_000 })).toBe(false);
  expect(await waiting).toBeUndefined();
  expect(meter.counters).toMatchObject({ recorded: 0, dropped: 1 });
});
