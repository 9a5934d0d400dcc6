/** A Redis at its `maxmemory` is emptied by the workers; producers are refused until then, and nothing is lost. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { type RunningRedis, startRedis } from '@meterline/local-stack';
import { usageEvent } from '../harness/events.js';
import { fillRedis } from '../harness/faults.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, enqueueData, stored, until } from '../harness/queue.js';
import { killServices, withConstants } from '../harness/services.js';

jest.setTimeout(180_000);

let directory: string;
let server: RunningRedis;
let product: Product;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-full-redis-'));
  server = await startRedis({ dataDir: directory });
  product = await startProduct({ redisUrl: server.url });
});
afterEach(() => killServices());
afterAll(async () => {
  await product.close();
  await server.stop();
  await rm(directory, { recursive: true });
});

it('a full Redis is emptied by a worker that starts, and the API answers meanwhile', async () => {
  const { queue, redis, warehouse } = product;
  const key = await product.key('acme', 'admin', 'e2e');
  const query = await product.startQuery();
  const get = (path: string) => fetch(query.url + path, { headers: { authorization: `Bearer ${key}` } });

  await enqueue(queue, 100, 100);
  await fillRedis(redis);
  await expect(enqueueData(queue, usageEvent(20_000))).rejects.toThrow('OOM');
  expect(await (await get('/readyz')).json()).toMatchObject({ status: 'ready', degraded: [{ server: 'Redis' }] });
  // That the key is used for the first time cannot be written down, which is no reason to refuse.
  expect((await get('/v0/accounts')).status).toBe(200);
  expect((await get('/v0/service_accounts/e2e/api_keys')).status).toBe(200);

  const ingest = await product.startIngest(withConstants({ ADMIN_PORT: '0' }, { maintenanceEveryMs: 1_000 }));
  await drained(queue);
  expect(await stored(warehouse)).toEqual({ events: 10_000, usage: 10_000 });
  const taken = async () =>
    enqueueData(queue, usageEvent(20_000)).then(
      () => true,
      () => false,
    );
  await until('a producer is taken again', 10_000, taken);
  await drained(queue);
  expect(await stored(warehouse)).toMatchObject({ events: 10_001 });

  const { adminPort } = await ingest.entry(({ event }) => event === 'started');
  const health = await fetch(`http://127.0.0.1:${adminPort}/healthz`);
  expect([health.status, await health.json()]).toMatchObject([200, { redisFull: false }]);
  expect(await (await get('/readyz')).json()).toEqual({ status: 'ready' });
  expect(await ingest.stop()).toBe(0);
});
