import type { Queue } from 'bullmq';
import { pause } from '../faults/waiting.js';
import type { Findings } from './findings.js';

/** The queue is stuck when nothing has left it for so long. */
const STUCK_MS = 90_000;
const POLL_MS = 100;

/** Waits until no job is left. Jobs that are stuck or have failed are faults. */
export async function drained(queue: Queue, findings: Findings): Promise<void> {
  let open = Number.POSITIVE_INFINITY;
  let lastChange = Date.now();
  while (open > 0 && Date.now() - lastChange < STUCK_MS) {
    await pause(POLL_MS, new AbortController().signal);
    const { completed: _, failed = 0, ...others } = await queue.getJobCounts();
    const left = Object.values(others).reduce((sum, jobs) => sum + jobs, 0);
    if (left !== open) lastChange = Date.now();
    open = left;
    if (open === 0 && failed > 0) findings.add(`${failed} failed jobs`);
  }
  if (open > 0) findings.add(`${open} jobs are stuck`);
}
