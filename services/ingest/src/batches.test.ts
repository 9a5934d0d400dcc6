/** The batches of an insert, and the lanes of current and late events. */
import { afterEach, expect, it, jest } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import type { RejectedEvent } from '@meterline/warehouse';
import { EventRows, Names } from '@meterline/warehouse/events/event-rows';
import { pricedEvent } from '../../../test/harness/events.js';
import { Batcher, type BatcherOptions } from './batcher.js';
import type { PreparedJob } from './intake.js';
import { currentSince, Lanes, separateLate } from './lanes.js';

afterEach(() => {
  jest.useRealTimers();
});

const NOW = Date.UTC(2026, 5, 15, 12, 30);
const REJECTED: RejectedEvent = {
  ...{ receivedAt: 0, jobId: '', position: 0, accountId: '', message: '', payload: '' },
  reason: 'no_price',
};

/** A job with accepted events of these times, and rejected ones. */
function preparedJob(id: string, times: readonly number[], { receivedAt = NOW, rejected = 0 } = {}): PreparedJob {
  const events = times.map((timestamp) => pricedEvent({ timestamp }));
  return {
    job: { id, receivedAt },
    accepted: EventRows.of(events, new Names()),
    rejected: Array.from({ length: rejected }, () => REJECTED),
  };
}

type Limits = Partial<Omit<BatcherOptions, 'store'>>;

/** A batcher on fake timers, whose inserts end when the test ends them. */
function openBatcher(limits: Limits = {}) {
  jest.useFakeTimers();
  const inserts: { ids: string; succeed: () => void; fail: (error: Error) => void }[] = [];
  const batcher = new Batcher({
    ...{ maxRows: 100, flushMs: 50, maxSlices: 100, maxInFlight: 2, ...limits },
    store: (batch) =>
      new Promise((succeed, fail) => inserts.push({ ids: batch.map(({ job }) => job.id).join(' '), succeed, fail })),
  });
  const add = async (id: string, rows = 1) =>
    void (await Promise.all(batcher.addAll([{ prepared: preparedJob(id, [], { rejected: rows }) }])));
  const end = async (index: number, error?: Error) => {
    if (error) inserts[index]?.fail(error);
    else inserts[index]?.succeed();
    await jest.advanceTimersByTimeAsync(0);
  };
  return { batcher, add, end, sent: () => inserts.map(({ ids }) => ids) };
}

/** Steps: `a4` adds job a with four rejected rows, `50ms` lets time pass, `end0` ends the first insert, `hurry` is `flushNow`. */
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
  ['does not wait once maxSlices is reached', { maxSlices: 3 }, 'a b c', ['a b c']],
  ['waits while an insert is under way, however long that is', {}, 'a 50ms b 50ms c 10000ms', ['a']],
  ['sends what is overdue as soon as the insert before it ends', {}, 'a 50ms b 50ms c end0', ['a', 'b c']],
  ['sends a full batch beside another', { maxRows: 10 }, 'a10 b4 c6', ['a', 'b c']],
  ['sends no third batch beside two', { maxRows: 10 }, 'a10 b4 c6 d10 10000ms', ['a', 'b c']],
  ['sends the third when one of two ends', { maxRows: 10 }, 'a10 b4 c6 d10 end0', ['a', 'b c', 'd']],
  ['sends one at a time when one may be in flight', { maxSlices: 1, maxInFlight: 1 }, 'a b 10000ms', ['a']],
  ['collects up to maxRows beside another', { maxRows: 20 }, 'a20 b10 10000ms c9', ['a']],
  ['sends what it has collected when that ends', { maxRows: 20 }, 'a20 b10 c9 100ms end0', ['a', 'b c']],
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
  const { add, end } = openBatcher({ maxSlices: 1 });
  const durable: string[] = [];
  for (const id of ['a', 'b']) void add(id).then(() => durable.push(id));
  await end(1);
  expect(durable).toEqual(['b']);
  await end(0);
  expect(durable).toEqual(['b', 'a']);
});

it('the batcher stores the jobs of a failed insert one by one, and rejects only those that fail again', async () => {
  const { add, end, sent } = openBatcher({ maxSlices: 2 });
  const outcomes = Promise.allSettled([add('a'), add('b'), add('c')]);
  await end(0, new Error('a defect'));
  await end(1, new Error('a defect'));
  await end(2);
  await jest.advanceTimersByTimeAsync(50);
  await end(3);
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(sent()).toEqual(['a b', 'a', 'b', 'c']);
});

it('the batcher throws an error if it is stopped with an insert in flight or anything pending, is stopped twice, or is used after a stop', async () => {
  const { batcher, add, end, sent } = openBatcher({ maxSlices: 1 });
  for (const id of ['a', 'b', 'c']) void add(id);
  expect(() => batcher.stop()).toThrow('the batcher cannot stop while 1 of its slices are pending');
  await end(0);
  expect(() => batcher.stop()).toThrow('the batcher cannot stop while 2 of its inserts are in flight');
  await end(1);
  await end(2);
  batcher.stop();
  expect(() => batcher.stop()).toThrow('the batcher has stopped');
  await expect(add('late')).rejects.toThrow('the batcher has stopped');
  expect(sent()).toEqual(['a', 'b', 'c']);
});

/** A property of each accepted event of a job. */
function each({ accepted }: PreparedJob, property: 'positionOf' | 'timestampOf'): number[] {
  return Array.from({ length: accepted.length }, (_, row) => accepted[property](row));
}

