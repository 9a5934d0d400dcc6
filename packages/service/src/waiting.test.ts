import { getEventListeners } from 'node:events';
import { expect, it, jest } from '@jest/globals';
import { abortable, inTime, type RetryOptions, retryUntilDone } from './waiting.js';

function options(changes: Partial<RetryOptions> = {}): RetryOptions {
  return {
    backoff: { firstMs: 10, maxMs: 20 },
    isWorthwhile: () => true,
    onFailure: () => undefined,
    signal: new AbortController().signal,
    ...changes,
  };
}

const never = () => new Promise<never>(() => undefined);

it('abortable passes on the result or the error of the work', async () => {
  const { signal } = new AbortController();
  await expect(abortable(Promise.resolve('done'), signal)).resolves.toBe('done');
  await expect(abortable(Promise.reject(new Error('refused')), signal)).rejects.toThrow('refused');
});

it.each([
  ['before', true],
  ['while it waits', false],
])(
  'abortable throws the reason of a signal that is aborted %s, and ignores what the work does then',
  async (_, isBefore) => {
    const abort = new AbortController();
    const reason = new Error('stopping');
    if (isBefore) abort.abort(reason);
    const waiting = abortable(
      new Promise((_resolve, reject) => setImmediate(() => reject(new Error('late')))),
      abort.signal,
    );
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await new Promise((resolve) => setImmediate(resolve));
  },
);

it('abortable leaves no listener on a signal that outlives it', async () => {
  const { signal } = new AbortController();
  for (let n = 0; n < 3; n += 1) await abortable(Promise.resolve(), signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

it('inTime passes on an answer, and an error', async () => {
  await expect(inTime('Redis', Promise.resolve('PONG'), 60_000)).resolves.toBe('PONG');
  await expect(inTime('Redis', Promise.reject(new Error('NOAUTH')), 60_000)).rejects.toThrow('NOAUTH');
});

it('inTime names the server that takes longer', async () => {
  await expect(inTime('Redis', never(), 1)).rejects.toThrow('Redis did not answer within 1 ms');
});

it('retryUntilDone returns what the first success returns and reports every failure before it', async () => {
  const failures: unknown[] = [];
  let attempts = 0;
  const attempt = async () => {
    attempts += 1;
    if (attempts < 4) throw new Error(`failure ${attempts}`);
    return 'done';
  };
  const onFailure = (error: unknown) => failures.push(error);
  const done = retryUntilDone(attempt, options({ onFailure, pause: async () => undefined }));
  expect(await done).toBe('done');
  expect(failures).toMatchObject([{ message: 'failure 1' }, { message: 'failure 2' }, { message: 'failure 3' }]);
});

it('retryUntilDone doubles its waits, with jitter, up to the longest', async () => {
  const waits: number[] = [];
  const pause = async (ms: number) => void waits.push(ms);
  const attempt = async () => {
    if (waits.length < 10) throw new Error('away');
  };
  await retryUntilDone(attempt, options({ pause }));
  expect(waits).toHaveLength(10);
  for (const [index, wait] of waits.entries()) {
    const longest = Math.min(20, 10 * 2 ** index);
    expect(wait).toBeGreaterThanOrEqual(longest / 2);
    expect(wait).toBeLessThanOrEqual(longest);
  }
  expect(new Set(waits).size).toBeGreaterThan(1);
});

it('retryUntilDone throws the error at once when a retry is not worthwhile, and does not count it as an outage', async () => {
  const onFailure = jest.fn();
  const refused = new Error('refused');
  const attempt = jest.fn(() => Promise.reject(refused));
  await expect(retryUntilDone(attempt, options({ isWorthwhile: () => false, onFailure }))).rejects.toBe(refused);
  expect(attempt).toHaveBeenCalledTimes(1);
  expect(onFailure).not.toHaveBeenCalled();
});

it('retryUntilDone makes no attempt when it is aborted before', async () => {
  const attempt = jest.fn(async () => 'done');
  await expect(retryUntilDone(attempt, options({ signal: AbortSignal.abort() }))).rejects.toThrow('aborted');
  expect(attempt).not.toHaveBeenCalled();
});

it('retryUntilDone ends its wait when it is aborted', async () => {
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

it('retryUntilDone does not wait for an attempt that never ends when it is aborted', async () => {
  const abort = new AbortController();
  const outcome = retryUntilDone(never, options({ signal: abort.signal }));
  abort.abort();
  await expect(outcome).rejects.toThrow('aborted');
});
