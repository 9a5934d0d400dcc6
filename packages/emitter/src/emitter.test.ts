/** Tests what an emitter records, sends, counts and drops. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { findFreePort } from '@meterline/local-stack/ports';
import { metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { receipt, SANDBOX, USAGE, until, useEmitters } from '../../../test/emitter/fixture.js';
import { TcpProxy } from '../../../test/faults/tcp-proxy.js';
import type { Emitter, EmitterOptions, EventToRecord } from './index.js';

const { fixture, open } = useEmitters();
const record = (emitter: Emitter, count: number, changes: Partial<EventToRecord> = {}) =>
  Array.from({ length: count }, () => emitter.record({ ...USAGE, ...changes }));
const sizes = () => fixture.collector.received.map(({ events }) => events.length).sort((a, b) => b - a);

describe('record', () => {
  it('record sends events in batches, with the IDs that it returns', async () => {
    const emitter = await open({ batchEvents: 40 });
    const ids = record(emitter, 100);
    expect(await emitter.flush()).toBe(true);
    expect(sizes()).toEqual([40, 40, 20]);
    expect(new Set(fixture.collector.ids)).toEqual(new Set(ids));
    const none = { retried: 0, rejected: 0, dropped: 0, spooled: 0, unsent: 0 };
    expect(emitter.counters).toEqual({ recorded: 100, sent: 100, ...none });
  });

  it('record sends a batch when it is full or when its maximum wait is over', async () => {
    const emitter = await open({ batchEvents: 10 });
    record(emitter, 13);
    await until(() => emitter.counters.sent === 13);
    expect(sizes()).toEqual([10, 3]);
  });

  it('record sends fewer large events per request', async () => {
    const emitter = await open({ batchEvents: 5_000 });
    const name = 'x'.repeat(256);
    record(emitter, 1_500, { resourceName: name, resourceUuid: name, workspace: name });
    await emitter.flush();
    expect(sizes()).toHaveLength(2);
    expect(emitter.counters.sent).toBe(1_500);
  });

  it('record rejects events that the worker would reject, reports the reason, and never throws', async () => {
    const emitter = await open();
    const trap = Object.defineProperty({ ...USAGE }, 'usage', {
      enumerable: true,
      get: () => {
        throw new Error('a getter');
      },
    });
    const bad = [{ ...USAGE, usage: -1 }, { ...USAGE, workspace: '' }, JSON.parse('null'), trap];
    expect(bad.map((event) => emitter.record(event))).toEqual([undefined, undefined, undefined, undefined]);
    expect(fixture.problems).toMatchObject([
      { code: 'rejected', reason: 'invalid_usage', event: bad[0] },
      { code: 'rejected', reason: 'invalid_workspace', message: expect.stringContaining('workspace must be a string') },
      { code: 'rejected', reason: 'event_not_an_object' },
      { code: 'rejected', message: expect.stringContaining('a getter') },
    ]);
    expect(emitter.counters).toMatchObject({ rejected: 4, recorded: 0 });
  });

  it('the report of a rejected event names its account, resource and ID as far as they can be read', async () => {
    const emitter = await open();
    const trap = Object.defineProperty({ ...USAGE }, 'accountId', {
      enumerable: true,
      get: () => {
        throw new Error('a getter');
      },
    });
    const named = { ...USAGE, accountId: 'acme', resourceName: 'support', eventId: 'b-2' };
    for (const event of [named, { ...USAGE, accountId: '' }, trap]) emitter.record(event);
    expect(fixture.problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('a usage event (account "acme", resource "support", event ID "b-2") is rejected ('),
      expect.stringContaining('a usage event (resource "support") is rejected (invalid_account_id): '),
      expect.stringContaining('a usage event is rejected (event_not_an_object): '),
    ]);
  });

  it('counters are exported through the meter provider of the program', async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const provider = new MeterProvider({ readers: [reader] });
    metrics.setGlobalMeterProvider(provider);
    const emitter = await open({ batchMs: 60_000 });
    record(emitter, 3);
    record(emitter, 1, { usage: -1 });
    await provider.forceFlush();
    const [events, unsent] = exporter.getMetrics()[0]?.scopeMetrics[0]?.metrics ?? [];
    const outcomes = events?.dataPoints.map(({ attributes, value }) => [attributes['outcome'], value]);
    expect([events?.descriptor.name, Object.fromEntries(outcomes ?? [])]).toEqual([
      'meterline.emitter.events',
      { recorded: 3, sent: 0, retried: 0, rejected: 1, dropped: 0, spooled: 0 },
    ]);
    expect(unsent).toMatchObject({ descriptor: { name: 'meterline.emitter.unsent' }, dataPoints: [{ value: 3 }] });
    await provider.shutdown();
    metrics.disable();
  });
});

describe('while the collector is away', () => {
  const proxies: TcpProxy[] = [];
  afterEach(async () => {
    for (const proxy of proxies.splice(0)) await proxy.close();
  });
  /** Opens an emitter whose connections the test can break. */
  async function openBreakable(options: Partial<EmitterOptions> = {}) {
    const link = await TcpProxy.open(Number(new URL(fixture.collector.url).port));
    proxies.push(link);
    return { link, emitter: await open({ url: `http://127.0.0.1:${link.port}`, ...options }) };
  }

  it.each(['refuse', 'hang'] as const)(
    'while connections to the collector %s, flush returns at its timeout, and all events are sent later, once per ID',
    async (kind) => {
      const { emitter, link } = await openBreakable();
      record(emitter, 1);
      await emitter.flush();
      link.treat({ kind });
      record(emitter, 99);
      const started = performance.now();
      expect(await emitter.flush({ timeoutMs: 300 })).toBe(false);
      expect(performance.now() - started).toBeGreaterThan(299);
      link.treat({ kind: 'pass' });
      expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
      expect(new Set(fixture.collector.ids).size).toBe(100);
      expect(emitter.counters).toMatchObject({ recorded: 100, sent: 100, dropped: 0, unsent: 0 });
    },
  );

  it('while the collector is unreachable and memory is full, new events are dropped, counted, and reported once', async () => {
    const { emitter, link } = await openBreakable({ memoryBytes: 2_000 });
    link.treat({ kind: 'refuse' });
    const ids = record(emitter, 20);
    const taken = ids.filter((id) => id !== undefined);
    expect(taken).toEqual(ids.slice(0, taken.length));
    expect(emitter.counters).toMatchObject({ recorded: taken.length, dropped: 20 - taken.length });
    expect(fixture.problems.filter(({ code }) => code === 'dropped')).toHaveLength(1);
    link.treat({ kind: 'pass' });
    expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    expect(record(emitter, 1)).not.toEqual([undefined]);
    await emitter.flush();
    expect(emitter.counters).toMatchObject({ sent: taken.length + 1 });
  });
});

