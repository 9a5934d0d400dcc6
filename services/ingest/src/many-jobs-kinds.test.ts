/** Every kind of job that producers of two releases of BullMQ make ends as BullMQ's own worker ends it. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { QUEUE_NAME } from '@meterline/catalog';
import { FlowProducer, type Job, type JobsOptions, Queue } from 'bullmq';
import { Queue as QueueOfBullMQ5 } from 'bullmq-5';
import { Stage, until, url } from '../../../test/queue-stage.js';
import { uniquePrefix } from '../../../test/stack.js';
import type { JobData } from './raw-data-worker.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

/** What both releases of BullMQ have. */
interface Adding {
  add(name: string, data: unknown, options: JobsOptions): Promise<unknown>;
  addBulk(jobs: { name: string; data: unknown; opts: JobsOptions }[]): Promise<unknown>;
  obliterate(options: { force: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** One more is a duplicate, which is not added. */
const KINDS = 18;

describe('jobs of every kind', () => {
  /** Adds them, takes them, and says what is left in Redis, without times and events. */
  async function left(takesMany: boolean, producer: 'BullMQ 5' | 'BullMQ 6') {
    const own = uniquePrefix();
    const options = { connection: { url }, prefix: own };
    const adding: Adding =
      producer === 'BullMQ 5' ? new QueueOfBullMQ5(QUEUE_NAME, options) : new Queue(QUEUE_NAME, options);
    const flows = new FlowProducer(options);
    await adding.add('a', { n: 1 }, { priority: 5, jobId: 'low' });
    await adding.add('a', { n: 2 }, { priority: 1, jobId: 'high' });
    await adding.add('a', { n: 3 }, { delay: 50, jobId: 'later' });
    await adding.addBulk([1, 2, 3].map((n) => ({ name: 'a', data: { n }, opts: { jobId: `bulk-${n}` } })));
    await adding.add('a', { n: 4 }, { lifo: true, jobId: 'last-in' });
    await adding.add('a', { n: 5 }, { deduplication: { id: 'once' }, jobId: 'single' });
    await adding.add('a', { n: 6 }, { deduplication: { id: 'once' }, jobId: 'double' });
    await adding.add('a', { n: 7 }, { attempts: 5, backoff: 1, removeOnComplete: 500, jobId: 'tries' });
    await adding.add('a', { n: 8 }, { removeOnComplete: true, removeOnFail: true, jobId: 'removed' });
    await flows.add({
      ...{ name: 'parent', queueName: QUEUE_NAME, data: {}, opts: { jobId: 'parent' } },
      children: ['child-1', 'child-2'].map((jobId) => ({
        name: 'c',
        queueName: QUEUE_NAME,
        data: {},
        opts: { jobId },
      })),
    });
    await adding.addBulk([1, 2].map((n) => ({ name: 'a', data: { n }, opts: { jobId: `broken-${n}` } })));
    await stage.redis.hset(`${own}:${QUEUE_NAME}:broken-1`, { opts: 'not JSON', ats: 'many', atm: 'none' });
    await stage.redis.hset(`${own}:${QUEUE_NAME}:broken-2`, { parent: '7', rjk: 'every' });
    await adding.add('a', { data: 'x'.repeat(300_000) }, { jobId: 'large' });
    await adding.addBulk([1, 2].map((n) => ({ name: 'a', data: { n }, opts: { jobId: `empty-${n}` } })));
    for (const n of [1, 2]) await stage.redis.hset(`${own}:${QUEUE_NAME}:empty-${n}`, 'data', '');

    // The delayed one is due before any is taken.
    await new Promise((resolve) => setTimeout(resolve, 60));
    const data: Record<string, string> = {};
    const keepData = async ({ id = '', data: sent }: Job<JobData, void>) => {
      data[id] = sent?.toString();
    };
    const { worker, taken, errors } = stage.open(keepData, { prefix: own, takesMany });
    void worker.run();
    await until(() => stage.done.length === KINDS);
    await worker.close();
    stage.done.length = 0;

    const all = (await stage.redis.keys(`${own}:*`)).map((name) => name.slice(own.length)).sort();
    // A hint to look for jobs, which a worker that stopped may have left.
    const keys = all.filter((name) => !name.endsWith(':marker'));
    const jobs: Record<string, unknown> = {};
    for (const id of [...taken].sort()) {
      const { timestamp, processedOn, finishedOn, ...rest } = await stage.redis.hgetall(`${own}:${QUEUE_NAME}:${id}`);
      jobs[id] = rest;
    }
    const children = await stage.redis.hgetall(`${own}:${QUEUE_NAME}:parent:processed`);
    await adding.obliterate({ force: true });
    await Promise.all([adding.close(), flows.close()]);
    // A parent comes when the last of its children is acknowledged, which may be later when many are acknowledged together.
    taken.splice(taken.indexOf('parent'), 1);
    return JSON.parse(JSON.stringify({ taken, data, errors, keys, jobs, children }).replaceAll(own, 'prefix'));
  }

  it.each(['BullMQ 5', 'BullMQ 6'] as const)('of %s end as BullMQ itself ends them', async (producer) => {
    const many = await left(true, producer);
    expect(many.errors).toEqual([]);
    expect(many).toEqual(await left(false, producer));
  });
});
