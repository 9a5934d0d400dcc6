import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { QUEUE_NAME } from '@meterline/catalog';
import { DelayedError, FlowProducer, type Job, type JobsOptions, Queue, WaitingError } from 'bullmq';
import { Queue as QueueOfBullMQ5 } from 'bullmq-5';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { ManyJobsWorker } from './many-jobs-worker.js';
import { QueueConnection } from './queue-connection.js';
import { type JobData, RawDataWorker } from './raw-data-worker.js';

jest.setTimeout(60_000);

const url = testRedisUrl();

type Work = (job: Job<JobData, void>, token: string | undefined) => Promise<void>;

interface Opened {
  readonly worker: RawDataWorker;
  readonly connection: QueueConnection;
  /** In the order in which they were taken. */
  readonly taken: string[];
  readonly errors: Error[];
  /** How many commands ran a script. */
  scripts(): number;
}

let prefix: string;
let queue: Queue;
let redis: Redis;
let opened: Opened[];
/** The jobs that were acknowledged. */
let done: string[];
beforeEach(() => {
  prefix = uniquePrefix();
  queue = new Queue(QUEUE_NAME, { connection: { url }, prefix });
  redis = new Redis(url);
  opened = [];
  done = [];
});
afterEach(async () => {
  for (const { worker, connection } of opened) {
    await worker.close();
    connection.redis.disconnect();
  }
  await queue.obliterate({ force: true });
  await queue.close();
  redis.disconnect();
});

interface Options {
  readonly takesMany?: boolean;
  readonly concurrency?: number;
  readonly lockDuration?: number;
  readonly onUnknownScripts?: () => void;
  readonly changeScripts?: boolean;
}

function open(work: Work = async () => undefined, options: Options = {}): Opened {
  const { takesMany = true, concurrency = 500, lockDuration = 15_000, onUnknownScripts = () => undefined } = options;
  const connection = new QueueConnection({ url, knowsScriptFlags: true, readsUsageJobs: true });
  if (options.changeScripts) changeScripts(connection);
  let scripts = 0;
  const send = connection.redis.sendCommand.bind(connection.redis);
  connection.redis.sendCommand = (...args: Parameters<Redis['sendCommand']>) => {
    if (args[0].name.startsWith('eval')) scripts += 1;
    return send(...args);
  };
  const settings = {
    connection: connection.redis,
    prefix,
    concurrency,
    lockDuration,
    stalledInterval: lockDuration / 3,
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    runRetryDelay: 100,
    autorun: false,
  };
  const worker = takesMany
    ? new ManyJobsWorker(QUEUE_NAME, work, settings, { connection, onUnknownScripts })
    : new RawDataWorker(QUEUE_NAME, work, settings);
  const taken: string[] = [];
  const errors: Error[] = [];
  worker.on('active', ({ id = '' }) => taken.push(id));
  worker.on('completed', ({ id = '' }) => done.push(id));
  worker.on('error', (error) => errors.push(error));
  const all = { worker, connection, taken, errors, scripts: () => scripts };
  opened.push(all);
  return all;
}

function changeScripts({ redis: connection }: QueueConnection): void {
  const define = connection.defineCommand.bind(connection);
  connection.defineCommand = (name, definition) =>
    define(name, { ...definition, lua: `${definition.lua}\n-- changed` });
}

function run({ worker }: Opened): void {
  void worker.run();
}

/** A gate that jobs in work wait at. */
function gate() {
  let openGate: () => void = () => undefined;
  const isOpen = new Promise<void>((resolve) => {
    openGate = resolve;
  });
  return { pass: () => isOpen, open: () => openGate() };
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 10));
}

async function add(count: number): Promise<string[]> {
  const jobs = await queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: 'usage', data: { n } })));
  return jobs.map(({ id = '' }) => id);
}