/** Memory for two events. */
const MEMORY = { memoryBytes: 600 };
const SUMS = 9;

describe('close', () => {
  /** Functions that let the collector respond to its pending requests. If undefined, it responds immediately. */
  let held: (() => void)[] | undefined;
  beforeEach(() => {
    held = undefined;
    fixture.collector.respond = async ({ events }) => {
      if (held) await new Promise<void>((resolve) => held?.push(resolve));
      return receipt(events);
    };
  });

  /** Records events until one is dropped. @returns the number of recorded events */
  function fillMemory(emitter: Emitter): number {
    let recorded = 0;
    while (emitter.record({ ...USAGE, resourceName: `${recorded}` }) !== undefined) recorded += 1;
    return recorded;
  }

  /** Fills the memory, then adds sums and starts a timer. @returns the number of recorded events */
  async function fill(emitter: Emitter): Promise<number> {
    const recorded = fillMemory(emitter);
    for (let n = 0; n < SUMS; n += 1) emitter.add({ ...USAGE, resourceName: `sum-${n}` });
    emitter.start(SANDBOX);
    // Without elapsed time, a timer has nothing to report.
    await sleep(5);
    return recorded;
  }

  it('close sends a sum even if the clock was set back', async () => {
    const emitter = await open();
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000);
    emitter.add(USAGE);
    clock.mockRestore();
    expect(await emitter.close()).toBe(true);
    expect(emitter.counters).toMatchObject({ recorded: 1, sent: 1, rejected: 0 });
  });

  it('close sends timers, sums and all events, and later events are dropped', async () => {
    const emitter = await open();
    emitter.start(SANDBOX);
    emitter.start({ ...SANDBOX, workspace: 'stopped' }).stop();
    for (let n = 0; n < 5; n += 1) emitter.add(USAGE);
    await sleep(20);
    expect(await emitter.close()).toBe(true);
    const usageOf = (type: string, workspace = 'production') =>
      fixture.collector.events
        .filter((event) => event.resourceType === type && event.workspace === workspace)
        .map(({ usage }) => Number(usage));
    expect(usageOf('agent')).toEqual([5]);
    expect(usageOf('sandbox')).toEqual([expect.any(Number)]);
    expect(usageOf('sandbox')[0]).toBeGreaterThan(0.04);
    expect(emitter.record(USAGE)).toBeUndefined();
    emitter.add(USAGE);
    emitter.start(SANDBOX).stop();
    expect(emitter.counters).toMatchObject({ dropped: 3, unsent: 0 });
  });

  it('close sends sums and timers as soon as sent events have made room', async () => {
    const emitter = await open({ ...MEMORY, batchMs: 60_000 });
    const all = (await fill(emitter)) + SUMS + 1;
    const { dropped } = emitter.counters;
    expect(await emitter.close()).toBe(true);
    expect(fixture.collector.events).toHaveLength(all);
    expect(emitter.counters).toMatchObject({ recorded: all, sent: all, dropped, unsent: 0 });
  });

  it('close drops and counts unsent sums and timers at its timeout, and returns false', async () => {
    const emitter = await open({ url: `http://127.0.0.1:${await findFreePort()}`, ...MEMORY });
    const recorded = await fill(emitter);
    const { dropped } = emitter.counters;
    const started = performance.now();
    await until(() => emitter.counters.retried >= 3 * recorded);
    // Pauses double, and half of each is jitter: at least 25, 50 and 100 ms.
    expect(performance.now() - started).toBeGreaterThan(175);
    expect(fixture.problems).toMatchObject([
      { code: 'dropped', message: 'usage events are dropped: there is no room' },
      { code: 'unreachable', message: expect.stringContaining('ECONNREFUSED') },
    ]);
    expect(await emitter.close({ timeoutMs: 50 })).toBe(false);
    expect(emitter.counters).toMatchObject({ recorded, sent: 0, dropped: dropped + SUMS + 1, unsent: recorded });
  });

  it('close immediately drops events that can never fit', async () => {
    const emitter = await open({ memoryBytes: 1 });
    emitter.add(USAGE);
    expect(await emitter.close({ timeoutMs: 60_000 })).toBe(false);
    expect(emitter.counters).toMatchObject({ recorded: 0, dropped: 1 });
    expect(fixture.problems).toMatchObject([
      { code: 'dropped', message: 'usage events are dropped: the emitter is closed' },
    ]);
  });

  it.each<[string, Partial<EmitterOptions>, (emitter: Emitter) => (() => void) | undefined]>([
    ['from a sum whose window ends', { reportMs: 20 }, (emitter) => void emitter.add(USAGE)],
    ['from a timer whose interval ends', { reportMs: 20 }, (emitter) => void emitter.start(SANDBOX)],
    ['from a timer that the program stops', {}, (emitter) => emitter.start(SANDBOX).stop],
  ])('close sends an event %s during close', async (_, options, use) => {
    const responses: (() => void)[] = [];
    held = responses;
    const emitter = await open({ ...MEMORY, ...options, batchMs: 60_000, batchEvents: 1 });
    const recorded = fillMemory(emitter);
    const stop = use(emitter);
    await sleep(5);
    const closing = emitter.close({ timeoutMs: Number.POSITIVE_INFINITY });
    // Sending all events except the last makes room.
    for (let sent = 1; sent < recorded; sent += 1) {
      await until(() => responses.length > 0);
      responses.shift()?.();
      await until(() => emitter.counters.sent === sent);
    }
    await until(() => responses.length > 0);
    stop?.();
    await until(() => emitter.counters.recorded > recorded);
    held = undefined;
    for (const release of responses.splice(0)) release();
    expect(await closing).toBe(true);
    expect(fixture.collector.events).toHaveLength(recorded + 1);
    expect(emitter.counters).toMatchObject({ recorded: recorded + 1, sent: recorded + 1, unsent: 0 });
  });

  it('close aborts requests without a response at its timeout', async () => {
    fixture.collector.server.removeAllListeners('request');
    const requested = once(fixture.collector.server, 'request');
    const emitter = await open();
    record(emitter, 1);
    await requested;
    expect(await emitter.close({ timeoutMs: 0 })).toBe(false);
    expect(emitter.counters).toMatchObject({ sent: 0, unsent: 1 });
  });
});

