/** Redis dies under load and comes back with what its append-only file holds. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { startRedis } from '@meterline/local-stack';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, stored, until } from '../harness/queue.js';
import { killServices, startIngest, startQuery } from '../harness/services.js';
import { adminUrl } from '../observability/scrape.js';

jest.setTimeout(300_000);

/** A Redis that the test may break. */
interface BreakableRedis {
  readonly product: Product;
  readonly url: string;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

async function withOwnRedis(test: (redis: BreakableRedis) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'meterline-outage-'));
  let redis = await startRedis({ dataDir });
  const product = await startProduct({ redisUrl: redis.url });
  const restart = async () => {
    redis = await startRedis({ dataDir, port: redis.port });
  };
  try {
    await test({ product, url: redis.url, kill: () => redis.kill(), restart });
  } finally {
    await product.close();
    await redis.kill();
    await rm(dataDir, { recursive: true });
  }
}

afterAll(killServices);

describe('a worker whose Redis is killed', () => {
  it('a worker whose Redis is killed says once that it is away and that it is back, is healthy meanwhile, and goes on by itself', () =>
    withOwnRedis(async ({ product, kill, restart }) => {
      const worker = await product.startIngest({
        ADMIN_PORT: '0',
        METERLINE_CONSTANTS: JSON.stringify({ batchRows: 500, concurrency: 50 }),
      });
      const url = await adminUrl(worker);
      await enqueue(product.queue, 2_000, 10);
      await until('some rows are stored', 10_000, async () => (await stored(product.warehouse)).events > 0);
      await kill();
      await worker.entry(({ event }) => event === 'outage');
      const health = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(60_000) });
      expect([health.status, await health.json()]).toMatchObject([200, { outage: true }]);

      await restart();
      await worker.entry(({ event }) => event === 'outage_over');
      await drained(product.queue, 45_000);
      expect(await stored(product.warehouse)).toEqual({ events: 20_000, usage: 20_000 });
      expect(worker.entries().length).toBeLessThan(10);
      expect(worker.errorLines()).toEqual([]);
    }));

  it('a worker whose Redis is killed does not tell its password when Redis refuses it at its return', () =>
    withOwnRedis(async ({ product, url }) => {
      const rotated = (password: string) =>
        product.redis.acl('SETUSER', 'rotated', 'on', 'resetpass', `>${password}`, '~*', '&*', '+@all');
      await rotated('s3cret-of-old');
      const address = new URL(url);
      address.username = 'rotated';
      address.password = 's3cret-of-old';
      const env = { ...product.env, REDIS_URL: address.href };
      const services = await Promise.all([startIngest(env), startQuery(env)]);
      await rotated('s3cret-of-new');
      await product.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      for (const service of services) {
        await service.entry(({ err }) => JSON.stringify(err ?? '').includes('WRONGPASS'));
        expect(service.log()).not.toContain('s3cret');
      }
    }));

  it('a worker whose Redis is killed ends with code 0 within the deadline when it is asked to, and loses nothing', () =>
    withOwnRedis(async ({ product, kill, restart }) => {
      const worker = await product.startIngest({
        METERLINE_CONSTANTS: JSON.stringify({ shutdownMs: 1_000, flushMs: 60_000 }),
      });
      await enqueue(product.queue, 20, 10);
      await until('jobs are in work', 10_000, async () => (await product.queue.getActiveCount()) === 20);
      await kill();
      // It would have to be killed if it waited for Redis.
      expect(await worker.stop()).toBe(0);

      await restart();
      await product.startIngest();
      await drained(product.queue, 45_000);
      expect(await stored(product.warehouse)).toEqual({ events: 200, usage: 200 });
    }));
});