const key = (name: string) => `${prefix}:${QUEUE_NAME}:${name}`;
const isEmpty = async () =>
  Object.values(await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized')).every((count) => count === 0);

describe('many jobs at a time', () => {
  it('are taken in the order of the queue, once each, with few commands', async () => {
    const ids = await add(1_000);
    const many = open();
    run(many);
    await until(() => done.length === 1_000);
    expect(many.taken).toEqual(ids);
    expect(new Set(done)).toEqual(new Set(ids));
    expect(many.scripts()).toBeLessThan(100);
    expect(many.errors).toEqual([]);
    expect(await queue.getJobCounts('waiting', 'active', 'completed', 'failed')).toEqual({
      ...{ waiting: 0, active: 0, failed: 0 },
      completed: 20,
    });
    expect(await redis.keys(key('*:lock'))).toEqual([]);
  });

  it('are as many as there is room for, each with a lock of its own', async () => {
    const { pass, open: openGate } = gate();
    await add(100);
    const many = open(pass, { concurrency: 30 });
    run(many);
    await until(() => many.taken.length >= 30);
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 70, active: 30 });
    expect((await redis.keys(key('*:lock'))).sort()).toEqual(many.taken.map((id) => key(`${id}:lock`)).sort());
    openGate();
    await until(isEmpty);
    expect(many.taken).toHaveLength(100);
  });

  it('are divided between two workers, each job to one', async () => {
    const ids = await add(2_000);
    const two = [open(undefined, { concurrency: 50 }), open(undefined, { concurrency: 50 })];
    for (const each of two) run(each);
    await until(() => done.length === 2_000);
    expect(two.flatMap(({ taken }) => taken).sort()).toEqual([...ids].sort());
    expect([...done].sort()).toEqual([...ids].sort());
  });

  it('are not more than one answer should hold', async () => {
    const data = 'x'.repeat(250_000);
    await queue.addBulk(Array.from({ length: 60 }, () => ({ name: 'usage', data })));
    const many = open(async (job) => expect(job.data).toHaveLength(250_002));
    const sizes: number[] = [];
    run(many);
    many.worker.on('active', () => sizes.push(many.scripts()));
    await until(() => done.length === 60);
    const ofOneAnswer = Math.max(...sizes.map((answer) => sizes.filter((other) => other === answer).length));
    // Four commands go at once, and each ends with the job that makes its answer larger than 1 MiB.
    expect(ofOneAnswer).toBeLessThanOrEqual(20);
    expect(ofOneAnswer).toBeGreaterThan(1);
  });

  it('are taken when they come, after the queue was empty', async () => {
    run(open());
    for (let round = 1; round <= 3; round += 1) {
      await add(3);
      await until(() => done.length === 3 * round);
    }
  });
});

describe('a job', () => {
  it('that takes long keeps its lock', async () => {
    const { pass, open: openGate } = gate();
    await add(3);
    const slow = open(pass, { lockDuration: 600 });
    run(slow);
    await until(() => slow.taken.length === 3);
    const other = open(undefined, { lockDuration: 600 });
    run(other);
    // Several times as long as a lock, and as the look for stalled jobs.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    openGate();
    await until(() => done.length === 3);
    expect(other.taken).toEqual([]);
    expect(slow.errors).toEqual([]);
  });

  it('whose lock was lost is not acknowledged', async () => {
    const { pass, open: openGate } = gate();
    const ids = await add(2);
    const many = open(pass);
    run(many);
    await until(() => many.taken.length === 2);
    await redis.set(key(`${ids[0]}:lock`), 'another');
    openGate();
    await until(() => done.length === 1 && many.errors.length === 1);
    expect(done).toEqual([ids[1]]);
    expect(many.errors[0]).toMatchObject({ code: -6 });
    expect(await queue.getActiveCount()).toBe(1);
  });

  it('that is deferred or given back is neither acknowledged nor failed', async () => {
    const [deferred = '', returned = ''] = await add(2);
    let returns = 0;
    const many = open(async (job, token) => {
      if (job.id === deferred) {
        await job.moveToDelayed(Date.now() + 3_600_000, token);
        throw new DelayedError();
      }
      returns += 1;
      if (returns > 1) return;
      await job.moveToWait(token);
      throw new WaitingError();
    });
    run(many);
    await until(() => done.length === 1);
    expect(done).toEqual([returned]);
    expect(returns).toBe(2);
    expect(await queue.getJobCounts('delayed', 'failed', 'active')).toEqual({ delayed: 1, failed: 0, active: 0 });
  });

  it('that fails stays among the failed ones, with its data', async () => {
    const [bad = '', good = ''] = await add(2);
    const failed: (string | undefined)[] = [];
    const many = open(async ({ id }) => {
      if (id === bad) throw new Error('a defect');
    });
    many.worker.on('failed', (job) => failed.push(job?.id));
    run(many);
    await until(async () => done.length === 1 && (await queue.getFailedCount()) === 1);
    expect([done, failed]).toEqual([[good], [bad]]);
    expect(await queue.getJob(bad)).toMatchObject({ data: { n: 0 }, failedReason: 'a defect' });
  });
});

