/** What the scripts of our own leave in Redis, compared with what BullMQ's leave, and what they do not touch. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { QUEUE_NAME } from '@meterline/catalog';
import { FlowProducer, type JobsOptions, Queue, Worker } from 'bullmq';
import { Queue as QueueOfBullMQ5 } from 'bullmq-5';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { type PlainJob, PlainJobs } from './plain-jobs.js';
import { TAKE } from './plain-jobs-scripts.js';
import { QueueConnection } from './queue-connection.js';

const url = testRedisUrl();
const LOCK_MS = 15_000;

let redis: Redis;
let connection: QueueConnection;
let queue: Queue;
let prefix: string;
let plain: PlainJobs;
beforeEach(() => {
  redis = new Redis(url);
  connection = new QueueConnection({ url, knowsScriptFlags: true, readsUsageJobs: true });
  prefix = uniquePrefix();
  queue = new Queue(QUEUE_NAME, { connection: { url }, prefix });
  plain = open(prefix);
});
afterEach(async () => {
  await queue.obliterate({ force: true });
  await queue.close();
  redis.disconnect();
  connection.redis.disconnect();
});

let tokens = 0;

function open(own: string): PlainJobs {
  const newToken = () => `token-${++tokens}`;
  return new PlainJobs({ connection, keyOf: keysOf(own), newToken, lockMs: LOCK_MS });
}

const keysOf = (own: string) => (name: string) => `${own}:${QUEUE_NAME}:${name}`;
const key = (name: string) => keysOf(prefix)(name);

/** With ids that sort as they were added. */
async function add(count: number, opts: JobsOptions = {}): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `job-${String(n).padStart(3, '0')}`);
  await queue.addBulk(ids.map((jobId, n) => ({ name: 'usage', data: { n }, opts: { ...opts, jobId } })));
  return ids;
}

const idsOf = (jobs: readonly PlainJob[]) => jobs.map(({ id }) => id);

/** Everything under the prefix, without times, tokens and ids of events. */
async function contents(own: string): Promise<unknown> {
  const all: Record<string, unknown> = {};
  for (const name of (await redis.keys(`${own}:*`)).sort()) {
    const type = await redis.type(name);
    if (type === 'string') all[name] = (await redis.pttl(name)) > LOCK_MS / 2 ? 'a lock' : 'without end';
    else if (type === 'list') all[name] = await redis.lrange(name, 0, -1);
    else if (type === 'set') all[name] = (await redis.smembers(name)).sort();
    else if (type === 'zset') all[name] = await redis.zrange(name, '0', '-1');
    else if (type === 'stream') all[name] = (await redis.xrange(name, '-', '+')).map(([, fields]) => fields);
    else {
      const { timestamp, processedOn, finishedOn, ...rest } = await redis.hgetall(name);
      all[name] = { ...rest, times: [processedOn, finishedOn].map((time) => time !== undefined) };
    }
  }
  return JSON.parse(JSON.stringify(all).replaceAll(own, 'prefix'));
}

/** What both releases have. */
interface Adding {
  add(name: string, data: unknown, opts: JobsOptions): Promise<unknown>;
  close(): Promise<void>;
}

describe('a queue', () => {
  it.each([
    ['BullMQ 5', 12],
    ['BullMQ 6', 12],
    ['BullMQ 6', 60],
  ] as const)(
    'of %s with %d jobs holds after each step what it holds after the steps of BullMQ',
    async (release, count) => {
      const [ours, theirs] = [prefix, uniquePrefix()];
      for (const own of [ours, theirs]) {
        const options = { connection: { url }, prefix: own };
        const producer: Adding =
          release === 'BullMQ 5' ? new QueueOfBullMQ5(QUEUE_NAME, options) : new Queue(QUEUE_NAME, options);
        for (let n = 10; n < count + 10; n += 1)
          await producer.add('usage', { n, text: 'x'.repeat(n * 400) }, { jobId: `job-${n}`, attempts: 3 });
        await producer.close();
      }
      const half = Math.floor(count / 2);

      const { jobs, others } = await open(ours).take(half);
      const options = { connection: { url }, prefix: theirs, autorun: false, lockDuration: LOCK_MS };
      const worker = new Worker(QUEUE_NAME, async () => undefined, { ...options, removeOnComplete: { count: 20 } });
      const taken = [];
      for (let n = 0; n < half; n += 1) taken.push(await worker.getNextJob('a token'));
      expect([idsOf(jobs), others]).toEqual([taken.map((job) => job?.id), 0]);
      expect(await contents(ours)).toEqual(await contents(theirs));

      const next = await open(ours).take(count);
      for (let n = half; n < count; n += 1) taken.push(await worker.getNextJob('a token'));
      for (const all of [jobs, next.jobs]) expect(await plain.acknowledge(all, 20)).toEqual([]);
      for (const job of taken) await job?.moveToCompleted(undefined, 'a token', false);
      await worker.close();
      expect(await contents(ours)).toEqual(await contents(theirs));

      await redis.del(await redis.keys(`${theirs}:*`));
    },
  );
});

