/** Redis dies under load and comes back with what its append-only file holds. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { findFreePort, startRedis } from '@meterline/local-stack';
import { killServices, startIngest, startQuery } from '../services.js';
import { drained, enqueue, openPipeline, type Pipeline, stored, until } from './pipeline.js';

jest.setTimeout(300_000);

/** A Redis that the test may break. */
interface BreakableRedis {
  readonly pipeline: Pipeline;
  readonly url: string;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

async function withOwnRedis(test: (redis: BreakableRedis) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'meterline-outage-'));
  let redis = await startRedis({ dataDir });
  const pipeline = await openPipeline({ redisUrl: redis.url });
  const restart = async () => {
    redis = await startRedis({ dataDir, port: redis.port });
  };
  try {
    await test({ pipeline, url: redis.url, kill: () => redis.kill(), restart });
  } finally {
    await pipeline.close();
    await redis.kill();
    await rm(dataDir, { recursive: true });
  }
}

afterAll(killServices);

// Concurrent, because these tests mostly wait until locks expire.
describe('a worker whose Redis is killed', () => {
  it.concurrent('loses nothing, fails no job, floods no log, and goes on by itself', () =>
    withOwnRedis(async ({ pipeline, kill, restart }) => {
      const env = { ...pipeline.env, INGEST_BATCH_ROWS: '500', INGEST_CONCURRENCY: '50' };
      const worker = await startIngest(env);
      await enqueue(pipeline.queue, 2_000, 10);
      await until('some rows are stored', 10_000, async () => (await stored(pipeline.warehouse)).events > 0);
      await kill();
      await worker.entry(({ event }) => event === 'outage');

      await restart();
      await drained(pipeline.queue, 45_000);
      expect(await stored(pipeline.warehouse)).toEqual({ events: 20_000, usage: 20_000 });
      expect(worker.entries().length).toBeLessThan(10);
      expect(worker.errorLines()).toEqual([]);
    }));

  it.concurrent('while idle says that it is away and that it is back, and is healthy all the while', () =>
    withOwnRedis(async ({ pipeline, kill, restart }) => {
      const port = await findFreePort();
      const worker = await startIngest({ ...pipeline.env, ADMIN_PORT: String(port) });
      await kill();
      await worker.entry(({ event }) => event === 'outage');
      const health = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(60_000) });
      expect([health.status, await health.json()]).toMatchObject([200, { outage: true }]);

      await restart();
      await worker.entry(({ event }) => event === 'outage_over');
      await enqueue(pipeline.queue, 1, 10);
      await drained(pipeline.queue);
      expect(await stored(pipeline.warehouse)).toEqual({ events: 10, usage: 10 });
    }));

  it.concurrent('does not tell its password when Redis refuses it at its return', () =>
    withOwnRedis(async ({ pipeline, url }) => {
      await pipeline.redis.config('SET', 'requirepass', 's3cret-of-old');
      const address = new URL(url);
      const { password } = address;
      address.password = 's3cret-of-old';
      const env = { ...pipeline.env, REDIS_URL: address.href, CURSOR_SECRET: 'x'.repeat(32) };
      const services = await Promise.all([startIngest(env), startQuery(env)]);
      await pipeline.redis.config('SET', 'requirepass', 's3cret-of-new');
      await pipeline.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      for (const service of services) {
        await service.entry(({ err }) => JSON.stringify(err ?? '').includes('WRONGPASS'));
        expect(service.log()).not.toContain('s3cret');
      }
      await pipeline.redis.config('SET', 'requirepass', password);
    }));

  it.concurrent('ends with code 0 within the deadline when it is asked to, and loses nothing', () =>
    withOwnRedis(async ({ pipeline, kill, restart }) => {
      const worker = await startIngest({ ...pipeline.env, SHUTDOWN_TIMEOUT_MS: '1000', INGEST_FLUSH_MS: '60000' });
      await enqueue(pipeline.queue, 20, 10);
      await until('jobs are in work', 10_000, async () => (await pipeline.queue.getActiveCount()) === 20);
      await kill();
      // It would have to be killed if it waited for Redis.
      expect(await worker.stop()).toBe(0);

      await restart();
      await startIngest(pipeline.env);
      await drained(pipeline.queue, 45_000);
      expect(await stored(pipeline.warehouse)).toEqual({ events: 200, usage: 200 });
    }));
});
