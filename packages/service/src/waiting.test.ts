import { describe, expect, it } from '@jest/globals';
import { inTime, type RetryOptions, remembered, retryUntilDone } from './waiting.js';

const never = () => new Promise<never>(() => undefined);

it('inTime returns the response, throws its error, and names the server in the error of a timeout', async () => {
  await expect(inTime('Redis', Promise.resolve('PONG'), 60_000)).resolves.toBe('PONG');
  await expect(inTime('Redis', Promise.reject(new Error('NOAUTH')), 60_000)).rejects.toThrow('NOAUTH');
  await expect(inTime('Redis', never(), 1)).rejects.toThrow('Redis did not respond within 1 ms');
});

/** Retries an attempt that fails so often before it succeeds. */
function retry(failing: number, given: Partial<RetryOptions> = {}) {
  const seen = { attempts: 0, failures: [] as unknown[], waits: [] as number[] };
  const attempt = async () => {
    seen.attempts += 1;
    if (seen.attempts <= failing) throw new Error(`failure ${seen.attempts}`);
    return 'done';
  };
  const outcome = retryUntilDone(attempt, {
    backOff: { firstMs: 10, longestMs: 20 },
    isWorthwhile: () => true,
    onFailure: (error) => seen.failures.push(error),
    signal: new AbortController().signal,
    pause: async (ms) => void seen.waits.push(ms),
    ...given,
  });
  return { outcome, seen };
}

it('retryUntilDone returns the first success, reports every failure before, and doubles its back-off with jitter', async () => {
  const { outcome, seen } = retry(10);
  expect(await outcome).toBe('done');
  expect(seen.failures).toMatchObject(Array.from({ length: 10 }, (_, n) => ({ message: `failure ${n + 1}` })));
  expect(seen.waits).toHaveLength(10);
  for (const [index, wait] of seen.waits.entries()) {
    const longest = Math.min(20, 10 * 2 ** index);
    expect(wait).toBeGreaterThanOrEqual(longest / 2);
    expect(wait).toBeLessThanOrEqual(longest);
  }
  expect(new Set(seen.waits).size).toBeGreaterThan(1);
});

it('retryUntilDone throws the error at once when a retry is not worthwhile, and does not report it as an outage', async () => {
  const { outcome, seen } = retry(1, { isWorthwhile: () => false });
  await expect(outcome).rejects.toThrow('failure 1');
  expect(seen).toMatchObject({ attempts: 1, failures: [] });
});

it('retryUntilDone makes no attempt if it is already aborted', async () => {
  const { outcome, seen } = retry(0, { signal: AbortSignal.abort() });
  await expect(outcome).rejects.toThrow('aborted');
  expect(seen.attempts).toBe(0);
});

it('retryUntilDone stops its wait or a hanging attempt when it is aborted', async () => {
  const abort = new AbortController();
  const hour = { firstMs: 3_600_000, longestMs: 3_600_000 };
  const onFailure = () => void setImmediate(() => abort.abort());
  const { outcome } = retry(1, { backOff: hour, signal: abort.signal, onFailure, pause: undefined });
  await expect(outcome).rejects.toMatchObject({ name: 'AbortError' });
  const stopping = new AbortController();
  const options = { backOff: hour, isWorthwhile: () => true, onFailure, signal: stopping.signal };
  const hanging = retryUntilDone(never, options);
  stopping.abort();
  await expect(hanging).rejects.toThrow('aborted');
});

describe('remembered', () => {
  /** Work that takes until its result is set, and how often it ran. */
  function rememberedWork() {
    const clock = { now: 0 };
    const runs: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];
    const work = () => new Promise<string>((resolve, reject) => runs.push({ resolve, reject }));
    return { clock, runs, ...remembered(() => new Date(clock.now), 100, work) };
  }

  it('a remembered result is shared while the work runs and until its maximum age', async () => {
    const { clock, runs, read } = rememberedWork();
    const both = Promise.all([read(), read()]);
    runs[0]?.resolve('first');
    expect(await both).toEqual(['first', 'first']);
    clock.now = 99;
    expect(await read()).toBe('first');
    clock.now = 100;
    const later = read();
    runs[1]?.resolve('second');
    expect(await later).toBe('second');
    expect(runs).toHaveLength(2);
  });

  it('a failure is not remembered', async () => {
    const { runs, read } = rememberedWork();
    const failed = read();
    runs[0]?.reject(new Error('away'));
    await expect(failed).rejects.toThrow('away');
    const again = read();
    runs[1]?.resolve('back');
    expect(await again).toBe('back');
  });

  it('work that started before forget() is not remembered, and its failure does not discard a later result', async () => {
    const { runs, read, forget } = rememberedWork();
    const before = read();
    forget();
    const after = read();
    runs[0]?.reject(new Error('away'));
    await expect(before).rejects.toThrow('away');
    runs[1]?.resolve('new');
    expect(await Promise.all([after, read()])).toEqual(['new', 'new']);
    expect(runs).toHaveLength(2);
  });
});
