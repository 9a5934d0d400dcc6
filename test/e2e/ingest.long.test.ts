/** Rejected events are kept, once, and do not affect others; and several processes seal, as they do in production but more often. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { MAX_JOB_BYTES, MAX_JOB_VALUES } from '@meterline/catalog';
import { readBounds } from '@meterline/warehouse';
import { runCommand } from '../cli/run-command.js';
import { usageEvent } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, enqueueData, enqueueRaw, rejectedRows, stored } from '../harness/queue.js';
import { type LogEntry, startIngest, withConstants } from '../harness/services.js';
import { execute } from '../harness/stack.js';
import { until } from '../harness/waiting.js';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
  await product.startIngest();
});
afterAll(() => product.close());

let accounts = 0;
/** Puts a job with this text between two good ones. @returns its id */
async function between(fields: Record<string, string>): Promise<string> {
  accounts += 1;
  const accountId = `account-${accounts}`;
  await enqueueData(product.queue, usageEvent(1, { accountId }));
  const job = await enqueueRaw(product, fields);
  await enqueueData(product.queue, usageEvent(2, { accountId }));
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 2 });
  return job;
}

it.each([
  ['has more values than any may have', 'job_oversized', `{"events":[${'{},'.repeat(MAX_JOB_VALUES)}{}]}`],
  ['is larger than any may be', 'job_oversized', `{"events":[${'{},'.repeat(MAX_JOB_BYTES / 3)}{}]}`],
])('a worker keeps a whole job that %s, between good ones', async (_, reason, data) => {
  const job = await between({ data });
  expect(await rejectedRows(product.warehouse, job)).toMatchObject([
    { job_id: job, position: 0, reason, payload: data },
  ]);
  // Large ones are not among the last jobs that are kept.
  const isKept = (await product.redis.exists(product.queue.toKey(job))) === 1;
  expect(isKept).toBe(data.length <= 4 * 2 ** 20);
});

it('a worker is not asked to take what Redis does not take, job data of more than 32 MB', async () => {
  // Redis closes the connection; one that comes back would send it again for ever, where its reply is lost.
  const redis = product.redis.duplicate({ retryStrategy: () => null });
  redis.on('error', () => undefined);
  const refused = enqueueRaw({ ...product, redis }, { data: 'x'.repeat(32 * 2 ** 20 + 1) });
  await expect(refused).rejects.toThrow();
  await product.queue.resume();
});

it.each(['9'.repeat(20), `-${'9'.repeat(20)}`, '-1', 'yesterday'])(
  'a worker keeps a rejected event of a job with the timestamp %s',
  async (timestamp) => {
    const job = await between({ data: '"text"', timestamp });
    expect(await rejectedRows(product.warehouse, job)).toMatchObject([{ job_id: job }]);
  },
);

it('several processes seal each step once, early and late events alike, and go on when those that sealed are gone', async () => {
  const sealing = withConstants(product.env, { maintenanceEveryMs: 200 });
  const sealed = ({ entries }: { entries(): readonly LogEntry[] }) =>
    entries().filter(({ event }) => event === 'sealed');
  const workers = await Promise.all([startIngest(sealing), startIngest(sealing), startIngest(sealing)]);
  await Promise.race(
    workers.map((worker) => worker.entry(({ event, grain }) => event === 'sealed' && grain === 'daily')),
  );
  await enqueue(product.queue, 10, 100, 1_000);
  await drained(product.queue);
  const steps = workers.flatMap(sealed).map(({ shard, grain, from, to }) => `${shard} ${grain} ${from} ${to}`);
  expect(new Set(steps).size).toBe(steps.length);
  const { REDIS_URL: _redis, ...env } = product.env;
  // A day on each shard.
  const agrees = expect.stringMatching(/^Compared \d days?\. Every rollup row agrees with its events\.\n$/);
  expect(await runCommand(['audit'], { env })).toMatchObject({ code: 0, stdout: agrees });

  const sealers = workers.filter((worker) => sealed(worker).length > 0);
  await Promise.all(sealers.map((worker) => worker.kill()));
  // As after a long stop: without watermarks everything must be sealed again.
  for (const shard of product.shards.all) await execute(shard, 'TRUNCATE TABLE rollup_watermarks');
  if (sealers.length === workers.length) await startIngest(sealing);
  const isSealed = async () => (await readBounds(product.warehouse)).daily.sealedUntil > 0;
  await until('another process seals', isSealed);
});
