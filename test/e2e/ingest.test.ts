/** From the queue to the numbers, with the services as real processes. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { readMetrics } from '@meterline/warehouse';
import { killServices, startIngest, startQuery } from '../services.js';
import { execute } from '../stack.js';
import {
  drained,
  enqueue,
  enqueueData,
  openPipeline,
  type Pipeline,
  stored,
  until,
  usageEvent,
  usageEvents,
  written,
} from './pipeline.js';

jest.setTimeout(180_000);

let pipeline: Pipeline;
beforeEach(async () => {
  pipeline = await openPipeline();
});
afterEach(async () => {
  await killServices();
  await pipeline.close();
});

/** Jobs of ten events that two workers share. */
const SHARED_JOBS = process.env.METERLINE_TEST_SHORT ? 500 : 2_000;
const JANUARY = { startTime: Date.UTC(2026, 0, 1), endTime: Date.UTC(2026, 1, 1) };

describe('ingest', () => {
  it('makes single events and events in a list readable, priced with the default book', async () => {
    await startIngest(pipeline.env);
    await enqueueData(pipeline.queue, usageEvent(1, { usage: '0.1' }));
    await enqueueData(pipeline.queue, { events: [usageEvent(2, { usage: 0.2 }), usageEvent(3, { workspace: 'dev' })] });
    await drained(pipeline.queue);

    const question = { accountId: 'acme', window: JANUARY, filters: {}, resolution: 'monthly', limit: 10 } as const;
    const { groups, totals } = await readMetrics(pipeline.warehouse, { ...question, groupBy: ['workspace'] });
    expect(totals).toEqual({ usage: '1.3', cost: '0.00001495' });
    expect(groups.map(({ values, usage, cost }) => [values.workspace, usage, cost])).toEqual([
      ['dev', '1', '0.0000115'],
      ['prod', '0.3', '0.00000345'],
    ]);
  });

  it('answers over HTTP with the events that were put into the queue', async () => {
    const accounts = new AccountDirectory(pipeline.redis, REDIS_PREFIX);
    const keys = new ApiKeyStore(pipeline.redis, accounts, REDIS_PREFIX);
    const accountId = `acme-${pipeline.env.CLICKHOUSE_DATABASE}`;
    const { key } = await keys.create({ account: accountId, role: 'admin', clientId: 'e2e' }, new Date());
    const [query] = await Promise.all([
      startQuery({ ...pipeline.env, CURSOR_SECRET: 'x'.repeat(32) }),
      startIngest(pipeline.env),
    ]);
    await enqueueData(pipeline.queue, {
      events: [usageEvent(1, { accountId }), usageEvent(2, { accountId, usage: '2.5' })],
    });
    await drained(pipeline.queue);

    const window = 'startTime=2026-01-01T00:00:00Z&endTime=2026-02-01T00:00:00Z';
    const response = await fetch(`${query.url}/v0/accounts/${accountId}/metrics?${window}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('"totalCost":0.00004025');
  });

  it('acknowledges a current event before a job with events of many old months', async () => {
    const { queue, warehouse } = pipeline;
    await startIngest(pipeline.env);
    const inMonth = (n: number) => usageEvent(n, { timestamp: new Date(Date.UTC(2000, n)).toISOString() });
    const late = await enqueueData(queue, { events: Array.from({ length: 60 }, (_, n) => inMonth(n)) });
    const current = await enqueueData(queue, usageEvent(1_000, { timestamp: new Date().toISOString() }));
    await drained(queue);
    const finishedAt = async (job: string) => (await queue.getJob(job))?.finishedOn ?? 0;
    expect(await finishedAt(current)).toBeLessThan(await finishedAt(late));
    expect(await stored(warehouse)).toEqual({ events: 61, usage: 61 });
  });

  it('counts an event once that is sent twice in a job, again in other jobs, and again after a restart', async () => {
    const first = await startIngest(pipeline.env);
    const events = usageEvents(0, 50);
    await enqueueData(pipeline.queue, { events: [...events, ...events] });
    await enqueueData(pipeline.queue, { events });
    for (const event of events) await enqueueData(pipeline.queue, event);
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 50, usage: 50 });

    expect(await first.stop()).toBe(0);
    await startIngest(pipeline.env);
    await enqueueData(pipeline.queue, { events: [...events, usageEvent(50)] });
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 51, usage: 51 });
  });

  it('keeps the highest revision, whatever order revisions arrive in, and drops a voided event', async () => {
    await startIngest(pipeline.env);
    const revisions = [
      usageEvent(1, { revision: 2, usage: 7 }),
      usageEvent(1, { revision: 1, usage: 99 }),
      usageEvent(1),
    ];
    for (const event of revisions) {
      await enqueueData(pipeline.queue, event);
      await drained(pipeline.queue);
    }
    const total = async () => {
      const question = { accountId: 'acme', window: JANUARY, filters: {}, resolution: 'monthly', limit: 1 } as const;
      return (await readMetrics(pipeline.warehouse, { ...question, groupBy: [] })).totals?.usage;
    };
    expect(await total()).toBe('7');
    await enqueueData(pipeline.queue, usageEvent(1, { revision: 3, void: true }));
    await drained(pipeline.queue);
    expect(await total()).toBe('0');
  });

  it('collects many small jobs into few inserts', async () => {
    await execute(pipeline.warehouse, 'SYSTEM STOP MERGES usage_events');
    await enqueue(pipeline.queue, 1_000, 1);
    // Half of the jobs that may be active fill a batch, so that it ends by size, not by time.
    await startIngest({ ...pipeline.env, INGEST_FLUSH_MS: '2000' });
    await drained(pipeline.queue);
    const { inserts, rows } = await written(pipeline.warehouse);
    expect(rows).toBe(1_000);
    expect(inserts).toBeLessThan(20);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 1_000, usage: 1_000 });
  });

  it('shares the work between two workers and stores each event once', async () => {
    await execute(pipeline.warehouse, 'SYSTEM STOP MERGES usage_events');
    await enqueue(pipeline.queue, SHARED_JOBS, 10);
    // With a small concurrency neither worker takes all jobs before the other has started.
    const env = { ...pipeline.env, INGEST_CONCURRENCY: '20' };
    const workers = await Promise.all([startIngest(env), startIngest(env)]);
    await drained(pipeline.queue);
    const events = SHARED_JOBS * 10;
    expect(await stored(pipeline.warehouse)).toEqual({ events, usage: events });
    expect(await written(pipeline.warehouse)).toMatchObject({ rows: events });
    expect(workers.map((worker) => worker.errorLines())).toEqual([[], []]);
  });

  it('keeps no more completed jobs than its limit, whatever producers ask for', async () => {
    await startIngest(pipeline.env);
    const job = (n: number) => ({ name: 'usage', data: usageEvent(n), opts: { removeOnComplete: false } });
    await pipeline.queue.addBulk(Array.from({ length: 1_200 }, (_, n) => job(n)));
    await drained(pipeline.queue);
    await until('the surplus is gone', 5_000, async () => (await pipeline.queue.getCompletedCount()) <= 1_000);
    expect(await stored(pipeline.warehouse)).toMatchObject({ events: 1_200 });
  });

  it('writes nothing to its log while it works', async () => {
    const worker = await startIngest(pipeline.env);
    await enqueue(pipeline.queue, 500, 5);
    await drained(pipeline.queue);
    await worker.stop();
    expect(worker.entries().map(({ event }) => event)).toEqual(['started', 'stopping', 'stopped']);
  });
});
