/** Random histories: the events that producers send for two accounts, in jobs, in two rounds. */
import fc from 'fast-check';
import { drawnEvent, type Event, name, toEvent } from '../harness/event-arbitraries.js';
import { ADDED_DIMENSIONS, ALL_DIMENSIONS } from './event-rules.js';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

/** Moments around which the events of a history lie: edges of calendars, of years and of the supported time. */
export const ANCHORS = [
  '1970-01-01T00:00:00Z', // the first instant, a Thursday: its week begins before 1970
  '2000-02-29T00:00:00Z', // a leap day in a year divisible by 100
  '2020-12-28T00:00:00Z', // Monday of week 53
  '2021-01-04T00:00:00Z', // Monday of week 1, after three January days of week 53
  '2024-02-29T12:00:00Z', // noon of a leap day
  '2024-03-01T00:00:00Z',
  '2024-12-30T00:00:00Z', // Monday of week 1 of the next year
  '2025-01-01T00:00:00Z',
  '2025-03-09T07:00:00Z', // New York leaves standard time
  '2025-11-02T06:00:00Z', // and returns to it
  '2025-12-31T23:00:00Z', // the last hour of a year
].map((text) => Date.parse(text));

/** Milliseconds from an anchor to an event or an end of a window; mostly at an edge or next to it. */
export const distance = fc
  .record({
    days: fc.oneof(
      { weight: 20, arbitrary: fc.constant(0) },
      { weight: 6, arbitrary: fc.constantFrom(-1, 1, -3, 4, 7) },
      { weight: 1, arbitrary: fc.constantFrom(-366, -90, -31, 31, 90, 365, 366) },
    ),
    hours: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: -24, max: 24 })),
    milliseconds: fc.oneof(
      { weight: 2, arbitrary: fc.constantFrom(0, -1, 1) },
      { weight: 1, arbitrary: fc.constantFrom(30 * 60 * SECOND, 30 * 60 * SECOND + 500, HOUR - 1) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: HOUR - 1 }) },
    ),
  })
  .map(({ days, hours, milliseconds }) => days * DAY + hours * HOUR + milliseconds);

/** An event without its account. */
export type Sketch = Event;

interface Sending {
  readonly event: Sketch;
  /** 1: of the second account. */
  readonly account: number;
  /** The jobs that contain it, each 0 to {@link LAST_JOB}; a job may contain it twice. */
  readonly jobs: readonly number[];
}

export interface History {
  readonly anchor: number;
  readonly names: readonly string[];
  readonly sendings: readonly Sending[];
  /** Whether the first account has prices of its own. */
  readonly ownPrices: boolean;
  /** The end of the names of the accounts, which are part of a path. */
  readonly nameSuffix: string;
}

const JOBS_PER_ROUND = 3;
const LAST_JOB = 2 * JOBS_PER_ROUND - 1;

/** The jobs of the first round and those of the second, each a list of events. */
export function roundsOf(
  { sendings }: History,
  accountIds: readonly [string, string],
): Record<'early' | 'late', Sketch[][]> {
  const contents = (job: number) =>
    sendings.flatMap(({ event, account, jobs }) =>
      jobs.filter((each) => each === job).map(() => ({ accountId: accountIds[account], ...event })),
    );
  const jobs = Array.from({ length: LAST_JOB + 1 }, (_, job) => contents(job));
  const sent = (round: Sketch[][]) => round.filter((events) => events.length > 0);
  return { early: sent(jobs.slice(0, JOBS_PER_ROUND)), late: sent(jobs.slice(JOBS_PER_ROUND)) };
}

const OPTIONS = { ids: 6, distance, oddOneIn: 14, voidOneIn: 7 };
/** The added dimensions often, because they are few. */
const added = drawnEvent({ ...OPTIONS, dimensions: ADDED_DIMENSIONS });
const anyDimension = fc.oneof(drawnEvent({ ...OPTIONS, dimensions: ALL_DIMENSIONS }), added);
/** A third of the histories have the dimensions that the catalog file adds. */
const dimensionsOfHistory = [drawnEvent(OPTIONS), drawnEvent(OPTIONS), anyDimension];
const account = fc.constantFrom(0, 0, 0, 1);
const jobs = fc.array(fc.nat(LAST_JOB), { minLength: 1, maxLength: 3 });

export const history: fc.Arbitrary<History> = fc.constantFrom(...dimensionsOfHistory).chain(historyOf);

function historyOf(drawn: (typeof dimensionsOfHistory)[number]): fc.Arbitrary<History> {
  return fc
    .record({
      anchor: fc.constantFrom(...ANCHORS),
      names: fc.array(name, { minLength: 1, maxLength: 5 }),
      allDrawn: fc.array(fc.record({ drawn, account, jobs }), { minLength: 1, maxLength: 25, size: 'max' }),
      ownPrices: fc.constantFrom(false, false, false, true),
      nameSuffix: fc.constantFrom('', ' ', '/', '?a=b', '#', '%2F', '\u00e9', '\u{1f600}'),
    })
    .map(({ allDrawn, ...history }) => ({
      ...history,
      sendings: allDrawn.map(({ drawn, ...sending }) => ({
        event: toEvent(drawn, history.names, history.anchor),
        ...sending,
      })),
    }));
}
