/** What finds no room before the emitter closes: of sums and timers, and events that wait for it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, it } from '@jest/globals';
import { findFreePort } from '@meterline/local-stack';
import { SANDBOX, USAGE, until, useEmitters } from '../../../test/emitter/emitter-test.js';
import { receipt } from '../../../test/emitter/test-collector.js';
import type { Emitter, EmitterOptions } from './index.js';

/** There is room for two events. */
const MEMORY = { memoryBytes: 600 };
const SUMS = 9;

const { fixture, open } = useEmitters();
/** What lets the collector respond to a request that it has read; undefined when it responds at once. */
let held: (() => void)[] | undefined;
beforeEach(() => {
  held = undefined;
  fixture.collector.answer = async ({ events }) => {
    if (held) await new Promise<void>((resolve) => held?.push(resolve));
    return receipt(events);
  };
});

/** @returns how many events are recorded, before the one that is dropped */
function fillMemory(meter: Emitter): number {
  let recorded = 0;
  while (meter.record({ ...USAGE, resourceName: `${recorded}` }) !== undefined) recorded += 1;
  return recorded;
}

/** Fills its memory, and then adds sums and runs a timer. @returns how many events are recorded */
async function fill(meter: Emitter): Promise<number> {
  const recorded = fillMemory(meter);
  for (let n = 0; n < SUMS; n += 1) meter.add({ ...USAGE, resourceName: `sum-${n}` });
  meter.start(SANDBOX);
  // Of no time it has nothing to report.
  await sleep(5);
  return recorded;
}

it('they are sent after what there was, as soon as that has made room', async () => {
  const meter = await open(MEMORY);
  const recorded = await fill(meter);
  const { dropped } = meter.counters;
  expect(await meter.close()).toBe(true);
  expect(fixture.collector.events.filter(({ resourceName }) => resourceName.startsWith('sum-'))).toHaveLength(SUMS);
  expect(fixture.collector.events.filter(({ resourceType }) => resourceType === 'sandbox')).toHaveLength(1);
  const all = recorded + SUMS + 1;
  expect(meter.counters).toMatchObject({ recorded: all, sent: all, dropped, unsent: 0 });
});

it('they are dropped and counted when the time is up, and the emitter is not said to have sent everything', async () => {
  const meter = await open({ url: `http://127.0.0.1:${await findFreePort()}`, ...MEMORY });
  const recorded = await fill(meter);
  const { dropped } = meter.counters;
  expect(await meter.close({ timeoutMs: 50 })).toBe(false);
  expect(meter.counters).toMatchObject({ recorded, sent: 0, dropped: dropped + SUMS + 1, unsent: recorded });
});

it('they are dropped at once when there can be no room', async () => {
  const meter = await open({ memoryBytes: 1 });
  meter.add(USAGE);
  expect(await meter.close({ timeoutMs: 60_000 })).toBe(false);
  expect(meter.counters).toMatchObject({ recorded: 0, dropped: 1 });
  expect(fixture.problems).toMatchObject([
    { code: 'dropped', message: 'usage events are dropped: the emitter is closed' },
  ]);
});

it.each<[string, Partial<EmitterOptions>, (meter: Emitter) => (() => void) | undefined]>([
  ['a sum whose window ends', { reportMs: 20 }, (meter) => void meter.add(USAGE)],
  ['a timer whose interval ends', { reportMs: 20 }, (meter) => void meter.start(SANDBOX)],
  ['a timer that its program stops', {}, (meter) => meter.start(SANDBOX).stop],
])('%s while what there was is being sent: it is sent after that', async (_, options, use) => {
  const answers: (() => void)[] = [];
  held = answers;
  const meter = await open({ ...MEMORY, ...options, batchEvents: 1 });
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
  expect(fixture.collector.events).toHaveLength(recorded + 1);
  expect(meter.counters).toMatchObject({ recorded: recorded + 1, sent: recorded + 1, unsent: 0 });
});

it('it waits for as long as the collector takes when its time has no end', async () => {
  const answers: (() => void)[] = [];
  held = answers;
  const meter = await open();
  meter.record(USAGE);
  const closing = meter.close({ timeoutMs: Number.POSITIVE_INFINITY });
  await until(() => answers.length > 0);
  answers.shift()?.();
  expect(await closing).toBe(true);
});

it('events that wait for room find it, and are sent; new ones are not taken', async () => {
  const meter = await open(MEMORY);
  const recorded = fillMemory(meter);
  const { dropped } = meter.counters;
  const waiting = [1, 2, 3].map(() => meter.recordWhenRoom(USAGE));
  const closing = meter.close();
  expect(await meter.recordWhenRoom(USAGE)).toBeUndefined();
  expect(await closing).toBe(true);
  expect(fixture.collector.events.slice(recorded).map(({ eventId }) => eventId)).toEqual(await Promise.all(waiting));
  expect(meter.counters).toMatchObject({ sent: recorded + 3, dropped: dropped + 1, unsent: 0 });
});

it('an event that waits for room that there cannot be is dropped, and the emitter is not said to have sent it', async () => {
  const meter = await open({ memoryBytes: 1 });
  const waiting = meter.recordWhenRoom(USAGE);
  expect(await meter.close({ timeoutMs: 60_000 })).toBe(false);
  expect(await waiting).toBeUndefined();
  expect(meter.counters).toMatchObject({ recorded: 0, dropped: 1 });
});