it.each<[Partial<EmitterOptions>, string]>([
  [{ url: 'https://user:secret@meterline.example.com' }, "the collector's url must be a URL without user and password"],
  [
    { url: 'https://meterline.example.com/?validate=only' },
    "the collector's url must be a URL without user and password, ? and #",
  ],
  [{ url: 'redis://host' }, "the collector's url must be a URL such as https://"],
  [{ url: 'memcached://secret@host' }, "the collector's url must be a URL such as https://"],
  [{ url: '' }, "the collector's url must be a URL such as https://"],
  [{ apiKey: 'a secret\n' }, 'apiKey must be a key with the role emitter'],
  [{ batchEvents: 5_001 }, 'batchEvents must be a whole number from 1 to 5000, not 5001'],
  [{ batchMs: 0 }, 'batchMs must be a whole number from 1'],
  [{ memoryBytes: 1.5 }, 'memoryBytes must be a whole number'],
  [{ spool: { directory: '/x', maxBytes: -1 } }, 'spool.maxBytes must be a whole number'],
  ...['"usage"', '{}', '{"directory":""}', '{"directory":7}'].map((spool): [Partial<EmitterOptions>, string] => [
    { spool: JSON.parse(spool) },
    'spool.directory must be the path of a folder',
  ]),
])('openEmitter rejects %j without repeating secrets', async (options, message) => {
  await expect(open(options)).rejects.toMatchObject({
    code: 'invalid_option',
    message: expect.stringContaining(message),
  });
  await expect(open(options)).rejects.not.toMatchObject({ message: expect.stringContaining('secret') });
});
