/** Waiting until the ingest workers have taken in what was sent. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobProgress } from './usage-queue.js';

const POLL_MS = 100;
const STALL_NOTICE_MS = 10_000;

export interface IntakeWaitOptions {
  readonly progressOf: (jobId: string) => Promise<JobProgress>;
  /** How long to wait while nothing moves. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (jobsDone: number) => void;
  /** Told once each time nothing has moved for a while. */
  readonly onStall: () => void;
}

export interface IntakeOutcome {
  readonly takenIn: number;
  readonly failed: number;
  /** Jobs still in the queue: patience has ended, or the wait was interrupted. Nothing of them is lost. */
  readonly pending: number;
}

/**
 * Follows exactly these jobs, oldest first, so that other producers on the same queue do not matter. A job is taken
 * in when its rows are durable: workers acknowledge no earlier.
 */
export async function waitForIntake(jobIds: readonly string[], options: IntakeWaitOptions): Promise<IntakeOutcome> {
  const { progressOf, patienceMs, signal, onProgress, onStall } = options;
  let failed = 0;
  let done = 0;
  let movedAt = performance.now();
  let noticed = false;
  while (done < jobIds.length && !signal.aborted) {
    const state = await progressOf(jobIds[done] ?? '');
    if (state !== 'pending') {
      if (state === 'failed') failed += 1;
      done += 1;
      movedAt = performance.now();
      noticed = false;
      onProgress(done);
      continue;
    }
    const idleMs = performance.now() - movedAt;
    if (idleMs >= patienceMs) break;
    if (idleMs >= STALL_NOTICE_MS && !noticed) {
      noticed = true;
      onStall();
    }
    await sleep(POLL_MS);
  }
  return { takenIn: done - failed, failed, pending: jobIds.length - done };
}
