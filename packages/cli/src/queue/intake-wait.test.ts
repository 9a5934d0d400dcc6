import { describe, expect, it } from '@jest/globals';
import { waitForIntake } from './intake-wait.js';
import type { JobProgress } from './usage-queue.js';

const silent = { onProgress: () => undefined, onStall: () => undefined };
const { signal } = new AbortController();

describe('waiting for the ingest workers', () => {
  it('ends when every job is done, failed ones counted apart', async () => {
    const states: Record<string, JobProgress[]> = { a: ['pending', 'taken_in'], b: ['failed'], c: ['taken_in'] };
    const seen: number[] = [];
    const outcome = await waitForIntake(['a', 'b', 'c'], {
      ...silent,
      progressOf: async (id) => states[id]?.shift() ?? 'pending',
      onProgress: (done) => seen.push(done),
      patienceMs: 10_000,
      signal,
    });
    expect(outcome).toEqual({ takenIn: 2, failed: 1, pending: 0 });
    expect(seen).toEqual([1, 2, 3]);
  });

  it('ends when nothing has moved for as long as patience lasts', async () => {
    const progressOf = async (id: string): Promise<JobProgress> => (id === 'a' ? 'taken_in' : 'pending');
    const outcome = await waitForIntake(['a', 'b', 'c'], { ...silent, progressOf, patienceMs: 150, signal });
    expect(outcome).toEqual({ takenIn: 1, failed: 0, pending: 2 });
  });

  it('ends when it is interrupted', async () => {
    const interruption = new AbortController();
    const progressOf = async (): Promise<JobProgress> => {
      interruption.abort();
      return 'pending';
    };
    const options = { ...silent, progressOf, patienceMs: 10_000, signal: interruption.signal };
    expect(await waitForIntake(['a'], options)).toEqual({ takenIn: 0, failed: 0, pending: 1 });
  });
});
