import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DelayedError, type Job, WaitingError } from 'bullmq';
import { Stage, until } from '../../../test/queue-stage.js';
import type { PlainJob } from './plain-jobs.js';
import type { JobData } from './raw-data-worker.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

/** A gate that jobs in work wait at. */
function gate() {
  let openGate: () => void = () => undefined;
  const isOpen = new Promise<void>((resolve) => {
    openGate = resolve;
  });
  return { pass: () => isOpen, open: () => openGate() };
}

describe('many jobs at a time', () => {
  it('are taken in the order of the queue, once each, with few commands', async () => {
    const ids = await stage.add(1_000);
    const many = stage.open();
    void many.worker.run();
    await until(() => stage.done.length === 1_000);
    expect(many.taken).toEqual(ids);
    expect(new Set(stage.done)).toEqual(new Set(ids));
    expect(many.scripts()).toBeLessThan(100);
    expect(many.errors).toEqual([]);
    expect(await stage.queue.getJobCounts('waiting', 'active', 'completed', 'failed')).toEqual({
      ...{ waiting: 0, active: 0, failed: 0 },
      completed: 20,
    });
    expect(await stage.redis.keys(stage.key('*:lock'))).toEqual([]);
  });

  it('are as many as there is room for, each with a lock of its own', async () => {
    const { pass, open: openGate } = gate();
    await stage.add(100);
    const many = stage.open(pass, { concurrency: 30 });
    void many.worker.run();
    await until(() => many.taken.length >= 30);
    expect(await stage.queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 70, active: 30 });
    expect((await stage.redis.keys(stage.key('*:lock'))).sort()).toEqual(
      many.taken.map((id) => stage.key(`${id}:lock`)).sort(),
    );
    openGate();
    await until(() => stage.isEmpty());
    expect(many.taken).toHaveLength(100);
  });

  it('are divided between two workers, each job to one', async () => {
    const ids = await stage.add(2_000);
    const two = [stage.open(undefined, { concurrency: 50 }), stage.open(undefined, { concurrency: 50 })];
    for (const each of two) void each.worker.run();
    await until(() => stage.done.length === 2_000);
    expect(two.flatMap(({ taken }) => taken).sort()).toEqual([...ids].sort());
    expect([...stage.done].sort()).toEqual([...ids].sort());
  });

  it('begin without an object of BullMQ when they can', async () => {
    const ids = await stage.add(1_000);
    const data: string[] = [];
    const long: unknown[] = [];
    const shortWork = async (job: PlainJob) => {
      data.push(String(job.data));
    };
    const many = stage.open(async ({ id }) => void long.push(id), { shortWork });
    void many.worker.run();
    await until(() => stage.done.length === 1_000);
    expect(many.taken).toEqual(ids);
    // BullMQ, which waits for jobs, takes the first.
    expect(long).toEqual(ids.slice(0, 1));
    expect(data).toEqual(ids.slice(1).map((_, n) => `{"n":${n + 1}}`));
    expect(many.scripts()).toBeLessThan(30);
    expect(many.errors).toEqual([]);
  });

  it('take the way of all jobs when the short one does not store them', async () => {
    const ids = await stage.add(100);
    const long: string[] = [];
    const shortWork = async ({ id }: PlainJob) => {
      if (Number(id) % 2 === 0) throw new Error('not stored');
    };
    const work = async ({ id = '', data }: Job<JobData, void>) => {
      // What the short way held is let go, and has to be read again.
      if (id !== ids[0]) long.push(`${id}${data}`);
    };
    const many = stage.open(work, { shortWork });
    void many.worker.run();
    await until(() => stage.done.length === 100);
    expect(long.sort()).toEqual(ids.filter((id) => Number(id) % 2 === 0).sort());
    expect([many.errors, await stage.queue.getFailedCount()]).toEqual([[], 0]);
  });

  it('take the way of all jobs when the short one is broken', async () => {
    await stage.add(6);
    const many = stage.open(undefined, {
      shortWork: () => {
        throw new Error('a defect');
      },
    });
    void many.worker.run();
    await until(() => stage.done.length === 6);
    expect(many.errors).toHaveLength(5);
  });

  it('are taken when they come, after the queue was empty', async () => {
    void stage.open().worker.run();
    for (let round = 1; round <= 3; round += 1) {
      await stage.add(3);
      await until(() => stage.done.length === 3 * round);
    }
  });
});

