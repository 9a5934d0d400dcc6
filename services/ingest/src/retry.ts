import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

export interface RetryOptions {
  readonly backoff: Backoff;
  /** Whether another attempt can help; when not, the error is thrown. */
  readonly worthwhile: (error: unknown) => boolean;
  readonly onFailure: (error: unknown) => void;
  readonly signal: AbortSignal;
}

/**
 * Tries for as long as it takes, with exponential backoff and jitter.
 * @throws the attempt's error when a retry is not worthwhile; the signal's reason once it is aborted, even while an
 * attempt is still waiting for a server that does not answer
 */
export async function retryUntilDone<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { backoff, worthwhile, onFailure, signal } = options;
  for (let failures = 0; ; failures += 1) {
    signal.throwIfAborted();
    try {
      return await orAborted(attempt(), signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!worthwhile(error)) throw error;
      onFailure(error);
      const longest = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(failures, 30));
      await delay(longest * (0.5 + Math.random() / 2), undefined, { signal });
    }
  }
}

async function orAborted<T>(attempt: Promise<T>, signal: AbortSignal): Promise<T> {
  const settled = new AbortController();
  const aborted = once(signal, 'abort', { signal: settled.signal }).then(
    () => Promise.reject(signal.reason),
    // The attempt has settled first.
    () => attempt,
  );
  try {
    return await Promise.race([attempt, aborted]);
  } finally {
    settled.abort();
  }
}
