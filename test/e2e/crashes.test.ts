/** Workers that are killed or stopped while they process jobs lose nothing and count nothing twice. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { freeze } from '../freeze.js';
import { killServices, type ServiceProcess, startIngest } from '../services.js';
import {
  drained,
  enqueue,
  enqueueData,
  keepBusy,
  openPipeline,
  type Pipeline,
  rejectedRows,
  stored,
  until,
  usageEvent,
} from './pipeline.js';

jest.setTimeout(300_000);

let pipeline: Pipeline;
beforeEach(async () => {
  pipeline = await openPipeline();
});
afterEach(async () => {
  await killServices();
  await pipeline.close();
});

/** Rows wait for others long enough that their jobs are certainly active. */
const SLOW = { INGEST_FLUSH_MS: '60000' };

/** Stops the process at a moment at which it has jobs in work. */
async function stopInWork({ pid }: ServiceProcess): Promise<void> {
  await until('it is stopped with jobs in work', 10_000, async () => {
    await freeze(pid);
    if ((await pipeline.queue.getActiveCount()) > 0) return true;
    process.kill(pid, 'SIGCONT');
    return false;
  });
}

function inWork(jobs: number): Promise<void> {
  return until(`${jobs} jobs are in work`, 10_000, async () => (await pipeline.queue.getActiveCount()) === jobs);
}

describe('a worker that is killed', () => {
  it('in the middle of its inserts leaves its jobs to the next one, and nothing is lost or counted twice', async () => {
    const env = { ...pipeline.env, INGEST_BATCH_ROWS: '500', INGEST_CONCURRENCY: '50' };
    const refused = await enqueueData(pipeline.queue, { events: ['refused', usageEvent(0)] });
    await enqueue(pipeline.queue, 2_000, 20, 1);
    const killed = await startIngest(env);
    const load = keepBusy(pipeline.queue, 20, 40_001);
    await until('some rows are stored', 10_000, async () => (await stored(pipeline.warehouse)).events > 0);
    await stopInWork(killed);
    await killed.kill();
    const events = await load.end();
    expect(await pipeline.queue.getActiveCount()).toBeGreaterThan(0);

    const next = await startIngest(env);
    await drained(pipeline.queue, 40_000);
    expect(await stored(pipeline.warehouse)).toEqual({ events, usage: events });
    expect(await rejectedRows(pipeline.warehouse, refused)).toHaveLength(1);
    expect(next.entries().filter(({ level }) => Number(level) > 30)).toEqual([]);
  });
});

describe('a worker that is asked to stop', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'under load ends with code 0 and leaves no job in work, after %s',
    async (signal) => {
      const env = { ...pipeline.env, INGEST_BATCH_ROWS: '500', INGEST_CONCURRENCY: '50' };
      const stopped = await startIngest(env);
      await enqueue(pipeline.queue, 1_000, 20);
      const load = keepBusy(pipeline.queue, 20, 20_000);
      await until('some rows are stored', 10_000, async () => (await stored(pipeline.warehouse)).events > 0);
      process.kill(stopped.pid, signal);
      expect(await stopped.exited).toEqual({ code: 0, signal: null });
      const events = await load.end();
      expect(await pipeline.queue.getJobCounts('active', 'failed')).toEqual({ active: 0, failed: 0 });

      await startIngest(env);
      await drained(pipeline.queue);
      expect(await stored(pipeline.warehouse)).toEqual({ events, usage: events });
    },
  );

  it('does not wait for rows to fill a batch', async () => {
    await enqueue(pipeline.queue, 20, 1);
    const stopped = await startIngest({ ...pipeline.env, ...SLOW });
    await inWork(20);
    // It would have to be killed if it waited as long as the rows do.
    expect(await stopped.stop()).toBe(0);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 20, usage: 20 });
  });
});
