import { getEventListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { abortable, backOffMs } from './waiting.js';

it('abortable passes on the result or the error of the work, and leaves no listener on a signal that outlives it', async () => {
  const { signal } = new AbortController();
  await expect(abortable(Promise.resolve('done'), signal)).resolves.toBe('done');
  await expect(abortable(Promise.reject(new Error('refused')), signal)).rejects.toThrow('refused');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

it.each(['before', 'while'])('abortable throws the reason of a signal that is aborted %s it waits', async (when) => {
  const abort = new AbortController();
  const reason = new Error('stopping');
  if (when === 'before') abort.abort(reason);
  // What the work does then is ignored.
  const late = nextTurn().then(() => Promise.reject(new Error('late')));
  const waiting = abortable(late, abort.signal);
  abort.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  await nextTurn();
});

it('a back-off doubles with each failure up to the longest, and half of it is random', () => {
  const waits = (random: number) =>
    [0, 1, 3, 2_000].map((failures) => backOffMs(failures, { firstMs: 10, longestMs: 60 }, random));
  expect([waits(1), waits(0)]).toEqual([
    [10, 20, 60, 60],
    [5, 10, 30, 30],
  ]);
});
