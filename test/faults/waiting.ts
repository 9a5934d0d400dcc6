/** Waiting that ends at once when the run is cancelled. */
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 25;

/** @throws AbortError */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal });
}

/** Polls the condition. @returns whether it held before the deadline @throws AbortError */
export async function holdsWithin(
  deadlineMs: number,
  signal: AbortSignal,
  holds: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const deadline = Date.now() + deadlineMs;
  while (!(await holds())) {
    if (Date.now() > deadline) return false;
    await pause(POLL_MS, signal);
  }
  return true;
}
