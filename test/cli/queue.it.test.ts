/** meterline queue status, with a worker and without. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createRedisClient } from '@meterline/service/access';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue } from '../harness/queue.js';
import { runCommand } from './run-command.js';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product.close());

function status(...args: string[]) {
  const { REDIS_URL = '', QUEUE_PREFIX = '' } = product.env;
  return runCommand(['queue', 'status', ...args], { env: { REDIS_URL, QUEUE_PREFIX } });
}

it('shows how long the oldest job has been in work, of a worker that can acknowledge none', async () => {
  const { queue, env } = product;
  await enqueue(queue, 1, 1);
  const [id = ''] = await queue.getRanges(['waiting'], 0, 0);
  const redis = createRedisClient(env.REDIS_URL ?? '', {});
  await redis.rpoplpush(queue.toKey('wait'), queue.toKey('active'));
  await redis.hset(queue.toKey(id), { processedOn: String(Date.now() - 90_500) });
  redis.disconnect();
  const { active, oldestActiveSeconds } = JSON.parse((await status('--json')).stdout);
  expect([active, oldestActiveSeconds >= 90 && oldestActiveSeconds < 120]).toEqual([1, true]);
  expect((await status()).stdout).toMatch(/^oldest active {3}\d+ s$/m);
  await queue.obliterate({ force: true });
});

it('shows what waits while no worker runs, and what is left when one has stored it', async () => {
  await enqueue(product.queue, 1_200, 1);
  const waiting = await status();
  expect(waiting.code).toBe(0);
  expect(waiting.stdout).toMatch(
    /^waiting {9}1,200\noldest waiting {2}\d+ s\nactive {10}0\noldest active {3}-\ndelayed {9}0\nfailed {10}0\nflow parents {4}0\ncompleted kept {2}0\npaused {10}no\nworkers {9}0\n$/,
  );

  await product.startIngest();
  await drained(product.queue);
  expect(JSON.parse((await status('--json')).stdout)).toEqual({
    waiting: 0,
    active: 0,
    delayed: 0,
    failed: 0,
    flowParents: 0,
    completedKept: 20,
    paused: false,
    oldestWaitingSeconds: null,
    oldestActiveSeconds: null,
    workers: 1,
  });
});