describe('taking', () => {
  it('gives the next jobs in order, with short data, and an empty queue nothing', async () => {
    const ids = await add(5);
    const { jobs, others } = await plain.take(3);
    expect([idsOf(jobs), others]).toEqual([ids.slice(0, 3), 0]);
    const [first] = jobs;
    expect(first?.data?.toString()).toBe('{"n":0}');
    expect(first).toMatchObject({ bytes: 7, timestamp: Number(await redis.hget(key('job-000'), 'timestamp')) });
    expect(idsOf((await plain.take(10)).jobs)).toEqual(ids.slice(3));
    expect(await plain.take(10)).toEqual({ jobs: [], others: 0 });
  });

  it('leaves data that is long where it is', async () => {
    await queue.add('usage', 'x'.repeat(16 * 1024 - 2));
    await queue.add('usage', 'x'.repeat(16 * 1024 - 1));
    const { jobs } = await plain.take(2);
    expect(jobs.map(({ bytes, data }) => [bytes, data?.length])).toEqual([
      [16 * 1024, 16 * 1024],
      [16 * 1024 + 1, undefined],
    ]);
  });

  it('that is sent once more because its answer was lost gives the same jobs, and no others', async () => {
    const ids = await add(6);
    const again = connection.script('takenTwice', TAKE);
    const keys = ['wait', 'active', 'events', 'delayed', 'meta', 'marker'].map(key);
    const answers = [];
    for (let n = 0; n < 2; n += 1) {
      answers.push(String(await again(keys, [key(''), Date.now(), 'one token', LOCK_MS, 3])).split(','));
      await redis.pexpire(key('job-001:lock'), 1_000);
    }
    const idsIn = (answer: readonly string[] = []) => answer.filter((text) => text.startsWith('job-')).sort();
    expect(answers.map(idsIn)).toEqual([ids.slice(0, 3), ids.slice(0, 3)]);
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 3, active: 3 });
    expect(await redis.hget(key('job-001'), 'ats')).toBe('1');
  });

  it('is done with the same token until there is an answer', async () => {
    await add(2);
    await redis.rename(key('meta'), key('away'));
    await redis.set(key('meta'), 'no hash');
    await expect(plain.take(1)).rejects.toThrow('WRONGTYPE');
    const after = tokens;
    await redis.rename(key('away'), key('meta'));
    const [job] = (await plain.take(1)).jobs;
    expect(job?.token).toBe(`token-${after}`);
    const [next] = (await plain.take(1)).jobs;
    expect(next?.token).toBe(`token-${after + 1}`);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['it is paused', () => queue.pause()],
    ['so many may be in work', () => queue.setGlobalConcurrency(10)],
    ['so many may be taken in a time', () => queue.setGlobalRateLimit(10, 1_000)],
    ['a delayed job is due', () => queue.add('usage', {}, { delay: 1 }).then(() => pause(5))],
  ])('takes nothing of a queue when %s', async (_, change) => {
    await add(2);
    await change();
    expect(await plain.take(5)).toEqual({ jobs: [], others: 0 });
    expect(await queue.getActiveCount()).toBe(0);
  });

  it.each([
    ['was taken before', { ats: '1' }],
    ['failed before', { atm: '1', failedReason: 'a reason' }],
    ['has a field that nobody knows', { unknown: '' }],
    ['has options that are not JSON', { opts: 'no' }],
    ['has a schedule', { rjk: 'every' }],
    ['is large', { data: 'x'.repeat(256 * 1024 + 1) }],
    ['has no data', { data: '' }],
    ['has a long name', { name: 'x'.repeat(5_000) }],
    ['has a long time', { timestamp: '1'.repeat(5_000) }],
  ])('leaves a job to BullMQ that %s, and what comes after it for later', async (_, fields) => {
    await add(4);
    await redis.hset(key('job-001'), fields);
    const before = await redis.hgetall(key('job-001'));
    const [first, second] = [await plain.take(5), await plain.take(5)];
    expect([idsOf(first.jobs), first.others]).toEqual([['job-000'], 0]);
    expect([idsOf(second.jobs), second.others]).toEqual([[], 1]);
    expect(await redis.hgetall(key('job-001'))).toEqual(before);
    expect(await redis.lrange(key('wait'), 0, -1)).toEqual(['job-003', 'job-002', 'job-001']);
  });

  it('leaves to BullMQ what belongs to a parent or stands for others, and a job that is no hash', async () => {
    const flows = new FlowProducer({ connection: { url }, prefix });
    const child = { name: 'usage', queueName: QUEUE_NAME, data: {}, opts: { jobId: 'child' } };
    await flows.add({ ...child, opts: { jobId: 'parent' }, children: [child] });
    await flows.close();
    await queue.add('usage', {}, { deduplication: { id: 'once' }, jobId: 'single' });
    await add(1);
    await redis.del(key('job-000'));
    await redis.set(key('job-000'), 'no hash');
    expect(await plain.take(5)).toEqual({ jobs: [], others: 3 });
    await redis.del(key('job-000'));
  });
});

