/** What an emitter records, sends, keeps and counts. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { findFreePort } from '@meterline/local-stack';
import { metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { SANDBOX, USAGE, until, useEmitters } from '../../../test/emitter/emitter-test.js';
import { TcpProxy } from '../../../test/faults/tcp-proxy.js';

const { fixture, open } = useEmitters();
const proxies: TcpProxy[] = [];
afterEach(async () => {
  for (const proxy of proxies.splice(0)) await proxy.close();
});

/** A collector whose connections can be broken. */
async function breakable(): Promise<{ url: string; link: TcpProxy }> {
  const link = await TcpProxy.open(Number(new URL(fixture.collector.url).port));
  proxies.push(link);
  return { url: `http://127.0.0.1:${link.port}`, link };
}

const sizes = () => fixture.collector.received.map(({ events }) => events.length).sort((a, b) => b - a);

describe('record', () => {
  it('sends events in batches, with the ids that it has returned', async () => {
    const emitter = await open({ batchEvents: 40 });
    const ids = Array.from({ length: 100 }, () => emitter.record(USAGE));
    expect(await emitter.flush()).toBe(true);
    expect(sizes()).toEqual([40, 40, 20]);
    expect(new Set(fixture.collector.ids)).toEqual(new Set(ids));
    expect(emitter.counters).toEqual({
      recorded: 100,
      sent: 100,
      retried: 0,
      rejected: 0,
      dropped: 0,
      spooled: 0,
      unsent: 0,
    });
  });

  it('sends a batch by itself when it is full, and any when it has waited', async () => {
    const emitter = await open({ batchEvents: 10, batchMs: 50 });
    for (let n = 0; n < 13; n += 1) emitter.record(USAGE);
    await until(() => emitter.counters.sent === 13);
    expect(sizes()).toEqual([10, 3]);
  });

  it('makes smaller requests of large events', async () => {
    const emitter = await open({ batchEvents: 5_000 });
    for (let n = 0; n < 1_500; n += 1) {
      emitter.record({
        ...USAGE,
        resourceName: 'x'.repeat(256),
        resourceUuid: 'y'.repeat(256),
        workspace: 'z'.repeat(256),
      });
    }
    await emitter.flush();
    expect(sizes()).toEqual([expect.any(Number), expect.any(Number)]);
    expect(emitter.counters.sent).toBe(1_500);
  });

  it('refuses what the worker would refuse, tells why, and never throws', async () => {
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

  it('drops the newest when memory is full, counts them, and takes events again later', async () => {
    const { url, link } = await breakable();
    link.treat({ kind: 'refuse' });
    const emitter = await open({ url, memoryBytes: 2_000 });
    const ids = Array.from({ length: 20 }, () => emitter.record(USAGE));
    const taken = ids.filter((id) => id !== undefined);
    expect(taken).toEqual(ids.slice(0, taken.length));
    expect(emitter.counters).toMatchObject({ recorded: taken.length, dropped: 20 - taken.length });
    expect(fixture.problems.filter(({ code }) => code === 'dropped')).toHaveLength(1);
    link.treat({ kind: 'pass' });
    expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    expect(emitter.record(USAGE)).toBeDefined();
    await emitter.flush();
    expect(emitter.counters).toMatchObject({ sent: taken.length + 1 });
  });

  it('recordWhenRoom waits instead, and keeps the time of its call', async () => {
    const { url, link } = await breakable();
    link.treat({ kind: 'refuse' });
    const emitter = await open({ url, memoryBytes: 2_000 });
    while (emitter.record(USAGE) !== undefined);
    const before = Date.now();
    const waiting = emitter.recordWhenRoom({ ...USAGE, resourceName: 'late' });
    await sleep(100);
    const between = Date.now();
    link.treat({ kind: 'pass' });
    const id = await waiting;
    await emitter.flush();
    const late = fixture.collector.events.find(({ eventId }) => eventId === id);
    expect(late?.resourceName).toBe('late');
    expect(Date.parse(late?.timestamp ?? '')).toBeGreaterThanOrEqual(before);
    expect(Date.parse(late?.timestamp ?? '')).toBeLessThan(between);
  });
});

describe('while the collector is away', () => {
  it.each(['refuse', 'hang'] as const)(
    '(%s) flush ends in time, and everything is sent afterwards, once per id',
    async (kind) => {
      const { url, link } = await breakable();
      const emitter = await open({ url });
      emitter.record(USAGE);
      await emitter.flush();
      link.treat({ kind });
      for (let n = 0; n < 99; n += 1) emitter.record(USAGE);
      const started = performance.now();
      expect(await emitter.flush({ timeoutMs: 300 })).toBe(false);
      expect(performance.now() - started).toBeGreaterThan(299);
      link.treat({ kind: 'pass' });
      expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
      expect(new Set(fixture.collector.ids).size).toBe(100);
      expect(emitter.counters).toMatchObject({ recorded: 100, sent: 100, dropped: 0, unsent: 0 });
    },
  );

  it('opens, and reports an outage once', async () => {
    const emitter = await open({ url: `http://127.0.0.1:${await findFreePort()}` });
    emitter.record(USAGE);
    expect(await emitter.flush({ timeoutMs: 500 })).toBe(false);
    expect(fixture.problems).toMatchObject([{ code: 'unreachable', message: expect.stringContaining('ECONNREFUSED') }]);
    expect(await emitter.close({ timeoutMs: 100 })).toBe(false);
    expect(emitter.counters).toMatchObject({ recorded: 1, sent: 0, unsent: 1 });
  });
});

describe('close', () => {
  it('reports timers and sums, sends everything, and takes nothing more', async () => {
    const emitter = await open();
    emitter.start(SANDBOX);
    emitter.start({ ...SANDBOX, workspace: 'stopped' }).stop();
    for (let n = 0; n < 5; n += 1) emitter.add(USAGE);
    await sleep(20);
    expect(await emitter.close()).toBe(true);
    const sent = fixture.collector.events;
    expect(sent.filter(({ billingDimension }) => billingDimension === USAGE.billingDimension)).toMatchObject([
      { usage: '5' },
    ]);
    const [running] = sent.filter(
      ({ resourceType, workspace }) => resourceType === 'sandbox' && workspace === 'production',
    );
    expect(Number(running?.usage)).toBeGreaterThan(0.04);
    expect(emitter.record(USAGE)).toBeUndefined();
    expect(await emitter.recordWhenRoom(USAGE)).toBeUndefined();
    emitter.add(USAGE);
    emitter.start(SANDBOX).stop();
    expect(emitter.counters).toMatchObject({ dropped: 4, unsent: 0 });
  });

  it('leaves in the spool what it could not send, for the next start', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'meterline-spool-'));
    const { url, link } = await breakable();
    link.treat({ kind: 'refuse' });
    const first = await open({ url, spool: { directory, fsyncMs: 1 } });
    const ids = Array.from({ length: 5 }, () => first.record(USAGE));
    expect(await first.close({ timeoutMs: 50 })).toBe(false);
    expect((await readFile(join(directory, '000000000001.jsonl'), 'utf8')).split('\n')).toHaveLength(6);
    const second = await open({ spool: { directory } });
    expect(second.counters).toMatchObject({ recorded: 0, unsent: 5 });
    expect(await second.close()).toBe(true);
    expect(fixture.collector.ids).toEqual(ids);
    expect(second.counters).toMatchObject({ recorded: 0, sent: 5, unsent: 0 });
    await rm(directory, { recursive: true });
  });
});

