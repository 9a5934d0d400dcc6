/** When a call is tried again, and after how long. */

/** The longest wait between two attempts; if the service asks for more, the call fails. */
export const LONGEST_WAIT_MS = 30_000;

const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 8_000;
/** Added at random to a Retry-After, so that not all callers return at the same moment. */
const SPREAD_MS = 250;

/** With these the request was not carried out, and may succeed later. */
const RETRIED_STATUS: ReadonlySet<number> = new Set([429, 503]);

export function isRetriedStatus(status: number): boolean {
  return RETRIED_STATUS.has(status);
}

/**
 * Milliseconds to wait before the next attempt; undefined when the service asks for more than {@link LONGEST_WAIT_MS}.
 * The backoff doubles with each attempt, with full jitter; the wait is never shorter than a Retry-After.
 * @param attempt the one that failed, from 0
 * @param random 0 (inclusive) to 1 (exclusive)
 */
export function waitBeforeRetry(attempt: number, retryAfterMs: number | undefined, random: number): number | undefined {
  if (retryAfterMs !== undefined) {
    return retryAfterMs > LONGEST_WAIT_MS ? undefined : retryAfterMs + Math.round(random * SPREAD_MS);
  }
  return Math.round(random * Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt));
}

/** Resolves after the time; rejects with the signal's reason as soon as it is aborted. */
export async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const end = () => {
      signal?.removeEventListener('abort', stop);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', stop, { once: true });
  });
}