describe('a job', () => {
  it('that a dead worker had is taken by another, which stores it again', async () => {
    await stage.add(5);
    const dead = stage.open(() => new Promise(() => undefined), { lockDuration: 2_000 });
    void dead.worker.run();
    await until(() => dead.taken.length === 5);
    stage.kill(dead);
    const alive = stage.open(undefined, { lockDuration: 2_000 });
    void alive.worker.run();
    await until(() => new Set(stage.done).size === 5);
    expect([...alive.taken].sort()).toEqual([...dead.taken].sort());
  });

  it('that takes long keeps its lock', async () => {
    const { pass, open: openGate } = gate();
    await stage.add(3);
    const slow = stage.open(pass, { lockDuration: 600 });
    void slow.worker.run();
    await until(() => slow.taken.length === 3);
    const other = stage.open(undefined, { lockDuration: 600 });
    void other.worker.run();
    // Several times as long as a lock, and as the look for stalled jobs.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    openGate();
    await until(() => stage.done.length === 3);
    expect(other.taken).toEqual([]);
    expect(slow.errors).toEqual([]);
  });

  it('whose lock was lost is not acknowledged', async () => {
    const { pass, open: openGate } = gate();
    const ids = await stage.add(2);
    const many = stage.open(pass);
    void many.worker.run();
    await until(() => many.taken.length === 2);
    await stage.redis.set(stage.key(`${ids[0]}:lock`), 'another');
    openGate();
    await until(() => stage.done.length === 1 && many.errors.length === 1);
    expect(stage.done).toEqual([ids[1]]);
    expect(many.errors[0]).toMatchObject({ code: -6 });
    expect(await stage.queue.getActiveCount()).toBe(1);
  });

  it('that is deferred or given back is neither acknowledged nor failed', async () => {
    const [deferred = '', returned = ''] = await stage.add(2);
    let returns = 0;
    const many = stage.open(async (job, token) => {
      if (job.id === deferred) {
        await job.moveToDelayed(Date.now() + 3_600_000, token);
        throw new DelayedError();
      }
      returns += 1;
      if (returns > 1) return;
      await job.moveToWait(token);
      throw new WaitingError();
    });
    void many.worker.run();
    await until(() => stage.done.length === 1);
    expect(stage.done).toEqual([returned]);
    expect(returns).toBe(2);
    expect(await stage.queue.getJobCounts('delayed', 'failed', 'active')).toEqual({ delayed: 1, failed: 0, active: 0 });
  });

  it('that fails stays among the failed ones, with its data', async () => {
    const [bad = '', good = ''] = await stage.add(2);
    const failed: (string | undefined)[] = [];
    const many = stage.open(async ({ id }) => {
      if (id === bad) throw new Error('a defect');
    });
    many.worker.on('failed', (job) => failed.push(job?.id));
    void many.worker.run();
    await until(async () => stage.done.length === 1 && (await stage.queue.getFailedCount()) === 1);
    expect([stage.done, failed]).toEqual([[good], [bad]]);
    expect(await stage.queue.getJob(bad)).toMatchObject({ data: { n: 0 }, failedReason: 'a defect' });
  });
});

describe('the worker', () => {
  it('ends when every job in work is acknowledged, and takes no more', async () => {
    const { pass, open: openGate } = gate();
    await stage.add(50);
    const many = stage.open(pass, { concurrency: 20 });
    void many.worker.run();
    await until(() => many.taken.length === 20);
    const closed = many.worker.close();
    openGate();
    await closed;
    expect(stage.done).toHaveLength(20);
    expect(await stage.queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 30, active: 0 });
  });

  it('ends while it waits for jobs', async () => {
    const many = stage.open();
    void many.worker.run();
    await stage.add(1);
    await until(() => stage.done.length === 1);
    await many.worker.close();
  });

  it('takes nothing while the queue is paused, and goes on when it is not', async () => {
    await stage.queue.pause();
    await stage.add(10);
    const many = stage.open();
    void many.worker.run();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(many.taken).toEqual([]);
    await stage.queue.resume();
    await until(() => stage.done.length === 10);
  });

  it('heeds how many jobs may be in work, and in a time, in the whole queue', async () => {
    await stage.queue.setGlobalConcurrency(3);
    await stage.queue.setGlobalRateLimit(20, 200);
    await stage.add(60);
    let inWork = 0;
    let most = 0;
    const many = stage.open(async () => {
      inWork += 1;
      most = Math.max(most, inWork);
      await new Promise((resolve) => setTimeout(resolve, 1));
      inWork -= 1;
    });
    void many.worker.run();
    await until(() => stage.done.length === 60);
    // A place is free from the acknowledgement on, which may be taken before the process notices.
    expect(most).toBeLessThanOrEqual(3);
  });

  it('knows the scripts of the BullMQ that is installed', async () => {
    // If this fails after an update: run the faults with INGEST_TAKE=many, read what has changed against plain-jobs-scripts.ts, then put the new scripts into KNOWN_SCRIPTS.
    const { worker, connection } = stage.open();
    await worker.waitUntilReady();
    expect(connection.knowsScripts).toBe(true);
  });

  it('takes jobs as BullMQ does when it does not know its scripts', async () => {
    const onUnknownScripts = jest.fn<() => void>();
    const ids = await stage.add(100);
    const plain = stage.open(undefined, { onUnknownScripts, changeScripts: true });
    void plain.worker.run();
    await until(() => stage.done.length === 100);
    expect(onUnknownScripts).toHaveBeenCalledTimes(1);
    expect(plain.taken).toEqual(ids);
    expect(plain.scripts()).toBeGreaterThan(100);
  });
});
