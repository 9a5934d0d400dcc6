/** ClickHouse stops under load; the queue keeps the jobs that cannot be stored. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { findFreePort, type RunningClickHouse, startClickHouse } from '@meterline/local-stack';
import { freeze } from '../harness/faults.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, stored, until } from '../harness/queue.js';

jest.setTimeout(300_000);

let directory: string;
let clickhouse: RunningClickHouse;
let product: Product;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-outage-'));
  clickhouse = await startClickHouse({ dataDir: directory });
  product = await startProduct({ clickhouse });
});
afterEach(async () => {
  await product.close();
  await clickhouse.kill();
  await rm(directory, { recursive: true });
});

async function restartClickHouse(): Promise<void> {
  clickhouse = await startClickHouse({ dataDir: directory, httpPort: clickhouse.httpPort });
}

it('a worker whose ClickHouse is away fails no job, floods no log, stays healthy, and goes on by itself when ClickHouse is back', async () => {
  const port = await findFreePort();
  // The repairer notices an outage by itself, and has a line of its own.
  const variables = { METERLINE_CONSTANTS: JSON.stringify({ batchRows: 1_000 }), ADMIN_PORT: String(port) };
  const worker = await product.startIngest({ ...variables });
  await enqueue(product.queue, 2_000, 10);
  await until('some rows are stored', 10_000, async () => (await stored(product.warehouse)).events > 0);
  await clickhouse.kill();
  // A slow test may have left the worker nothing to store until here.
  await enqueue(product.queue, 500, 10, 20_000);
  await worker.entry(({ event }) => event === 'outage');
  expect(await (await fetch(`http://127.0.0.1:${port}/healthz`)).json()).toMatchObject({ outage: true });

  await restartClickHouse();
  await drained(product.queue);
  expect(await stored(product.warehouse)).toEqual({ events: 25_000, usage: 25_000 });
  // On a busy machine the worker may also log that a lock was renewed late.
  const said = worker.entries().filter(({ event }) => event !== 'queue_error');
  expect(said.map(({ event }) => event)).toEqual(['migrated', 'started', 'outage', 'outage_over']);
  expect(worker.entries().length).toBeLessThan(10);

  await enqueue(product.queue, 1_000, 10, 25_000);
  await drained(product.queue);
  expect(await stored(product.warehouse)).toEqual({ events: 35_000, usage: 35_000 });
});

it.each([
  ['refuses connections', () => clickhouse.kill()],
  ['takes connections and never answers', () => freeze(clickhouse.pid)],
])(
  'a worker whose ClickHouse is away gives its jobs back and ends with code 0 within the deadline when ClickHouse %s',
  async (_, fail) => {
    const worker = await product.startIngest({ METERLINE_CONSTANTS: JSON.stringify({ shutdownMs: 1_000 }) });
    await fail();
    await enqueue(product.queue, 300, 10);
    // The events are late: half of the worker's places are for such jobs, and it puts back those that find none.
    const taken = async () => Object.values(await product.queue.getJobCounts('active', 'delayed'));
    await until('all jobs were taken', 10_000, async () => (await taken()).reduce((a, b) => a + b) === 300);

    // A worker that waited for its insert would not give its jobs back.
    expect(await worker.stop()).toBe(0);
    const {
      waiting = 0,
      delayed = 0,
      ...others
    } = await product.queue.getJobCounts('active', 'waiting', 'delayed', 'failed');
    expect([waiting + delayed, others]).toEqual([300, { active: 0, failed: 0 }]);
    expect(worker.entries().at(-1)).toMatchObject({ event: 'stopped' });

    await clickhouse.kill();
    await restartClickHouse();
    await product.startIngest();
    await drained(product.queue);
    expect(await stored(product.warehouse)).toEqual({ events: 3_000, usage: 3_000 });
  },
);