describe('acknowledging', () => {
  it.each<[string, (id: string) => Promise<unknown>]>([
    ['has another lock', (id) => redis.set(key(`${id}:lock`), 'another')],
    ['has no lock', (id) => redis.del(key(`${id}:lock`))],
    ['is gone', (id) => redis.del(key(id))],
    ['has got a parent', (id) => redis.hset(key(id), { parentKey: 'elsewhere:parent', parent: '{}' })],
    ['has children', (id) => redis.sadd(key(`${id}:dependencies`), 'a child')],
    ['has children that failed', (id) => redis.zadd(key(`${id}:unsuccessful`), 1, 'a child')],
    ['has lines of a log', (id) => redis.rpush(key(`${id}:logs`), 'a line')],
    ['is not in work', (id) => redis.lrem(key('active'), 1, id)],
  ])('leaves a job alone that %s', async (_, change) => {
    await add(3);
    const { jobs } = await plain.take(3);
    await change('job-001');
    const before = await redis.hgetall(key('job-001'));
    const active = await redis.lrange(key('active'), 0, -1);
    expect(idsOf(await plain.acknowledge(jobs, 20))).toEqual(['job-001']);
    expect(await redis.hgetall(key('job-001'))).toEqual(before);
    expect(await redis.lrange(key('active'), 0, -1)).toEqual(active.filter((id) => id === 'job-001'));
    expect(await redis.zrange(key('completed'), '0', '-1')).toEqual(['job-000', 'job-002']);
  });

  it('keeps the last ones readable, and removes those before, but for those of a parent', async () => {
    const ids = await add(90);
    await plain.acknowledge((await plain.take(30)).jobs, 20);
    expect(await redis.zrange(key('completed'), '0', '-1')).toEqual(ids.slice(10, 30));
    await redis.hset(key('job-029'), 'parentKey', 'elsewhere:parent');
    await plain.acknowledge((await plain.take(30)).jobs, 20);
    expect(await redis.zrange(key('completed'), '0', '-1')).toEqual(['job-029', ...ids.slice(40, 60)]);
    await plain.acknowledge((await plain.take(30)).jobs, 0);
    expect(await redis.keys(key('job-*'))).toHaveLength(21);
    expect(await queue.getJobCounts('active', 'completed')).toEqual({ active: 0, completed: 21 });
  });
});

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
