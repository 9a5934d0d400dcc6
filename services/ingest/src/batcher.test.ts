import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { EventRows, Names, type RejectedEvent } from '@meterline/warehouse';
import { Batcher } from './batcher.js';
import type { Intake } from './intake.js';

const REFUSED: RejectedEvent = {
  receivedAt: 0,
  jobId: '',
  position: 0,
  accountId: '',
  reason: 'invalid_usage',
  message: '',
  payload: '',
};

/** A job of so many rows; refused ones count like accepted ones. */
function intake(id: string, rows = 1): Intake {
  const accepted = new EventRows(0, new Names());
  return { job: { id, receivedAt: 0 }, accepted, rejected: Array.from({ length: rows }, () => REFUSED) };
}

/** A store whose inserts end when the test says so. */
function openBatcher({
  maxIntakes = 100,
  ...limits
}: {
  maxRows?: number;
  enoughRows?: number;
  flushMs?: number;
  maxIntakes?: number;
  maxInFlight?: number;
} = {}) {
  const inserts: { ids: string[]; succeed: () => void; fail: (error: Error) => void }[] = [];
  const batcher = new Batcher({
    maxRows: 100,
    flushMs: 50,
    enoughRows: 100,
    maxInFlight: 2,
    ...limits,
    maxIntakes,
    store: (batch) =>
      new Promise((succeed, fail) => inserts.push({ ids: batch.map(({ job }) => job.id), succeed, fail })),
  });
  const ids = () => inserts.map((insert) => insert.ids);
  const add = (intake: Intake): Promise<unknown> => Promise.all(batcher.addAll([{ intake }]));
  return { batcher, add, inserts, ids };
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('the batcher inserts together what arrives within flushMs, in the order of arrival', () => {
  const { add, ids } = openBatcher();
  void add(intake('a'));
  jest.advanceTimersByTime(49);
  void add(intake('b'));
  expect(ids()).toEqual([]);
  jest.advanceTimersByTime(1);
  expect(ids()).toEqual([['a', 'b']]);
});

it('the batcher does not wait once maxRows is reached, and never cuts a job in two', () => {
  const { add, ids } = openBatcher({ maxRows: 10 });
  void add(intake('a', 4));
  void add(intake('b', 5));
  expect(ids()).toEqual([]);
  void add(intake('c', 3));
  expect(ids()).toEqual([['a', 'b']]);
});

it('the batcher counts the rows of a new batch from zero', async () => {
  const { add, inserts, ids } = openBatcher({ maxRows: 10 });
  const first = add(intake('a', 10));
  inserts[0]?.succeed();
  await first;
  void add(intake('b'));
  await Promise.resolve();
  expect(ids()).toEqual([['a']]);
});

it('the batcher inserts a job that has more rows than maxRows', () => {
  const { add, ids } = openBatcher({ maxRows: 10 });
  void add(intake('large', 25));
  expect(ids()).toEqual([['large']]);
});

it('the batcher does not wait once maxIntakes is reached', () => {
  const { add, ids } = openBatcher({ maxIntakes: 3 });
  for (const id of ['a', 'b', 'c']) void add(intake(id));
  expect(ids()).toEqual([['a', 'b', 'c']]);
});

it('the batcher sends what is overdue as soon as the insert before it ends', async () => {
  const { add, inserts, ids } = openBatcher();
  const first = add(intake('a'));
  jest.advanceTimersByTime(50);
  void add(intake('b'));
  jest.advanceTimersByTime(50);
  void add(intake('c'));
  jest.advanceTimersByTime(10_000);
  expect(ids()).toEqual([['a']]);
  inserts[0]?.succeed();
  await first;
  await Promise.resolve();
  expect(ids()).toEqual([['a'], ['b', 'c']]);
});

it('the batcher sends a full batch while another is on its way, and not a third', async () => {
  const { add, inserts, ids } = openBatcher({ maxRows: 10 });
  const first = add(intake('a', 10));
  void add(intake('b', 4));
  expect(ids()).toEqual([['a']]);
  void add(intake('c', 6));
  void add(intake('d', 10));
  jest.advanceTimersByTime(10_000);
  expect(ids()).toEqual([['a'], ['b', 'c']]);
  inserts[0]?.succeed();
  await first;
  await Promise.resolve();
  expect(ids()).toEqual([['a'], ['b', 'c'], ['d']]);
});

it('the batcher does not wait once there are enough rows if nothing is on its way, and then collects up to maxRows', async () => {
  const { add, inserts, ids } = openBatcher({ maxRows: 20, enoughRows: 5 });
  const first = add(intake('a', 5));
  void add(intake('b', 10));
  jest.advanceTimersByTime(10_000);
  void add(intake('c', 9));
  expect(ids()).toEqual([['a']]);
  inserts[0]?.succeed();
  await first;
  await Promise.resolve();
  expect(ids()).toEqual([['a'], ['b', 'c']]);
});

it('the batcher sends one batch at a time if it may have one on its way', () => {
  const { add, ids } = openBatcher({ maxIntakes: 1, maxInFlight: 1 });
  for (const id of ['a', 'b', 'c']) void add(intake(id));
  jest.advanceTimersByTime(10_000);
  expect(ids()).toEqual([['a']]);
});

it('the batcher resolves each job with its own insert, in whatever order they end', async () => {
  const { add, inserts } = openBatcher({ maxIntakes: 1 });
  const durable: string[] = [];
  const a = add(intake('a')).then(() => durable.push('a'));
  const b = add(intake('b')).then(() => durable.push('b'));
  inserts[1]?.succeed();
  await b;
  expect(durable).toEqual(['b']);
  inserts[0]?.succeed();
  await a;
  expect(durable).toEqual(['b', 'a']);
});

it.each([
  ['four times as long as the insert before took', 30, 120],
  ['flushMs at least', 1, 50],
  ['five times flushMs at most', 10_000, 250],
])('the batcher waits for others %s', async (_, insertMs, waitMs) => {
  const { add, inserts, ids } = openBatcher();
  const first = add(intake('a'));
  jest.advanceTimersByTime(50);
  jest.advanceTimersByTime(insertMs);
  inserts[0]?.succeed();
  await first;
  await Promise.resolve();
  void add(intake('b'));
  jest.advanceTimersByTime(waitMs - 1);
  expect(ids()).toEqual([['a']]);
  jest.advanceTimersByTime(1);
  expect(ids()).toEqual([['a'], ['b']]);
});

it('the batcher leaves nothing behind that arrives while an insert is on its way and stays below every limit', async () => {
  const { add, inserts, ids } = openBatcher();
  const first = add(intake('a'));
  jest.advanceTimersByTime(50);
  void add(intake('b'));
  inserts[0]?.succeed();
  await first;
  jest.advanceTimersByTime(50);
  expect(ids()).toEqual([['a'], ['b']]);
});

it('the batcher sends the remainder of a cut batch without new arrivals', async () => {
  const { add, inserts, ids } = openBatcher({ maxRows: 10 });
  const first = add(intake('a', 6));
  void add(intake('b', 6));
  expect(ids()).toEqual([['a']]);
  inserts[0]?.succeed();
  await first;
  jest.advanceTimersByTime(50);
  expect(ids()).toEqual([['a'], ['b']]);
});

it('the batcher stores the jobs of an insert that fails one by one, and rejects those alone that fail again', async () => {
  const { add, inserts, ids } = openBatcher({ maxIntakes: 2 });
  const outcomes = Promise.allSettled([add(intake('a')), add(intake('b')), add(intake('c'))]);
  inserts[0]?.fail(new Error('a defect'));
  await jest.advanceTimersByTimeAsync(50);
  inserts[1]?.fail(new Error('a defect'));
  await jest.advanceTimersByTimeAsync(0);
  inserts[2]?.succeed();
  await jest.advanceTimersByTimeAsync(0);
  inserts[3]?.succeed();
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(ids()).toEqual([['a', 'b'], ['a'], ['b'], ['c']]);
});

it('the batcher waits for no other rows after flushNow', async () => {
  const { batcher, add, inserts, ids } = openBatcher();
  const first = add(intake('a'));
  batcher.flushNow();
  expect(ids()).toEqual([['a']]);
  void add(intake('b'));
  inserts[0]?.succeed();
  await first;
  await Promise.resolve();
  void add(intake('c'));
  expect(ids()).toEqual([['a'], ['b']]);
  inserts[1]?.succeed();
  await jest.advanceTimersByTimeAsync(0);
  expect(ids()).toEqual([['a'], ['b'], ['c']]);
});

it('the batcher refuses to stop while an insert is in flight, or anything is pending', async () => {
  const { batcher, add, inserts } = openBatcher({ maxIntakes: 1 });
  const first = add(intake('a'));
  expect(() => batcher.stop()).toThrow('the batcher cannot stop while 1 of its inserts are in flight');
  const second = add(intake('b'));
  const third = add(intake('c'));
  expect(() => batcher.stop()).toThrow('the batcher cannot stop while 1 of its intakes are pending');
  inserts[0]?.succeed();
  await first;
  inserts[1]?.succeed();
  await second;
  inserts[2]?.succeed();
  await third;
  await Promise.resolve();
  batcher.stop();
});

it('the batcher refuses to be stopped twice, and an intake after it has stopped', () => {
  const { batcher, add, inserts } = openBatcher();
  batcher.stop();
  expect(() => batcher.stop()).toThrow('the batcher has stopped');
  expect(() => add(intake('late'))).toThrow('the batcher has stopped');
  jest.advanceTimersByTime(10_000);
  expect(inserts).toEqual([]);
});
