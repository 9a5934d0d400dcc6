/** Waiting for work that may never end. */
import { setTimeout as delay } from 'node:timers/promises';
import { abortable, backOffMs } from '@meterline/catalog/plain';

/** @throws the response's own error, or one that names the server when the response takes longer */
export async function inTime<T>(server: string, response: Promise<T>, timeoutMs: number): Promise<T> {
  const deadline = new AbortController();
  const late = () => deadline.abort(new Error(`${server} did not answer within ${timeoutMs} ms`));
  const timer = setTimeout(late, timeoutMs);
  try {
    return await abortable(response, deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Work that is done once for all who ask while it is under way. */
export function shared<T>(work: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined;
  return () => {
    current ??= work().finally(() => {
      current = undefined;
    });
    return current;
  };
}

/** Work whose result is kept for `maxAgeMs`, or until it is forgotten. A failure is not kept: the next call tries again. */
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
  /** Whether another attempt can help; when not, the error is thrown. */
  readonly isWorthwhile: (error: unknown) => boolean;
  readonly onFailure: (error: unknown) => void;
  readonly signal: AbortSignal;
  /** Waits between two attempts; rejects when the signal is aborted. */
  readonly pause?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

/**
 * Tries for as long as it takes.
 * @throws the attempt's error when a retry is not worthwhile; the signal's reason once it is aborted, even while an
 * attempt is still waiting for a server that does not answer
 */
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
