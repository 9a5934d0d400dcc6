import { expect, it } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import type { RejectedEvent } from '@meterline/warehouse';
import { EventRows, Names } from '@meterline/warehouse/events/event-rows';
import { pricedEvent } from '../../../test/harness/events.js';
import type { Intake } from './intake.js';
import { currentSince, Lanes, splitByAge } from './lanes.js';

const NOW = Date.UTC(2026, 5, 15, 12, 30);
const REJECTED: RejectedEvent = {
  ...{ receivedAt: 0, jobId: '', position: 0, accountId: '', message: '', payload: '' },
  reason: 'no_price',
};

function intake(id: string, times: readonly number[], { receivedAt = NOW, rejected = 0 } = {}): Intake {
  const events = times.map((timestamp) => pricedEvent({ timestamp }));
  return {
    job: { id, receivedAt },
    accepted: EventRows.of(events, new Names()),
    rejected: Array.from({ length: rejected }, () => REJECTED),
  };
}

/** A property of each accepted event of a job. */
function each({ accepted }: Intake, property: 'positionOf' | 'timestampOf'): number[] {
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
  const job = intake('a', [NOW, NOW - 1], { rejected: 1 });
  expect(splitByAge(job, NOW - 1)).toEqual({ current: [{ intake: job }], late: [] });
});

it('a job with late events has a slice for each of their months, and all its rows once', () => {
  const job = intake('a', [NOW, month(0), month(1), month(0) + 5, NOW], { rejected: 2 });
  const { current, late } = splitByAge(job, NOW);
  const rows = (slices: typeof late) => slices.map((slice) => each(slice.intake, 'positionOf'));
  expect([rows(current), rows(late)]).toEqual([[[0, 4]], [[1, 3], [2]]]);
  const slices = [...current, ...late];
  expect(slices.map((slice) => slice.intake.rejected.length)).toEqual([2, 0, 0]);
  expect(new Set(slices.map((slice) => slice.intake.job))).toEqual(new Set([job.job]));
});

it('a job that says that it is old has its rejected events in the late lane', () => {
  const { current, late } = splitByAge(intake('a', [NOW], { receivedAt: month(3), rejected: 2 }), NOW);
  expect(current).toMatchObject([{ intake: { accepted: { length: 1 }, rejected: [] } }]);
  expect(late).toMatchObject([{ intake: { accepted: { length: 0 }, rejected: [{}, {}] } }]);
});

/** A store whose inserts end when the test says so. */
function openLanes() {
  const inserts: { months: Set<string>; rows: number; ids: Set<string>; end: (error?: Error) => void }[] = [];
  const lanes = new Lanes({
    ...{ maxRows: 100, flushMs: 1, maxIntakes: 1, sealDelayMs: 0 },
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
  return { lanes, inserts, end, endAll, add: (job: Intake) => lanes.add(lanes.split(job, NOW)) };
}

it('the lanes store a current event while an insert of late ones is under way', async () => {
  const { inserts, add, end, endAll } = openLanes();
  const late = add(intake('late', firstMonths(100)));
  const current = add(intake('current', [NOW]));
  expect(inserts.map(({ ids }) => [...ids])).toEqual([['late'], ['current']]);
  await end(1);
  await current;
  await endAll();
  await late;
});

it('the lanes bound the months of an insert of late events, and store each event once before the job is done', async () => {
  const { inserts, add, endAll } = openLanes();
  let endedBefore = 0;
  const late = add(intake('late', [...firstMonths(100), NOW])).then(() => {
    endedBefore = inserts.length;
  });
  await endAll();
  await late;
  expect(endedBefore).toBe(inserts.length);
  expect(Math.max(...inserts.map(({ months }) => months.size))).toBe(12);
  expect(inserts.reduce((sum, { rows }) => sum + rows, 0)).toBe(101);
});

it('the lanes let late jobs take turns: one of a single month waits for the insert under way, and no longer', async () => {
  const { inserts, add, end, endAll } = openLanes();
  const long = add(intake('long', firstMonths(600)));
  const short = add(intake('short', [month(300)]));
  await end(0);
  expect(inserts[1]?.ids).toEqual(new Set(['long', 'short']));
  await end(1);
  await short;
  // A job that comes later has its turns beside, not before, the jobs that are left.
  const next = add(intake('next', firstMonths(600)));
  await end(2);
  expect(inserts[3]?.ids).toEqual(new Set(['long', 'next']));
  await endAll();
  await Promise.all([long, next]);
});

it('the lanes reject a job when nothing of it is under way any more', async () => {
  const { add, end, lanes } = openLanes();
  let outcome: unknown;
  const late = add(intake('late', [month(0), NOW])).catch((error: unknown) => {
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
