import { expect, it } from '@jest/globals';
import { EventRows, Names, type RejectedEvent } from '@meterline/warehouse';
import { pricedEvent } from '../../../test/harness/events.js';
import type { Intake } from './intake.js';
import { currentSince, Lanes, splitByAge } from './lanes.js';

const NOW = Date.UTC(2026, 5, 15, 12, 30);
const HOUR_MS = 3_600_000;

function refused(position: number): RejectedEvent {
  return { receivedAt: 0, jobId: '', position, accountId: '', reason: 'no_price', message: '', payload: '' };
}

function intake(id: string, times: readonly number[], receivedAt = NOW, refusedEvents = 0): Intake {
  return {
    job: { id, receivedAt },
    accepted: EventRows.of(
      times.map((timestamp) => pricedEvent({ timestamp })),
      new Names(),
    ),
    rejected: Array.from({ length: refusedEvents }, (_, n) => refused(times.length + n)),
  };
}

/** Of each accepted event of a job. */
function each({ accepted }: Intake, property: 'positionOf' | 'timestampOf'): number[] {
  return Array.from({ length: accepted.length }, (_, row) => accepted[property](row));
}

/** The start of a month, counted from January 1970. */
const month = (n: number) => Date.UTC(1970, n);

/** Jobs of one event in each of so many months from the first on. */
const months = (first: number, count: number) => Array.from({ length: count }, (_, n) => month(first + n));

it.each([
  [0, Date.UTC(2026, 5, 15, 12)],
  [20 * 60_000, Date.UTC(2026, 5, 15, 12)],
  [31 * 60_000, Date.UTC(2026, 5, 15, 11)],
  [10 * 365 * 24 * HOUR_MS, NOW - 31 * 24 * HOUR_MS],
])(
  'current events are those of hours that are not sealed %d ms after their end, and of a month at most',
  (delay, since) => {
    expect(currentSince(NOW, delay)).toBe(since);
  },
);

it('a job of current events is one slice', () => {
  const job = intake('a', [NOW, NOW - 1], NOW, 1);
  expect(splitByAge(job, NOW - 1)).toEqual({ current: [{ intake: job }], late: [] });
});

it('a job with late events has a slice for each of their months, and all its rows once', () => {
  const job = intake('a', [NOW, month(0), month(1), month(0) + 5, NOW], NOW, 2);
  const { current, late } = splitByAge(job, NOW);
  const rows = (slices: typeof late) => slices.map(({ intake }) => each(intake, 'positionOf'));
  expect([rows(current), rows(late)]).toEqual([[[0, 4]], [[1, 3], [2]]]);
  expect(current.map((slice) => slice.intake.rejected.length)).toEqual([2]);
  expect(late.map((slice) => slice.intake.rejected.length)).toEqual([0, 0]);
  expect([...current, ...late].every((slice) => slice.intake.job === job.job)).toBe(true);
});

it('a job that says that it is old has its refused events in the late lane', () => {
  const { current, late } = splitByAge(intake('a', [NOW], month(3), 2), NOW);
  expect(current).toMatchObject([{ intake: { accepted: { length: 1 }, rejected: [] } }]);
  expect(late).toMatchObject([{ intake: { accepted: { length: 0 }, rejected: [{}, {}] } }]);
});

/** A store whose inserts end when the test says so. */
function openLanes() {
  const inserts: { months: number; rows: number; ids: string[]; end: (error?: Error) => void }[] = [];
  const lanes = new Lanes({
    maxRows: 100,
    flushMs: 1,
    maxIntakes: 1,
    sealDelayMs: 0,
    store: (batch) =>
      new Promise((resolve, reject) => {
        const times = batch.flatMap((job) => each(job, 'timestampOf'));
        inserts.push({
          months: new Set(times.map((time) => new Date(time).toISOString().slice(0, 7))).size,
          rows: times.length,
          ids: [...new Set(batch.map(({ job }) => job.id))],
          end: (error) => (error ? reject(error) : resolve()),
        });
      }),
  });
  const add = (job: Intake) => lanes.add(lanes.split(job, NOW));
  return { lanes, inserts, add };
}

/** Until every promise that can settle has. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

it('the lanes store a current event while an insert of late ones is under way', async () => {
  const { inserts, add } = openLanes();
  const late = add(intake('late', months(0, 100)));
  const current = add(intake('current', [NOW]));
  expect(inserts.map(({ ids }) => ids)).toEqual([['late'], ['current']]);
  inserts[1]?.end();
  await current;
  for (let n = 0; n < inserts.length; n += 1) {
    inserts[n]?.end();
    await settled();
  }
  await late;
});

it('the lanes bound the months of an insert of late events, and store each event once before the job is done', async () => {
  const { inserts, add } = openLanes();
  let done = false;
  const late = add(intake('late', [...months(0, 100), NOW])).then(() => {
    done = true;
  });
  for (let n = 0; n < inserts.length; n += 1) {
    expect(done).toBe(false);
    inserts[n]?.end();
    await settled();
  }
  await late;
  expect(Math.max(...inserts.map((insert) => insert.months))).toBe(12);
  expect(inserts.reduce((rows, insert) => rows + insert.rows, 0)).toBe(101);
});

it('the lanes let late jobs take turns: one of a single month waits for the insert under way, and no longer', async () => {
  const { inserts, add } = openLanes();
  const long = [add(intake('a', months(0, 600))), add(intake('b', months(0, 600)))];
  const short = add(intake('short', [month(300)]));
  inserts[0]?.end();
  await settled();
  expect(inserts[1]?.ids).toContain('short');
  inserts[1]?.end();
  await short;
  for (let n = 2; n < inserts.length; n += 1) {
    inserts[n]?.end();
    await settled();
  }
  await Promise.all(long);
});

it('the lanes reject a job when nothing of it is under way any more', async () => {
  const { inserts, add, lanes } = openLanes();
  let outcome: unknown;
  const late = add(intake('late', [month(0), NOW])).catch((error: unknown) => {
    outcome = error;
  });
  // The first insert fails, and again when it is tried alone.
  inserts[0]?.end(new Error('a defect'));
  await settled();
  inserts[2]?.end(new Error('a defect'));
  await settled();
  expect(outcome).toBeUndefined();
  inserts[1]?.end();
  await late;
  expect(outcome).toMatchObject({ message: 'a defect' });
  lanes.stop();
});
