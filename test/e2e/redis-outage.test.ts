/** Redis dies under load and comes back with what its append-only file holds. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { findFreePort, type RunningRedis, startRedis } from '@meterline/local-stack';
import { killServices, startIngest } from '../services.js';
import { drained, enqueue, openPipeline, type Pipeline, stored, until } from './pipeline.js';

jest.setTimeout(90_000);

let directory: string;
let redis: RunningRedis;
let pipeline: Pipeline;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-outage-'));
  redis = await startRedis({ dataDir: directory });
  pipeline = await openPipeline({ redisUrl: redis.url });
});
afterEach(async () => {
  await killServices();
  await pipeline.close();
  await redis.kill();
  await rm(directory, { recursive: true });
});

async function restartRedis(): Promise<void> {
  redis = await startRedis({ dataDir: directory, port: redis.port });
}

describe('a worker whose Redis is killed', () => {
  it('loses nothing, fails no job, floods no log, and goes on by itself', async () => {
    const env = { ...pipeline.env, INGEST_BATCH_ROWS: '500', INGEST_CONCURRENCY: '50' };
    const worker = await startIngest(env);
    await enqueue(pipeline.queue, 2_000, 10);
    await until('some rows are stored', 10_000, async () => (await stored(pipeline.warehouse)).events > 0);
    await redis.kill();
    await worker.entry(({ event }) => event === 'outage');
    expect((await stored(pipeline.warehouse)).events).toBeLessThan(20_000);

    await restartRedis();
    await drained(pipeline.queue, 45_000);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 20_000, usage: 20_000 });
    expect(worker.entries().length).toBeLessThan(10);
    expect(worker.errorLines()).toEqual([]);
  });

  it('while idle says that it is away and that it is back, and is healthy all the while', async () => {
    const port = await findFreePort();
    const worker = await startIngest({ ...pipeline.env, ADMIN_PORT: String(port) });
    await redis.kill();
    await worker.entry(({ event }) => event === 'outage');
    const health = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(2_000) });
    expect([health.status, await health.json()]).toMatchObject([200, { outage: true }]);

    await restartRedis();
    await worker.entry(({ event }) => event === 'outage_over');
    await enqueue(pipeline.queue, 1, 10);
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 10, usage: 10 });
  });

  it('ends with code 0 within the deadline when it is asked to, and loses nothing', async () => {
    const worker = await startIngest({ ...pipeline.env, SHUTDOWN_TIMEOUT_MS: '2000', INGEST_FLUSH_MS: '60000' });
    await enqueue(pipeline.queue, 20, 10);
    await until('jobs are in work', 10_000, async () => (await pipeline.queue.getActiveCount()) === 20);
    await redis.kill();
    const asked = Date.now();
    expect(await worker.stop()).toBe(0);
    expect(Date.now() - asked).toBeLessThan(3_000);

    await restartRedis();
    await startIngest(pipeline.env);
    await drained(pipeline.queue, 45_000);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 200, usage: 200 });
  });
});
