/** meterline queue status: jobs in every state, with workers and without. */
import { EventEmitter, once } from 'node:events';
import { afterAll, afterEach, beforeEach, expect, it } from '@jest/globals';
import { MS_PER_HOUR, QUEUE_NAME } from '@meterline/catalog';
import { FlowProducer, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { testRedisUrl, uniquePrefix } from '../harness/stack.js';
import { runCommand } from './run-command.js';

const EMPTY = { waiting: 0, active: 0, delayed: 0, failed: 0, flowParents: 0, completedKept: 0, paused: false };
const ages = z.looseObject({ oldestWaitingSeconds: z.int().nullable(), oldestActiveSeconds: z.int().nullable() });
const redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
let prefix: string;
let queue: Queue;

beforeEach(() => {
  prefix = uniquePrefix();
  queue = new Queue(QUEUE_NAME, { connection: redis, prefix });
});
afterEach(async () => {
  await queue.obliterate({ force: true });
  await queue.close();
});
afterAll(() => redis.disconnect());

const hoursAgo = (hours: number) => Date.now() - (hours + 0.5) * MS_PER_HOUR;

async function text(...args: string[]): Promise<string> {
  const env = { REDIS_URL: testRedisUrl(), QUEUE_PREFIX: prefix };
  return (await runCommand(['queue', 'status', ...args], { env })).stdout;
}

/** With whole hours in place of seconds. */
async function status() {
  const { oldestWaitingSeconds, oldestActiveSeconds, ...counts } = ages.parse(JSON.parse(await text('--json')));
  const hours = (seconds: number | null) => seconds && Math.floor((seconds * 1_000) / MS_PER_HOUR);
  return { ...counts, oldestWaiting: hours(oldestWaitingSeconds), oldestActive: hours(oldestActiveSeconds) };
}

it('jobs that wait are counted, paused or not, with the age of the oldest; people read it with its unit', async () => {
  expect(await status()).toEqual({ ...EMPTY, oldestWaiting: null, oldestActive: null, workers: 0 });
  await queue.add('usage', {}, { priority: 5, timestamp: hoursAgo(3) });
  expect(await status()).toMatchObject({ waiting: 1, oldestWaiting: 3 });
  for (const hours of [9, 5, 2]) await queue.add('usage', {}, { timestamp: hoursAgo(hours) });
  await queue.add('usage', {}, { delay: 1_000_000 });
  expect(await status()).toMatchObject({ waiting: 4, delayed: 1, paused: false, oldestWaiting: 9 });
  await queue.pause();
  await queue.add('usage', {}, { timestamp: hoursAgo(1) });
  expect(await status()).toMatchObject({ waiting: 5, paused: true, oldestWaiting: 9 });
  expect(await text()).toMatch(
    /^waiting {9}5\noldest waiting {2}34,2\d\d s\nactive {10}0\noldest active {3}-\ndelayed {9}1\nfailed {10}0\nflow parents {4}0\ncompleted kept {2}0\npaused {10}yes\nworkers {9}0\n$/,
  );
});

it('the parents of a flow that wait for their children, which no worker takes, are counted apart', async () => {
  const flows = new FlowProducer({ connection: redis, prefix });
  const child = { name: 'usage', queueName: `${QUEUE_NAME}-children`, data: {} };
  await flows.add({ name: 'usage', queueName: QUEUE_NAME, data: {}, children: [child] });
  await flows.close();
  expect(await status()).toMatchObject({ waiting: 0, flowParents: 1 });
  await new Queue(`${QUEUE_NAME}-children`, { connection: redis, prefix }).obliterate({ force: true });
});

it.each([
  ['cannot be read', 'yesterday', null],
  ['lies in the future', String(Date.now() + 24 * MS_PER_HOUR), 0],
])('a job whose data is no JSON and whose time %s is no failure', async (_, timestamp, age) => {
  const { id = '' } = await queue.add('usage', {});
  await redis.hset(queue.toKey(id), { data: '{oops', timestamp });
  expect(await status()).toMatchObject({ waiting: 1, oldestWaiting: age });
});

it('jobs in work, done and failed are counted, and the workers', async () => {
  for (const name of ['done', 'failed', 'in work']) await queue.add(name, {});
  const events = new EventEmitter();
  const [reached, released] = [once(events, 'reached'), once(events, 'released')];
  const work = async ({ name }: { name: string }) => {
    if (name === 'failed') throw new Error(name);
    if (name === 'done') return;
    events.emit('reached');
    await released;
  };
  const worker = new Worker(QUEUE_NAME, work, { connection: { url: testRedisUrl() }, prefix });
  await reached;
  expect(await status()).toMatchObject({ waiting: 0, active: 1, failed: 1, completedKept: 1, workers: 1 });
  const [id = ''] = await queue.getRanges(['active'], 0, 0);
  await redis.hset(queue.toKey(id), { processedOn: String(hoursAgo(4)) });
  expect(await status()).toMatchObject({ oldestActive: 4 });
  events.emit('released');
  await worker.close();
  expect(await status()).toMatchObject({ active: 0, workers: 0 });
});