/** The start of a month, counted from January 1970. */
const month = (n: number) => Date.UTC(1970, n);
const firstMonths = (count: number) => Array.from({ length: count }, (_, n) => month(n));

it.each([
  [0, Date.UTC(2026, 5, 15, 12)],
  [20, Date.UTC(2026, 5, 15, 12)],
  [31, Date.UTC(2026, 5, 15, 11)],
  [5_256_000, NOW - 31 * MS_PER_DAY],
])(
  'current events are those of hours that are not sealed %d minutes after their end, and of a month at most',
  (minutes, since) => {
    expect(currentSince(NOW, minutes * 60_000)).toBe(since);
  },
);

it('a job of current events is one slice', () => {
  const job = preparedJob('a', [NOW, NOW - 1], { rejected: 1 });
  expect(separateLate(job, NOW - 1)).toEqual({ current: [{ prepared: job }], late: [] });
});

it('a job with late events has a slice for each of their months, and all its rows once', () => {
  const job = preparedJob('a', [NOW, month(0), month(1), month(0) + 5, NOW], { rejected: 2 });
  const { current, late } = separateLate(job, NOW);
  const rows = (slices: typeof late) => slices.map((slice) => each(slice.prepared, 'positionOf'));
  expect([rows(current), rows(late)]).toEqual([[[0, 4]], [[1, 3], [2]]]);
  const slices = [...current, ...late];
  expect(slices.map((slice) => slice.prepared.rejected.length)).toEqual([2, 0, 0]);
  expect(new Set(slices.map((slice) => slice.prepared.job))).toEqual(new Set([job.job]));
});

it('rejected events of an old job go to the late lane', () => {
  const { current, late } = separateLate(preparedJob('a', [NOW], { receivedAt: month(3), rejected: 2 }), NOW);
  expect(current).toMatchObject([{ prepared: { accepted: { length: 1 }, rejected: [] } }]);
  expect(late).toMatchObject([{ prepared: { accepted: { length: 0 }, rejected: [{}, {}] } }]);
});

/** A store whose inserts end when the test says so. */
function openLanes() {
  const inserts: { months: Set<string>; rows: number; ids: Set<string>; end: (error?: Error) => void }[] = [];
  const lanes = new Lanes({
    ...{ maxRows: 100, flushMs: 1, maxSlices: 1, sealDelayMs: 0 },
    store: (batch) =>
      new Promise((resolve, reject) => {
        const times = batch.flatMap((job) => each(job, 'timestampOf'));
        inserts.push({
          months: new Set(times.map((time) => new Date(time).toISOString().slice(0, 7))),
          rows: times.length,
          ids: new Set(batch.map(({ job }) => job.id)),
          end: (error) => (error ? reject(error) : resolve()),
        });
      }),
  });
  /** Ends an insert, and waits until every promise that can settle has. */
  const end = async (index: number, error?: Error) => {
    inserts[index]?.end(error);
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const endAll = async () => {
    for (let index = 0; index < inserts.length; index += 1) await end(index);
  };
  return { lanes, inserts, end, endAll, add: (job: PreparedJob) => lanes.add(lanes.split(job, NOW)) };
}

it('the lanes store a current event while an insert of late events is running', async () => {
  const { inserts, add, end, endAll } = openLanes();
  const late = add(preparedJob('late', firstMonths(100)));
  const current = add(preparedJob('current', [NOW]));
  expect(inserts.map(({ ids }) => [...ids])).toEqual([['late'], ['current']]);
  await end(1);
  await current;
  await endAll();
  await late;
});

it('the lanes bound the months of an insert of late events, and store each event once before the job is done', async () => {
  const { inserts, add, endAll } = openLanes();
  let endedBefore = 0;
  const late = add(preparedJob('late', [...firstMonths(100), NOW])).then(() => {
    endedBefore = inserts.length;
  });
  await endAll();
  await late;
  expect(endedBefore).toBe(inserts.length);
  expect(Math.max(...inserts.map(({ months }) => months.size))).toBe(12);
  expect(inserts.reduce((sum, { rows }) => sum + rows, 0)).toBe(101);
});

it('the lanes alternate between late jobs: a job of a single month waits only for the running insert', async () => {
  const { inserts, add, end, endAll } = openLanes();
  const long = add(preparedJob('long', firstMonths(600)));
  const short = add(preparedJob('short', [month(300)]));
  await end(0);
  expect(inserts[1]?.ids).toEqual(new Set(['long', 'short']));
  await end(1);
  await short;
  // A job that comes later has its turns beside, not before, the jobs that are left.
  const next = add(preparedJob('next', firstMonths(600)));
  await end(2);
  expect(inserts[3]?.ids).toEqual(new Set(['long', 'next']));
  await endAll();
  await Promise.all([long, next]);
});

it('the lanes reject a job only after all its inserts have ended', async () => {
  const { add, end, lanes } = openLanes();
  let outcome: unknown;
  const late = add(preparedJob('late', [month(0), NOW])).catch((error: unknown) => {
    outcome = error;
  });
  // The first insert fails, and again when it is tried alone.
  await end(0, new Error('a defect'));
  await end(2, new Error('a defect'));
  expect(outcome).toBeUndefined();
  await end(1);
  await late;
  expect(outcome).toMatchObject({ message: 'a defect' });
  lanes.stop();
});
