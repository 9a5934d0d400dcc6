/** The byte budget and the micro-batches: how many events the collector holds in memory. */
import { expect, it } from '@jest/globals';
import { ByteBudget } from './byte-budget.js';
import { MicroBatcher } from './queue/micro-batch.js';

const refusal = (status: number, code: string) => expect.objectContaining({ status, code });

/** A request that holds so many bytes and is past what it may wait for. */
function busy(budget: ByteBudget, account: string, bytes: number) {
  const reservation = budget.open(account);
  reservation.resize(bytes);
  reservation.state = 'in progress';
  return reservation;
}

it('the in-flight byte budget gives one account a quarter, and all together no more than there is', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const first = busy(budget, 'a', 200);
  expect(() => budget.open('a').resize(51)).toThrow(refusal(429, 'too_many_bytes_in_flight'));
  for (const account of ['b', 'c', 'd']) busy(budget, account, 250);
  expect(() => budget.open('e').resize(51)).toThrow(refusal(503, 'server_busy'));
  expect(budget.total).toBe(950);
  first.release();
  first.release();
  expect(budget.total).toBe(750);
  budget.open('e').resize(250);
});

it('the in-flight byte budget counts a response however much there is: its events are durable already', () => {
  const budget = new ByteBudget(100, 1 / 4);
  const reservation = busy(budget, 'a', 0);
  reservation.become(1_000);
  expect(budget.total).toBe(1_000);
  expect(() => budget.open('b')).toThrow(refusal(503, 'server_busy'));
  reservation.release();
  expect(budget.total).toBe(0);
});

it('the in-flight byte budget does not count what is taken after the release: nobody would give it back', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const reservation = budget.open('a');
  reservation.resize(100);
  reservation.release();
  reservation.resize(100);
  reservation.become(50);
  expect(budget.total).toBe(0);
});

it('the in-flight byte budget gives up the oldest waiting request of the account with the most, for an account that has less', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const held = ['a', 'b', 'c', 'd'].map((account) => busy(budget, account, 150));
  const waiting = ['a', 'b', 'b', 'c'].map((account) => {
    const reservation = budget.open(account);
    reservation.resize(account === 'b' ? 45 : 100);
    return reservation;
  });
  // a and c have 250 each, b has 240, d has 150; ten bytes are left.
  expect(budget.total).toBe(990 - 100);
  busy(budget, 'e', 110);
  expect(waiting.map(({ signal }) => signal.aborted)).toEqual([false, false, false, false]);
  budget.open('e').resize(30);
  expect(waiting.map(({ signal }) => signal.aborted)).toEqual([true, false, false, false]);
  expect(waiting[0]?.signal.reason).toEqual(refusal(503, 'server_busy'));
  expect(held.map(({ signal }) => signal.aborted)).toEqual([false, false, false, false]);
  expect(budget.total).toBe(930);
});

it('the in-flight byte budget gives up what waits of an account for what is worked on of it, the newest first, so that some of it always ends', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const [first, ...others] = [0, 1, 2, 3].map(() => {
    const reservation = budget.open('a');
    reservation.resize(60);
    return reservation;
  });
  const responding = busy(budget, 'a', 0);
  responding.become(10);
  responding.state = 'responding';
  expect(() => first?.resize(100)).toThrow(refusal(429, 'too_many_bytes_in_flight'));
  if (first) first.state = 'in progress';
  first?.resize(160);
  expect(others.map(({ signal }) => signal.aborted)).toEqual([false, true, true]);
  expect(responding.signal.aborted).toBe(false);
  expect(() => first?.resize(241)).toThrow(refusal(429, 'too_many_bytes_in_flight'));
});

it('the in-flight byte budget refuses what announces more than there is room for in the share of its account', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  busy(budget, 'a', 200);
  expect(() => budget.open('a', 51)).toThrow(refusal(429, 'too_many_bytes_in_flight'));
  expect(budget.open('a', 50).bytes).toBe(0);
});

it('the in-flight byte budget gives up nothing for an account that would then have the most itself', () => {
  const budget = new ByteBudget(1_000, 1 / 4);
  const waiting = ['a', 'b', 'c', 'd', 'e'].map((account) => {
    const reservation = budget.open(account);
    reservation.resize(200);
    return reservation;
  });
  expect(() => budget.open('f').resize(200)).toThrow(refusal(503, 'server_busy'));
  expect(() => budget.open('a').resize(10)).toThrow(refusal(503, 'server_busy'));
  expect(waiting.some(({ signal }) => signal.aborted)).toBe(false);
  budget.open('f').resize(199);
  expect(waiting.filter(({ signal }) => signal.aborted)).toHaveLength(1);
});

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
