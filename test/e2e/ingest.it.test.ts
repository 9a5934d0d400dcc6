/** From the queue to stored events, with a worker as a real process. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { MeterlineClient } from '@meterline/client';
import { readMetrics } from '@meterline/warehouse';
import { usageEvent } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueueData, stored } from '../harness/queue.js';
import { select } from '../harness/stack.js';
import { adminUrl, scrape } from '../observability/scrape.js';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product.close());

it('a worker stores single events and lists of events, with the prices of the default book', async () => {
  const worker = await product.startIngest();
  const accountId = 'few';
  await enqueueData(product.queue, usageEvent(1, { accountId, usage: '0.1' }));
  await product.send(usageEvent(2, { accountId, usage: 0.2 }), usageEvent(3, { accountId, workspace: 'dev' }));
  const window = { startTime: Date.UTC(2026, 0, 1), endTime: Date.UTC(2026, 1, 1) };
  const query = { accounts: [accountId], window, filters: {}, resolution: 'monthly', limit: 10 } as const;
  const { groups } = await readMetrics(product.warehouse, { ...query, groupBy: ['workspace'] });
  expect(groups.map(({ values, usage, cost }) => [values.workspace, usage, cost])).toEqual([
    ['dev', '1', '0.0000115'],
    ['prod', '0.3', '0.00000345'],
  ]);
  expect(await worker.stop()).toBe(0);
});

/** A third of the jobs that may be in work fill a batch, so that each of three ends by its size, none by time. */
const JOBS = 300;

it('a worker stores many small jobs in few inserts, is healthy and silent, and ends before its deadline', async () => {
  // Of this hour: late events would wait for each other.
  const timestamp = new Date().toISOString();
  const jobs = Array.from({ length: JOBS }, (_, n) => ({ name: 'usage', data: usageEvent(n, { timestamp }) }));
  await product.queue.addBulk(jobs);
  const constants = JSON.stringify({ concurrency: JOBS, flushMs: 60_000, shutdownMs: 600_000 });
  const worker = await product.startIngest({ ADMIN_PORT: '0', METERLINE_CONSTANTS: constants });
  await drained(product.queue);
  // The inserts are counted, not their rows: on a machine that is too busy to renew locks jobs are delivered again.
  const url = await adminUrl(worker);
  const { value } = await scrape(url);
  expect(value('meterline_insert_duration_seconds_count{table="usage_events"}')).toBeLessThan(10);
  expect(await stored(product.warehouse)).toEqual({ events: JOBS, usage: JOBS });
  const health = await fetch(`${url}/healthz`, { headers: { connection: 'close' } });
  expect([health.status, await health.json()]).toMatchObject([200, { waitingJobs: 0, outage: false }]);
  expect(await worker.stop()).toBe(0);
  expect(worker.errorLines()).toEqual([]);
  expect(worker.entries().map(({ event }) => event)).toEqual(['started', 'stopping', 'stopped']);
});

const TENANTS = 300;

it('one request of a platform is stored for each of its accounts, whatever is late, invalid or without an account in it', async () => {
  const [collector, worker] = await Promise.all([product.startCollector(), product.startIngest()]);
  const { timestamp: late, ...anonymous } = usageEvent(1, { accountId: 'late' });
  const timestamp = new Date().toISOString();
  const sent = Array.from({ length: TENANTS }, (_, n) => usageEvent(n, { accountId: `tenant-${n}`, timestamp }));
  const client = new MeterlineClient({
    baseUrl: collector.url,
    credential: await product.key(undefined, 'emitter'),
  });
  const bad = [{ ...anonymous, accountId: undefined, timestamp }, usageEvent(2, { accountId: 'bad', usage: -1 })];
  const { accepted, rejected } = await client.sendEvents([{ ...anonymous, timestamp: late }, ...bad, ...sent]);
  expect([accepted, rejected.map(({ reason }) => reason)]).toEqual([TENANTS + 1, ['missing_field', 'invalid_usage']]);
  await drained(product.queue);
  const accounts = await select<{ accounts: number }>(
    product.warehouse,
    `SELECT toUInt32(uniqExact(account_id)) AS accounts FROM usage_events WHERE account_id LIKE 'tenant-%'`,
  );
  expect(accounts).toEqual([{ accounts: TENANTS }]);
  expect(await stored(product.warehouse, 'late')).toEqual({ events: 1, usage: 1 });
  expect([await collector.stop(), await worker.stop()]).toEqual([0, 0]);
});
