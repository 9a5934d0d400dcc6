import { describe, expect, it } from '@jest/globals';
import type { JobEvents } from '../events/check.js';
import { Gathering } from './gathering.js';

function jobOf(events: readonly string[]): JobEvents {
  return { parts: [Buffer.from(events.map((event) => JSON.stringify(event)).join())], count: events.length };
}

/** A store whose writes end when the test says so. */
function open(options: { holdMs?: number; maxEvents?: number; maxBytes?: number } = {}) {
  const writes: { events: JobEvents; end: (error?: Error) => void }[] = [];
  const gathering = new Gathering({
    holdMs: 60_000,
    maxEvents: 10,
    maxBytes: 1_000,
    ...options,
    write: (events) =>
      new Promise((resolve, reject) => {
        writes.push({ events, end: (error) => (error ? reject(error) : resolve()) });
      }),
  });
  const written = () =>
    writes.map(({ events }) => {
      const values: unknown[] = JSON.parse(`[${Buffer.concat(events.parts)}]`);
      expect(values.length).toBe(events.count);
      return values;
    });
  return { gathering, writes, written };
}

describe('gathering', () => {
  it('writes at once while nothing is being written, and then what has come meanwhile together', async () => {
    const { gathering, writes, written } = open();
    const first = gathering.add(jobOf(['a']), 1);
    const others = [gathering.add(jobOf(['b']), 1), gathering.add(jobOf(['c', 'd']), 2)];
    expect(written()).toEqual([['a']]);
    writes[0]?.end();
    await first;
    await new Promise((resolve) => setImmediate(resolve));
    expect(written()).toEqual([['a'], ['b', 'c', 'd']]);
    writes[1]?.end();
    await Promise.all(others);
  });

  it('holds a request no longer than it may', async () => {
    const { gathering, writes, written } = open({ holdMs: 5 });
    const all = [gathering.add(jobOf(['a']), 1), gathering.add(jobOf(['b']), 1)];
    while (written().length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(written()).toEqual([['a'], ['b']]);
    for (const { end } of writes) end();
    await Promise.all(all);
  });

  it.each([
    ['events', Array.from({ length: 8 }, () => 'x'), 1],
    ['bytes', ['x'], 900],
  ])('puts no more %s into one write than it may hold', (_what, events, bytes) => {
    const { gathering, written } = open();
    for (let request = 0; request < 4; request += 1) void gathering.add(jobOf(events), bytes);
    expect(written().map(({ length }) => length)).toEqual([events.length, events.length, events.length]);
  });

  it('writes each request alone if none may be held', () => {
    const { gathering, written } = open({ holdMs: 0 });
    for (const event of ['a', 'b', 'c']) void gathering.add(jobOf([event]), 1);
    expect(written()).toEqual([['a'], ['b'], ['c']]);
  });

  it('tells each request of the failure of its own write', async () => {
    const { gathering, writes } = open();
    const outcomes = Promise.allSettled([
      gathering.add(jobOf(['a']), 1),
      gathering.add(jobOf(['b']), 1),
      gathering.add(jobOf(['c']), 1),
    ]);
    writes[0]?.end();
    await new Promise((resolve) => setImmediate(resolve));
    writes[1]?.end(new Error('full'));
    expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  });
});