describe('the worker', () => {
  it('ends when every job in work is acknowledged, and takes no more', async () => {
    const { pass, open: openGate } = gate();
    await add(50);
    const many = open(pass, { concurrency: 20 });
    run(many);
    await until(() => many.taken.length === 20);
    const closed = many.worker.close();
    openGate();
    await closed;
    expect(done).toHaveLength(20);
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 30, active: 0 });
  });

  it('ends while it waits for jobs', async () => {
    const many = open();
    run(many);
    await add(1);
    await until(() => done.length === 1);
    await many.worker.close();
  });

  it('takes nothing while the queue is paused, and goes on when it is not', async () => {
    await queue.pause();
    await add(10);
    const many = open();
    run(many);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(many.taken).toEqual([]);
    await queue.resume();
    await until(() => done.length === 10);
  });

  it('heeds how many jobs may be in work, and in a time, in the whole queue', async () => {
    await queue.setGlobalConcurrency(3);
    await queue.setGlobalRateLimit(20, 200);
    await add(60);
    let inWork = 0;
    let most = 0;
    run(
      open(async () => {
        inWork += 1;
        most = Math.max(most, inWork);
        await new Promise((resolve) => setTimeout(resolve, 1));
        inWork -= 1;
      }),
    );
    await until(() => done.length === 60);
    // A place is free from the acknowledgement on, which may be taken before the process notices.
    expect(most).toBeLessThanOrEqual(3);
  });

  it('knows the scripts of the BullMQ that is installed', async () => {
    // If this fails after an update: run the faults with INGEST_TAKE=many, then add the new scripts to KNOWN_SCRIPTS.
    const { worker, connection } = open();
    await worker.waitUntilReady();
    expect(connection.knowsScripts).toBe(true);
  });

  it('takes jobs as BullMQ does when it does not know its scripts', async () => {
    const onUnknownScripts = jest.fn<() => void>();
    const ids = await add(100);
    const plain = open(undefined, { onUnknownScripts, changeScripts: true });
    run(plain);
    await until(() => done.length === 100);
    expect(onUnknownScripts).toHaveBeenCalledTimes(1);
    expect(plain.taken).toEqual(ids);
    expect(plain.scripts()).toBeGreaterThan(100);
  });
});

/** What both releases of BullMQ have. */
interface Adding {
  add(name: string, data: unknown, options: JobsOptions): Promise<unknown>;
  addBulk(jobs: { name: string; data: unknown; opts: JobsOptions }[]): Promise<unknown>;
  obliterate(options: { force: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** One more is a duplicate, which is not added. */
const KINDS = 16;

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
    await redis.hset(`${own}:${QUEUE_NAME}:broken-1`, { opts: 'not JSON', ats: 'many', atm: 'none' });
    await redis.hset(`${own}:${QUEUE_NAME}:broken-2`, { parent: '7', rjk: 'every' });
    await adding.add('a', { data: 'x'.repeat(300_000) }, { jobId: 'large' });

    // The delayed one is due before any is taken.
    await new Promise((resolve) => setTimeout(resolve, 60));
    const before = prefix;
    prefix = own;
    const { worker, connection, taken, errors } = open(undefined, { takesMany });
    prefix = before;
    void worker.run();
    await until(() => done.length === KINDS);
    await worker.close();
    connection.redis.disconnect();
    opened = [];
    done = [];

    const all = (await redis.keys(`${own}:*`)).map((name) => name.slice(own.length)).sort();
    // A hint to look for jobs, which a worker that stopped may have left.
    const keys = all.filter((name) => !name.endsWith(':marker'));
    const jobs: Record<string, unknown> = {};
    for (const id of [...taken].sort()) {
      const { timestamp, processedOn, finishedOn, ...rest } = await redis.hgetall(`${own}:${QUEUE_NAME}:${id}`);
      jobs[id] = rest;
    }
    const children = await redis.hgetall(`${own}:${QUEUE_NAME}:parent:processed`);
    await adding.obliterate({ force: true });
    await Promise.all([adding.close(), flows.close()]);
    return JSON.parse(JSON.stringify({ taken, errors, keys, jobs, children }).replaceAll(own, 'prefix'));
  }

  it.each(['BullMQ 5', 'BullMQ 6'] as const)('of %s end as BullMQ itself ends them', async (producer) => {
    const many = await left(true, producer);
    expect(many.errors).toEqual([]);
    expect(many).toEqual(await left(false, producer));
  });
});
