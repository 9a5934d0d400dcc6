import { EventEmitter, once } from 'node:events';
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { QUEUE_NAME } from '@meterline/catalog';
import { FlowProducer, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../../test/harness/stack.js';
import { readQueueStatus } from './servers.js';

const SENT = Date.UTC(2026, 0, 1);
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

/** The status half a minute after the first job was sent. */
function status() {
  return readQueueStatus(queue, redis, new Date(SENT + 30_500));
}

describe('the status of the queue', () => {
  it('that was never used is empty', async () => {
    expect(await status()).toEqual({
      waiting: 0,
      oldestActiveSeconds: null,
      active: 0,
      delayed: 0,
      failed: 0,
      flowParents: 0,
      completedKept: 0,
      paused: false,
      oldestWaitingSeconds: null,
      workers: 0,
    });
  });

  it('counts jobs that wait, paused or not, and gives the age of the oldest', async () => {
    for (const seconds of [0, 10, 20]) await queue.add('usage', {}, { timestamp: SENT + seconds * 1000 });
    await queue.add('usage', {}, { delay: 1_000_000 });
    expect(await status()).toMatchObject({ waiting: 3, delayed: 1, paused: false, oldestWaitingSeconds: 30 });
    await queue.pause();
    await queue.add('usage', {}, { timestamp: SENT + 25_000 });
    expect(await status()).toMatchObject({ waiting: 4, paused: true, oldestWaitingSeconds: 30 });
  });

  it('counts the parents of a flow that wait for their children, which no worker takes', async () => {
    const flows = new FlowProducer({ connection: redis, prefix });
    try {
      const child = { name: 'usage', queueName: `${QUEUE_NAME}-children`, data: {} };
      await flows.add({ name: 'usage', queueName: QUEUE_NAME, data: {}, children: [child] });
      expect(await status()).toMatchObject({ waiting: 0, flowParents: 1 });
      await new Queue(`${QUEUE_NAME}-children`, { connection: redis, prefix }).obliterate({ force: true });
    } finally {
      await flows.close();
    }
  });

  it('counts jobs with a priority', async () => {
    await queue.add('usage', {}, { priority: 5, timestamp: SENT + 10_000 });
    expect(await status()).toMatchObject({ waiting: 1, oldestWaitingSeconds: 20 });
  });

  it.each([
    ['cannot be read', 'yesterday', null],
    ['lies in the future', String(SENT + 1_000_000), 0],
  ])('does not fail over a job whose data is no JSON and whose time %s', async (_, timestamp, age) => {
    const { id = '' } = await queue.add('usage', {});
    await redis.hset(queue.toKey(id), { data: '{oops', timestamp });
    expect(await status()).toMatchObject({ waiting: 1, oldestWaitingSeconds: age });
  });

  it('counts jobs in work, done and failed, and the workers', async () => {
    const names = ['done', 'failed', 'in work'];
    for (const name of names) await queue.add(name, {});
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
    events.emit('released');
    await worker.close();
    expect(await status()).toMatchObject({ active: 0, workers: 0 });
  });
});
