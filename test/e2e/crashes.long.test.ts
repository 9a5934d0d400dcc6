/** Workers that are stopped while they process jobs end in order. Those that are killed are in test/faults. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, keepBusy, stored, until } from '../harness/queue.js';
import { startIngest } from '../harness/services.js';

jest.setTimeout(300_000);

let product: Product;
beforeEach(async () => {
  product = await startProduct();
});
afterEach(() => product.close());

/** Rows wait for others long enough that their jobs are certainly active. */
const SLOW = { METERLINE_CONSTANTS: JSON.stringify({ flushMs: 60_000 }) };

function inWork(jobs: number): Promise<void> {
  return until(`${jobs} jobs are in work`, 10_000, async () => (await product.queue.getActiveCount()) === jobs);
}

it.each(['SIGTERM', 'SIGINT'] as const)(
  'a worker that is asked to stop ends with code 0 under load and leaves no job in work, after %s',
  async (signal) => {
    const env = { ...product.env, METERLINE_CONSTANTS: JSON.stringify({ batchRows: 500, concurrency: 50 }) };
    const stopped = await startIngest(env);
    await enqueue(product.queue, 1_000, 20);
    const load = keepBusy(product.queue, 20, 20_000);
    await until('some rows are stored', 10_000, async () => (await stored(product.warehouse)).events > 0);
    process.kill(stopped.pid, signal);
    expect(await stopped.exited).toEqual({ code: 0, signal: null });
    const events = await load.end();
    expect(await product.queue.getJobCounts('active', 'failed')).toEqual({ active: 0, failed: 0 });

    await startIngest(env);
    await drained(product.queue);
    expect(await stored(product.warehouse)).toEqual({ events, usage: events });
  },
);

it('a worker that is asked to stop does not wait for rows to fill a batch', async () => {
  await enqueue(product.queue, 20, 1);
  const stopped = await product.startIngest({ ...SLOW });
  await inWork(20);
  // It would have to be killed if it waited as long as the rows do.
  expect(await stopped.stop()).toBe(0);
  expect(await stored(product.warehouse)).toEqual({ events: 20, usage: 20 });
});
