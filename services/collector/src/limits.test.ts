/** The micro-batches: how many events the collector holds in memory. */
import { expect, it } from '@jest/globals';
import { MicroBatcher } from './queue/micro-batch.js';

const eventsOf = (ids: readonly string[]) => ids.map((id) => ({ id }));

/** A store whose writes end when the test says so. */
function open(options: { holdMs?: number; maxEvents?: number; maxBytes?: number } = {}) {
  const writes: { events: readonly object[]; end: (error?: Error) => void }[] = [];
  const batcher = new MicroBatcher({
    holdMs: 60_000,
    maxEvents: 10,
    maxBytes: 1_000,
    ...options,
    write: (events) =>
      new Promise((resolve, reject) => {
        writes.push({ events, end: (error) => (error ? reject(error) : resolve()) });
      }),
  });
  const written = () => writes.map(({ events }) => events.map((event) => Object.values(event)[0]));
  return { batcher, writes, written };
}

it('a micro-batcher writes at once while nothing is being written, and then what has come meanwhile together', async () => {
  const { batcher, writes, written } = open();
  const first = batcher.add(eventsOf(['a']), 1);
  const others = [batcher.add(eventsOf(['b']), 1), batcher.add(eventsOf(['c', 'd']), 2)];
  expect(written()).toEqual([['a']]);
  writes[0]?.end();
  await first;
  await new Promise((resolve) => setImmediate(resolve));
  expect(written()).toEqual([['a'], ['b', 'c', 'd']]);
  writes[1]?.end();
  await Promise.all(others);
});

it('a micro-batcher holds a request no longer than it may', async () => {
  const { batcher, writes, written } = open({ holdMs: 5 });
  const all = [batcher.add(eventsOf(['a']), 1), batcher.add(eventsOf(['b']), 1)];
  while (written().length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(written()).toEqual([['a'], ['b']]);
  for (const { end } of writes) end();
  await Promise.all(all);
});

it.each([
  ['events', Array.from({ length: 8 }, () => 'x'), 1],
  ['bytes', ['x'], 900],
])('a micro-batcher puts no more %s into one write than it may hold', (_what, events, bytes) => {
  const { batcher, written } = open();
  for (let request = 0; request < 4; request += 1) void batcher.add(eventsOf(events), bytes);
  expect(written().map(({ length }) => length)).toEqual([events.length, events.length, events.length]);
});

it('a micro-batcher writes each request alone if none may be held', () => {
  const { batcher, written } = open({ holdMs: 0 });
  for (const event of ['a', 'b', 'c']) void batcher.add(eventsOf([event]), 1);
  expect(written()).toEqual([['a'], ['b'], ['c']]);
});

it('a micro-batcher tells each request of the failure of its own write', async () => {
  const { batcher, writes } = open();
  const outcomes = Promise.allSettled([
    batcher.add(eventsOf(['a']), 1),
    batcher.add(eventsOf(['b']), 1),
    batcher.add(eventsOf(['c']), 1),
  ]);
  writes[0]?.end();
  await new Promise((resolve) => setImmediate(resolve));
  writes[1]?.end(new Error('full'));
  expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
});
