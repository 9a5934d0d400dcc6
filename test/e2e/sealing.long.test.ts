/** Ingest processes that seal, as they do in production but more often. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { readWatermarks } from '@meterline/warehouse';
import { runCommand } from '../cli/run-command.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, until } from '../harness/queue.js';
import { type LogEntry, startIngest, withConstants } from '../harness/services.js';
import { execute } from '../harness/stack.js';

jest.setTimeout(400_000);

let product: Product;
beforeEach(async () => {
  product = await startProduct();
});
afterEach(() => product.close());

const sealing = () => withConstants(product.env, { maintenanceEveryMs: 200 });
const isDailySeal = ({ event, grain }: LogEntry) => event === 'sealed' && grain === 'daily';
/** Names a step, the same for every process that may have run it. */
const stepOf = ({ shard, grain, from, to }: LogEntry) => `${shard} ${grain} ${from} ${to}`;

async function audit() {
  const { REDIS_URL: _redis, ...env } = product.env;
  return runCommand(['audit'], { env });
}

it('sealing seals the events that were there before it started, and late ones', async () => {
  const before = await product.startIngest();
  await enqueue(product.queue, 10, 100);
  await drained(product.queue);
  await before.stop();

  const worker = await startIngest(sealing());
  await worker.entry(isDailySeal);
  await enqueue(product.queue, 10, 100, 1_000);
  await drained(product.queue);
  expect(await audit()).toMatchObject({
    code: 0,
    stdout: 'Compared 1 day. Every rollup row agrees with its events.\n',
  });
});

it('sealing is done once by several processes, and goes on when the one that did it is gone', async () => {
  const workers = await Promise.all([startIngest(sealing()), startIngest(sealing()), startIngest(sealing())]);
  await Promise.race(workers.map((worker) => worker.entry(isDailySeal)));
  const steps = workers.flatMap((worker) =>
    worker
      .entries()
      .filter(({ event }) => event === 'sealed')
      .map(stepOf),
  );
  expect(new Set(steps).size).toBe(steps.length);

  const sealers = workers.filter((worker) => worker.entries().some(({ event }) => event === 'sealed'));
  await Promise.all(sealers.map((worker) => worker.kill()));
  // As after a long stop: without watermarks everything must be sealed again.
  for (const shard of product.shards.all) await execute(shard, 'TRUNCATE TABLE rollup_watermarks');
  if (sealers.length === workers.length) await startIngest(sealing());
  await until(
    'another process seals',
    60_000,
    async () => (await readWatermarks(product.warehouse)).daily.sealedUntil > 0,
  );
});

it('sealing ends with its process, also in the middle of a step', async () => {
  const worker = await startIngest(sealing());
  expect(await worker.stop()).toBe(0);
  // A stop that waited for a step would reach its deadline, log it, and still end with code 0.
  expect(worker.entries().map(({ event }) => event)).not.toContain('stopped_unfinished');
});
