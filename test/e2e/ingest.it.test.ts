/** From the queue to the numbers, with the services as real processes. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readMetrics } from '@meterline/warehouse';
import { usageEvent } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, enqueueData, stored } from '../harness/queue.js';
import { adminUrl, scrape } from '../observability/scrape.js';

let product: Product;
beforeEach(async () => {
  product = await startProduct();
});
afterEach(() => product.close());

it('a worker makes single events and events in a list readable, priced with the default book', async () => {
  await product.startIngest();
  await enqueueData(product.queue, usageEvent(1, { usage: '0.1' }));
  await product.send(usageEvent(2, { usage: 0.2 }), usageEvent(3, { workspace: 'dev' }));
  const window = { startTime: Date.UTC(2026, 0, 1), endTime: Date.UTC(2026, 1, 1) };
  const query = { accounts: ['acme'], window, filters: {}, resolution: 'monthly', limit: 10 } as const;
  const { groups } = await readMetrics(product.warehouse, { ...query, groupBy: ['workspace'] });
  expect(groups.map(({ values, usage, cost }) => [values.workspace, usage, cost])).toEqual([
    ['dev', '1', '0.0000115'],
    ['prod', '0.3', '0.00000345'],
  ]);
});

it('a worker collects many small jobs into few inserts', async () => {
  await enqueue(product.queue, 1_000, 1);
  // Half of the jobs that may be active fill a batch, so that it ends by size, not by time.
  const constants = JSON.stringify({ flushMs: 2_000 });
  const worker = await product.startIngest({ ADMIN_PORT: '0', METERLINE_CONSTANTS: constants });
  await drained(product.queue);
  // The inserts are counted, not their rows: on a machine that is too busy to renew locks jobs are delivered again.
  const { value } = await scrape(await adminUrl(worker));
  expect(value('meterline_insert_duration_seconds_count{table="usage_events"}')).toBeLessThan(20);
  expect(await stored(product.warehouse)).toEqual({ events: 1_000, usage: 1_000 });
});

it('a worker writes nothing to its log while it works', async () => {
  const worker = await product.startIngest();
  await enqueue(product.queue, 500, 5);
  await drained(product.queue);
  await worker.stop();
  expect(worker.entries().map(({ event }) => event)).toEqual(['started', 'stopping', 'stopped']);
});