describe('metrics', () => {
  it('are those of the program’s meter provider', async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const provider = new MeterProvider({ readers: [reader] });
    metrics.setGlobalMeterProvider(provider);
    const emitter = await open();
    for (let n = 0; n < 3; n += 1) emitter.record(USAGE);
    emitter.record({ ...USAGE, usage: -1 });
    await provider.forceFlush();
    const [events, unsent] = exporter.getMetrics()[0]?.scopeMetrics[0]?.metrics ?? [];
    expect(events?.descriptor.name).toBe('meterline.emitter.events');
    expect(events?.dataPoints.map(({ attributes, value }) => [attributes['outcome'], value])).toEqual([
      ['recorded', 3],
      ['sent', 0],
      ['retried', 0],
      ['rejected', 1],
      ['dropped', 0],
      ['spooled', 0],
    ]);
    expect(unsent).toMatchObject({ descriptor: { name: 'meterline.emitter.unsent' }, dataPoints: [{ value: 3 }] });
    await provider.shutdown();
    metrics.disable();
  });
});

describe('what cannot be opened', () => {
  it.each([
    ['https://user:secret@meterline.example.com', 'have no password: use apiKey'],
    ['https://meterline.example.com/?validate=only', 'url must end with its path'],
    ['redis://host', 'url must be the address of a collector: https://host'],
    ['memcached://secret@host', 'url must be the address of a collector: https://host'],
    ['', 'url must be the address of a collector'],
  ])('%s', async (url, message) => {
    await expect(open({ url })).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringContaining(message),
    });
    await expect(open({ url })).rejects.not.toMatchObject({ message: expect.stringContaining('secret') });
  });

  it('a key that no header can carry is not repeated', async () => {
    await expect(open({ apiKey: 'a secret\n' })).rejects.toMatchObject({
      message: 'a collector needs apiKey, a key of role emitter',
    });
  });

  it.each([{ batchEvents: 5_001 }, { batchMs: 0 }, { memoryBytes: 1.5 }, { spool: { directory: '/x', maxBytes: -1 } }])(
    '%j',
    async (options) => {
      await expect(open(options)).rejects.toMatchObject({ code: 'invalid_option' });
    },
  );
});
