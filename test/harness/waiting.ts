import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The limit of every wait in the tests. It is far longer than any wait takes on a busy machine, so only a defect reaches it, and shorter than
 * Jest's limit for a test, so the failure names what did not happen.
 */
export const LIMIT_MS = 240_000;
const POLL_MS = 10;

/** Polls until the condition holds. @throws Error that names the condition if it does not hold within the limit */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + LIMIT_MS; !(await holds()); await sleep(POLL_MS)) {
    if (performance.now() > end) throw new Error(`did not happen within ${LIMIT_MS / 1000} s: ${what}`);
  }
}
