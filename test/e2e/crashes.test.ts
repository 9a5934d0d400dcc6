/** Workers that are killed or stopped while they process jobs lose nothing and count nothing twice. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { killServices, startIngest } from '../services.js';
import {
  drained,
  enqueue,
  enqueueData,
  openPipeline,
  type Pipeline,
  rejectedRows,
  stored,
  until,
  usageEvent,
} from './pipeline.js';

jest.setTimeout(300_000);

/** How long an insert may take before it is retried. A stop that waited for one, or for rows, would take as long. */
const INSERT_TIMEOUT_MS = 60_000;

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

function inWork(jobs: number): Promise<void> {
  return until(`${jobs} jobs are in work`, 10_000, async () => (await pipeline.queue.getActiveCount()) === jobs);
}

describe('a worker that is killed', () => {
  it('in the middle of its inserts leaves its jobs to the next one, and nothing is lost or counted twice', async () => {
    const env = { ...pipeline.env, INGEST_BATCH_ROWS: '500', INGEST_CONCURRENCY: '50' };
    const refused = await enqueueData(pipeline.queue, { events: ['refused', usageEvent(0)] });
    await enqueue(pipeline.queue, 2_000, 20, 1);
    const killed = await startIngest(env);
    await until('some rows are stored', 10_000, async () => (await stored(pipeline.warehouse)).events > 0);
    await killed.kill();
    expect((await stored(pipeline.warehouse)).events).toBeLessThan(40_000);
    expect(await pipeline.queue.getActiveCount()).toBeGreaterThan(0);

    const next = await startIngest(env);
    await drained(pipeline.queue, 40_000);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 40_001, usage: 40_001 });
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
      await until('some rows are stored', 10_000, async () => (await stored(pipeline.warehouse)).events > 0);
      const asked = Date.now();
      process.kill(stopped.pid, signal);
      expect(await stopped.exited).toEqual({ code: 0, signal: null });
      expect(Date.now() - asked).toBeLessThan(INSERT_TIMEOUT_MS / 2);

      const counts = await pipeline.queue.getJobCounts('active', 'failed', 'waiting', 'completed');
      expect(counts).toMatchObject({ active: 0, failed: 0 });
      expect(counts.waiting).toBeGreaterThan(0);

      await startIngest(env);
      await drained(pipeline.queue);
      expect(await stored(pipeline.warehouse)).toEqual({ events: 20_000, usage: 20_000 });
    },
  );

  it('does not wait for rows to fill a batch', async () => {
    await enqueue(pipeline.queue, 20, 1);
    const stopped = await startIngest({ ...pipeline.env, ...SLOW });
    await inWork(20);
    const asked = Date.now();
    expect(await stopped.stop()).toBe(0);
    expect(Date.now() - asked).toBeLessThan(INSERT_TIMEOUT_MS / 2);
    expect(await stored(pipeline.warehouse)).toEqual({ events: 20, usage: 20 });
  });
});
