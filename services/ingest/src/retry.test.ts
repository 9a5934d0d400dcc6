import { describe, expect, it, jest } from '@jest/globals';
import { type RetryOptions, retryUntilDone } from './retry.js';

function options(changes: Partial<RetryOptions> = {}): RetryOptions {
  return {
    backoff: { firstMs: 10, maxMs: 20 },
    worthwhile: () => true,
    onFailure: () => undefined,
    signal: new AbortController().signal,
    ...changes,
  };
}

describe('retryUntilDone', () => {
  it('returns what the first success returns and tells of every failure before it', async () => {
    const failures: unknown[] = [];
    let attempts = 0;
    const attempt = async () => {
      attempts += 1;
      if (attempts < 4) throw new Error(`failure ${attempts}`);
      return 'done';
    };
    const done = retryUntilDone(attempt, options({ onFailure: (error) => failures.push(error) }));
    expect(await done).toBe('done');
    expect(failures).toMatchObject([{ message: 'failure 1' }, { message: 'failure 2' }, { message: 'failure 3' }]);
  });

  it('doubles its waits, with jitter, up to the longest', async () => {
    const at: number[] = [];
    const attempt = async () => {
      at.push(performance.now());
      if (at.length < 11) throw new Error('away');
    };
    await retryUntilDone(attempt, options());
    const waits = at.slice(1).map((instant, index) => instant - (at[index] ?? 0));
    for (const [index, wait] of waits.entries()) {
      // A timer may fire up to a millisecond early.
      expect(wait).toBeGreaterThan(Math.min(20, 10 * 2 ** index) / 2 - 1.5);
    }
    // About 150 ms; without the bound at least 5 s.
    expect(waits.reduce((sum, wait) => sum + wait)).toBeLessThan(3_000);
  });

  it('throws the error at once when a retry is not worthwhile, and does not count it as an outage', async () => {
    const onFailure = jest.fn();
    const refused = new Error('refused');
    const attempt = jest.fn(() => Promise.reject(refused));
    await expect(retryUntilDone(attempt, options({ worthwhile: () => false, onFailure }))).rejects.toBe(refused);
    expect(attempt).toHaveBeenCalledTimes(1);
    expect(onFailure).not.toHaveBeenCalled();
  });

  it('makes no attempt when it is aborted before', async () => {
    const attempt = jest.fn(async () => 'done');
    await expect(retryUntilDone(attempt, options({ signal: AbortSignal.abort() }))).rejects.toThrow('aborted');
    expect(attempt).not.toHaveBeenCalled();
  });

  it('ends its wait when it is aborted', async () => {
    const abort = new AbortController();
    const attempt = jest.fn(() => Promise.reject(new Error('away')));
    const outcome = retryUntilDone(
      attempt,
      options({
        backoff: { firstMs: 60_000, maxMs: 60_000 },
        signal: abort.signal,
        onFailure: () => setImmediate(() => abort.abort()),
      }),
    );
    await expect(outcome).rejects.toMatchObject({ name: 'AbortError' });
    expect(attempt).toHaveBeenCalledTimes(1);
  });

  it('does not wait for an attempt that never ends when it is aborted', async () => {
    const abort = new AbortController();
    const outcome = retryUntilDone(() => new Promise(() => undefined), options({ signal: abort.signal }));
    abort.abort();
    await expect(outcome).rejects.toThrow('aborted');
  });
});
