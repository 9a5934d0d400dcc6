/** ClickHouse stops under load; the queue keeps the jobs that cannot be stored. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { findFreePort, type RunningClickHouse, startClickHouse } from '@meterline/local-stack';
import { freeze } from '../freeze.js';
import { killServices, startIngest } from '../services.js';
import { drained, enqueue, openPipeline, type Pipeline, stored, until } from './pipeline.js';

jest.setTimeout(300_000);

let directory: string;
let clickhouse: RunningClickHouse;
let pipeline: Pipeline;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-outage-'));
  clickhouse = await startClickHouse({ dataDir: directory });
  pipeline = await openPipeline({ clickhouse });
});
afterEach(async () => {
  await killServices();
  await pipeline.close();
  await clickhouse.kill();
  await rm(directory, { recursive: true });
});

async function restartClickHouse(): Promise<void> {
  clickhouse = await startClickHouse({ dataDir: directory, httpPort: clickhouse.httpPort });
}

describe('a worker whose ClickHouse is away', () => {
  it('fails no job, floods no log, stays healthy, and goes on by itself when ClickHouse is back', async () => {
    const port = await findFreePort();
    // The repairer notices an outage by itself, and has a line of its own.
    const variables = { INGEST_BATCH_ROWS: '1000', ADMIN_PORT: String(port), REPAIR_EVERY_MS: '600000' };
    const worker = await startIngest({ ...pipeline.env, ...variables });
    await enqueue(pipeline.queue, 2_000, 10);
    await until('some rows are stored', 10_000, async () => (await stored(pipeline.warehouse)).events > 0);
    await clickhouse.kill();
    // A slow test may have left the worker nothing to store until here.
    await enqueue(pipeline.queue, 500, 10, 20_000);
    await worker.entry(({ event }) => event === 'outage');
    expect(await (await fetch(`http://127.0.0.1:${port}/healthz`)).json()).toMatchObject({ outage: true });

    await restartClickHouse();
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 25_000, usage: 25_000 });
    // On a busy machine the worker may also log that a lock was renewed late.
    const said = worker.entries().filter(({ event }) => event !== 'queue_error');
    expect(said.map(({ event }) => event)).toEqual(['migrated', 'started', 'outage', 'outage_over']);
    expect(worker.entries().length).toBeLessThan(10);

    await enqueue(pipeline.queue, 1_000, 10, 25_000);
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 35_000, usage: 35_000 });
  });

  it.each([
    ['refuses connections', () => clickhouse.kill()],
    ['takes connections and never answers', () => freeze(clickhouse.pid)],
  ])('gives its jobs back and ends with code 0 within the deadline when ClickHouse %s', async (_, fail) => {
    const worker = await startIngest({ ...pipeline.env, SHUTDOWN_TIMEOUT_MS: '1000' });
    await fail();
    await enqueue(pipeline.queue, 300, 10);
    // The events are late: half of the worker's places are for such jobs, and it puts back those that find none.
    const taken = async () => Object.values(await pipeline.queue.getJobCounts('active', 'delayed'));
    await until('all jobs were taken', 10_000, async () => (await taken()).reduce((a, b) => a + b) === 300);

    // A worker that waited for its insert would not give its jobs back.
    expect(await worker.stop()).toBe(0);
    const {
      waiting = 0,
      delayed = 0,
      ...others
    } = await pipeline.queue.getJobCounts('active', 'waiting', 'delayed', 'failed');
    expect([waiting + delayed, others]).toEqual([300, { active: 0, failed: 0 }]);
    expect(worker.entries().at(-1)).toMatchObject({ event: 'stopped' });

    await clickhouse.kill();
    await restartClickHouse();
    await startIngest(pipeline.env);
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 3_000, usage: 3_000 });
  });
});
