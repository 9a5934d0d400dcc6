import { describe, expect, it } from '@jest/globals';
import { type JobProgress, reportsItsDisk, waitUntilStored } from './usage-queue.js';

const silent = { onProgress: () => undefined, onStall: () => undefined };
const { signal } = new AbortController();

describe('waiting for the ingest workers', () => {
  it('ends when every job is done, failed ones counted apart', async () => {
    const states: Record<string, JobProgress[]> = { a: ['pending', 'stored'], b: ['failed'], c: ['stored'] };
    const seen: number[] = [];
    const outcome = await waitUntilStored(['a', 'b', 'c'], {
      ...silent,
      progressOf: async (id) => states[id]?.shift() ?? 'pending',
      onProgress: (done) => seen.push(done),
      patienceMs: 10_000,
      signal,
    });
    expect(outcome).toEqual({ stored: 2, failed: 1, pending: 0 });
    expect(seen).toEqual([1, 2, 3]);
  });

  it('ends when nothing has moved for as long as patience lasts', async () => {
    const progressOf = async (id: string): Promise<JobProgress> => (id === 'a' ? 'stored' : 'pending');
    const outcome = await waitUntilStored(['a', 'b', 'c'], { ...silent, progressOf, patienceMs: 150, signal });
    expect(outcome).toEqual({ stored: 1, failed: 0, pending: 2 });
  });

  it('ends when it is interrupted', async () => {
    const interruption = new AbortController();
    const progressOf = async (): Promise<JobProgress> => {
      interruption.abort();
      return 'pending';
    };
    const options = { ...silent, progressOf, patienceMs: 10_000, signal: interruption.signal };
    expect(await waitUntilStored(['a'], options)).toEqual({ stored: 0, failed: 0, pending: 1 });
  });
});

it.each([
  ['7.0.15', 1, false],
  ['7.1.9', 1, false],
  ['7.2.0', 1, true],
  ['7.4.1', 0, false],
  ['8.0.0', 1, true],
])('whether Redis %s with aof_enabled:%d can say what is on its disk: %s', (version, aof, reports) => {
  const server = `# Server\r\nredis_version:${version}\r\nredis_git_sha1:00000000\r\n`;
  const persistence = `# Persistence\r\nloading:0\r\naof_enabled:${aof}\r\naof_rewrite_in_progress:0\r\n`;
  expect(reportsItsDisk(server, persistence)).toBe(reports);
});
