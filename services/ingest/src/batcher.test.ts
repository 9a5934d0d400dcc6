import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { RejectedEvent } from '@meterline/warehouse';
import { EventRows, Names } from '@meterline/warehouse/events/event-rows';
import { Batcher, type BatcherOptions } from './batcher.js';
import type { Intake } from './intake.js';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const REJECTED: RejectedEvent = {
  ...{ receivedAt: 0, jobId: '', position: 0, accountId: '', message: '', payload: '' },
  reason: 'invalid_usage',
};

/** A job of so many rows; rejected ones count like accepted ones. */
function intake(id: string, rows: number): Intake {
  const rejected = Array.from({ length: rows }, () => REJECTED);
  return { job: { id, receivedAt: 0 }, accepted: new EventRows(0, new Names()), rejected };
}

type Limits = Partial<Omit<BatcherOptions, 'store'>>;

/** A batcher whose inserts end when the test says so. */
function openBatcher(limits: Limits = {}) {
  const inserts: { ids: string; succeed: () => void; fail: (error: Error) => void }[] = [];
  const batcher = new Batcher({
    ...{ maxRows: 100, enoughRows: 100, flushMs: 50, maxIntakes: 100, maxInFlight: 2, ...limits },
    store: (batch) =>
      new Promise((succeed, fail) => inserts.push({ ids: batch.map(({ job }) => job.id).join(' '), succeed, fail })),
  });
  const add = async (id: string, rows = 1) => void (await Promise.all(batcher.addAll([{ intake: intake(id, rows) }])));
  const end = async (index: number, error?: Error) => {
    if (error) inserts[index]?.fail(error);
    else inserts[index]?.succeed();
    await jest.advanceTimersByTimeAsync(0);
  };
  return { batcher, add, end, sent: () => inserts.map(({ ids }) => ids) };
}

/** Steps: `a4` adds job a of four rows, `50ms` lets time pass, `end0` ends the first insert, `hurry` is `flushNow`. */
async function play(limits: Limits, steps: string): Promise<string[]> {
  const { batcher, add, end, sent } = openBatcher(limits);
  for (const step of steps.split(' ')) {
    const [, word = '', number] = /^(\d*[a-z]+)(\d*)$/.exec(step) ?? [];
    if (word === 'hurry') batcher.flushNow();
    else if (word === 'end') await end(Number(number));
    else if (word.endsWith('ms')) await jest.advanceTimersByTimeAsync(Number.parseInt(word, 10));
    else void add(word, Number(number || 1));
  }
  return sent();
}

it.each<[does: string, limits: Limits, steps: string, inserts: readonly string[]]>([
  ['waits for others until flushMs are over', {}, 'a 49ms b', []],
  ['inserts together what arrives within flushMs, in the order of arrival', {}, 'a 49ms b 1ms', ['a b']],
  ['waits below maxRows', { maxRows: 10 }, 'a4 b5', []],
  ['does not wait once maxRows is reached, and never cuts a job in two', { maxRows: 10 }, 'a4 b5 c3', ['a b']],
  ['inserts a job that has more rows than maxRows', { maxRows: 10 }, 'a25', ['a']],
  ['does not wait once maxIntakes is reached', { maxIntakes: 3 }, 'a b c', ['a b c']],
  ['waits while an insert is under way, however long that is', {}, 'a 50ms b 50ms c 10000ms', ['a']],
  ['sends what is overdue as soon as the insert before it ends', {}, 'a 50ms b 50ms c end0', ['a', 'b c']],
  ['sends a full batch beside another', { maxRows: 10 }, 'a10 b4 c6', ['a', 'b c']],
  ['sends no third batch beside two', { maxRows: 10 }, 'a10 b4 c6 d10 10000ms', ['a', 'b c']],
  ['sends the third when one of two ends', { maxRows: 10 }, 'a10 b4 c6 d10 end0', ['a', 'b c', 'd']],
  ['sends one at a time when one may be in flight', { maxIntakes: 1, maxInFlight: 1 }, 'a b 10000ms', ['a']],
  ['does not wait once there are enough rows and nothing is in flight', { enoughRows: 5 }, 'a5', ['a']],
  ['collects up to maxRows beside another', { maxRows: 20, enoughRows: 5 }, 'a5 b10 10000ms c9', ['a']],
  ['sends what it has collected when that ends', { maxRows: 20, enoughRows: 5 }, 'a5 b10 c9 end0', ['a', 'b c']],
  ['waits four times as long as the insert before took', {}, 'a 50ms 30ms end0 b 119ms', ['a']],
  ['waits no longer than four times as long', {}, 'a 50ms 30ms end0 b 120ms', ['a', 'b']],
  ['waits flushMs at least', {}, 'a 50ms 1ms end0 b 49ms', ['a']],
  ['waits five times flushMs', {}, 'a 50ms 10000ms end0 b 249ms', ['a']],
  ['waits five times flushMs at most', {}, 'a 50ms 10000ms end0 b 250ms', ['a', 'b']],
  ['leaves nothing behind that arrives during an insert', {}, 'a 50ms b end0 50ms', ['a', 'b']],
  ['sends the remainder of a cut batch without new arrivals', { maxRows: 10 }, 'a6 b6 end0 50ms', ['a', 'b']],
  ['waits for no other rows after flushNow', {}, 'a hurry b end0 c end1', ['a', 'b', 'c']],
])('the batcher %s', async (_, limits, steps, inserts) => {
  expect(await play(limits, steps)).toEqual(inserts);
});

it('the batcher resolves each job with its own insert, in whatever order they end', async () => {
  const { add, end } = openBatcher({ maxIntakes: 1 });
  const durable: string[] = [];
  for (const id of ['a', 'b']) void add(id).then(() => durable.push(id));
  await end(1);
  expect(durable).toEqual(['b']);
  await end(0);
  expect(durable).toEqual(['b', 'a']);
});

it('the batcher stores the jobs of an insert that fails one by one, and rejects those alone that fail again', async () => {
  const { add, end, sent } = openBatcher({ maxIntakes: 2 });
  const outcomes = Promise.allSettled([add('a'), add('b'), add('c')]);
  await end(0, new Error('a defect'));
  await end(1, new Error('a defect'));
  await end(2);
  await jest.advanceTimersByTimeAsync(50);
  await end(3);
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(sent()).toEqual(['a b', 'a', 'b', 'c']);
});

it('the batcher refuses to stop while an insert is in flight or anything is pending, to stop twice, and what comes after', async () => {
  const { batcher, add, end, sent } = openBatcher({ maxIntakes: 1 });
  for (const id of ['a', 'b', 'c']) void add(id);
  expect(() => batcher.stop()).toThrow('the batcher cannot stop while 1 of its intakes are pending');
  await end(0);
  expect(() => batcher.stop()).toThrow('the batcher cannot stop while 2 of its inserts are in flight');
  await end(1);
  await end(2);
  batcher.stop();
  expect(() => batcher.stop()).toThrow('the batcher has stopped');
  await expect(add('late')).rejects.toThrow('the batcher has stopped');
  expect(sent()).toEqual(['a', 'b', 'c']);
});
