/** Adds timeouts, retries, sharing and caching to asynchronous work. */
import { setTimeout as delay } from 'node:timers/promises';
import { abortable, backOffMs } from '@meterline/catalog/plain';

/** Waits for a response. @throws the error of the response, or after the timeout an error that names the server */
export async function inTime<T>(server: string, response: Promise<T>, timeoutMs: number): Promise<T> {
  const deadline = new AbortController();
  const late = () => deadline.abort(new Error(`${server} did not respond within ${timeoutMs} ms`));
  const timer = setTimeout(late, timeoutMs);
  try {
    return await abortable(response, deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns a function that runs `work`. Calls made while `work` is running share its result. */
export function shared<T>(work: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined;
  return () => {
    current ??= work().finally(() => {
      current = undefined;
    });
    return current;
  };
}

/** Caches the result of `work` for `maxAgeMs`, or until `forget` is called. A failure is not cached, so the next call tries again. */
export function remembered<T>(clock: () => Date, maxAgeMs: number, work: () => Promise<T>) {
  let current: { readonly result: Promise<T>; readonly startedAt: number } | undefined;
  const forget = (one = current) => {
    if (current === one) current = undefined;
  };
  const read = (): Promise<T> => {
    const now = clock().getTime();
    if (current && now - current.startedAt < maxAgeMs) return current.result;
    const started = { result: work(), startedAt: now };
    current = started;
    started.result.catch(() => forget(started));
    return started.result;
  };
  return { read, forget: () => forget() };
}

export interface RetryOptions {
  readonly backOff: Parameters<typeof backOffMs>[1];
  readonly isWorthwhile: (error: unknown) => boolean;
  readonly onFailure: (error: unknown) => void;
  readonly signal: AbortSignal;
  /** Waits between two attempts. Rejects if the signal is aborted. Tests inject this function. */
  readonly pause?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

/** Retries until an attempt succeeds. @throws the attempt's error if a retry is not worthwhile, or the signal's reason once it is aborted */
export async function retryUntilDone<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { backOff, isWorthwhile, onFailure, signal, pause = sleep } = options;
  for (let failures = 0; ; failures += 1) {
    signal.throwIfAborted();
    try {
      return await abortable(attempt(), signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isWorthwhile(error)) throw error;
      onFailure(error);
      await pause(backOffMs(failures, backOff), signal);
    }
  }
}

const sleep = (ms: number, signal: AbortSignal) => delay(ms, undefined, { signal });
