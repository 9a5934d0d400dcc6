/** The plan of a metrics query, and a golden statement of each shape. The oracle checks their results. */

import { readFileSync } from 'node:fs';
import { TupleParam } from '@clickhouse/client';
import { expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR, RESOLUTIONS, type Resolution, type Window } from '@meterline/catalog';
import fc from 'fast-check';
import type { Statement } from '../clickhouse/connection.js';
import { windowsOf } from '../rollups/dirty-hours.js';
import { GRAIN_MS, type RollupKey } from '../rollups/rollup-rows.js';
import type { DirtyHours, ReadableRollups } from '../rollups/watermarks.js';
import { planSegments, type Segment } from './plan.js';
import { storeMetricsStatement } from './read.js';
import { hasOnePage, type MetricsQuery, metricsStatement } from './statement.js';

const START = Date.UTC(2025, 9, 1);

const instant = fc.oneof(
  fc.integer({ min: 0, max: 40 * MS_PER_DAY }),
  fc.integer({ min: 0, max: 40 }).map((days) => days * MS_PER_DAY),
  fc.integer({ min: 0, max: 960 }).map((hours) => hours * MS_PER_HOUR),
);
const window = fc
  .tuple(instant, instant)
  .filter(([a, b]) => a !== b)
  .map(([a, b]) => ({ startTime: START + Math.min(a, b), endTime: START + Math.max(a, b) }));
const hours = (most: number) =>
  fc
    .uniqueArray(fc.integer({ min: -30, max: 1_000 }), { maxLength: most, size: 'max' })
    .map((numbers) => numbers.sort((a, b) => a - b).map((hour) => START + hour * MS_PER_HOUR));
const someHours = fc.oneof(hours(3), hours(60), hours(900));
/** Dirty hours of two accounts, or windows that cover them. */
const someDirtyHours = fc.oneof(
  someHours.map((hours) => ({ windows: windowsOf([...new Set(hours)].sort((a, b) => a - b)) })),
  fc
    .tuple(someHours, someHours)
    .map(([ofA, ofB]) => [
      ...ofA.map((bucket) => ({ accountId: 'a', bucket })),
      ...ofB.map((bucket) => ({ accountId: 'b', bucket })),
    ])
    .map((dirty) => dirty.sort((one, other) => one.bucket - other.bucket)),
);
const ACCOUNTS = ['a', 'b', 'c'];
const sealed = fc
  .tuple(fc.integer({ min: -24, max: 1_000 }), fc.integer({ min: -1, max: 42 }))
  .map(([hours, days]) => ({ hourly: START + hours * MS_PER_HOUR, daily: START + days * MS_PER_DAY }));
const fresh = sealed.map((until) => ({ ...until, dirtyHours: [] }));
const rollups = fc.tuple(sealed, someDirtyHours).map(([until, dirtyHours]) => ({ ...until, dirtyHours }));

interface Planned {
  readonly segments: readonly Segment[];
  readonly requested: Window;
  readonly resolution: Resolution;
  readonly known: ReadableRollups;
}

/** Checks the plan of any query. */
function checkPlans(rollups: fc.Arbitrary<ReadableRollups>, check: (planned: Planned) => void): void {
  fc.assert(
    fc.property(window, fc.constantFrom(...RESOLUTIONS), rollups, (requested, resolution, known) =>
      check({ segments: planSegments(requested, resolution, known), requested, resolution, known }),
    ),
  );
}

/** The parts of hours that a segment answers for of an account, as "from to". */
function coveredBy({ source, from, to, only, except, days }: Segment, account = 'a'): string[] {
  const names = (buckets: readonly RollupKey[], start: number) =>
    buckets.some(({ accountId, bucket }) => accountId === account && bucket === start);
  const parts: string[] = [];
  for (let hour = Math.floor(from / MS_PER_HOUR) * MS_PER_HOUR; hour < to; hour += MS_PER_HOUR) {
    const bucket = source === 'daily' ? Math.floor(hour / MS_PER_DAY) * MS_PER_DAY : hour;
    const isOfOtherDay = days && !names(days, bucket - (bucket % MS_PER_DAY));
    const isLeftOut = (except && names(except, bucket)) || (only && !names(only, bucket)) || isOfOtherDay;
    if (!isLeftOut) parts.push(`${Math.max(from, hour)} ${Math.min(to, hour + MS_PER_HOUR)}`);
  }
  return parts;
}

it('a plan covers the window exactly, in ascending order, without overlap', () => {
  checkPlans(fresh, ({ segments, requested }) => {
    const ends = segments.map(({ to }) => to);
    expect(segments.map(({ from }) => from)).toEqual([requested.startTime, ...ends.slice(0, -1)]);
    expect(ends.at(-1)).toBe(requested.endTime);
    for (const { from, to } of segments) expect(from).toBeLessThan(to);
  });
});

it('a plan covers each hour of the window once for every account, however many are dirty, and no segment is empty', () => {
  checkPlans(rollups, ({ segments, requested }) => {
    const whole = coveredBy({ source: 'events', from: requested.startTime, to: requested.endTime }).sort();
    for (const account of ACCOUNTS) {
      expect(segments.flatMap((segment) => coveredBy(segment, account)).sort()).toEqual(whole);
    }
    for (const segment of segments) {
      expect(ACCOUNTS.flatMap((account) => coveredBy(segment, account))).not.toEqual([]);
    }
  });
});

it('a plan reads whole, sealed buckets from rollup rows, no dirty hour and no day that has one, and never days where the result has hours', () => {
  checkPlans(rollups, ({ segments, resolution, known }) => {
    for (const segment of segments) {
      const { source, from, to } = segment;
      if (source === 'events') continue;
      expect([from % GRAIN_MS[source], to % GRAIN_MS[source]]).toEqual([0, 0]);
      expect(to).toBeLessThanOrEqual(known[source]);
      if (resolution === 'hourly') expect(source).toBe('hourly');
      for (const account of ACCOUNTS) {
        const covered = new Set(coveredBy(segment, account).map((part) => Number(part.split(' ')[0])));
        expect([...covered].filter((hour) => isDirty(known.dirtyHours, account, hour))).toEqual([]);
      }
    }
  });
});

function isDirty(dirtyHours: DirtyHours, account: string, hour: number): boolean {
  if ('windows' in dirtyHours) {
    return dirtyHours.windows.some(({ startTime, endTime }) => hour >= startTime && hour < endTime);
  }
  return dirtyHours.some(({ accountId, bucket }) => accountId === account && bucket === hour);
}

it('a plan reads no events of a whole sealed hour, and no hours of a whole sealed day', () => {
  const holds = ({ from, to }: Segment, length: number, until: number) =>
    Math.ceil(from / length) * length + length <= Math.min(to, until);
  checkPlans(fresh, ({ segments, resolution, known }) => {
    for (const segment of segments) {
      if (segment.source === 'events') expect(holds(segment, MS_PER_HOUR, known.hourly)).toBe(false);
      if (segment.source === 'hourly' && resolution !== 'hourly') {
        expect(holds(segment, MS_PER_DAY, known.daily)).toBe(false);
      }
    }
  });
});

it('a plan reads the windows of dirty hours from the events if the hours are too many to list', () => {
  const requested = { startTime: START, endTime: START + 30 * MS_PER_DAY };
  const [dirtyFrom, dirtyTo] = [START + 7 * MS_PER_DAY, START + 10 * MS_PER_DAY + MS_PER_HOUR];
  const planned = (...windows: Window[]) =>
    planSegments(requested, 'monthly', {
      hourly: requested.endTime,
      daily: requested.endTime,
      dirtyHours: { windows },
    });
  const later = { startTime: START + 20 * MS_PER_DAY, endTime: START + 21 * MS_PER_DAY };
  expect(planned({ startTime: dirtyFrom, endTime: dirtyTo }, later)).toEqual([
    { source: 'daily', from: START, to: dirtyFrom },
    { source: 'events', from: dirtyFrom, to: dirtyTo },
    { source: 'hourly', from: dirtyTo, to: START + 11 * MS_PER_DAY },
    { source: 'daily', from: START + 11 * MS_PER_DAY, to: later.startTime },
    { source: 'events', from: later.startTime, to: later.endTime },
    { source: 'daily', from: later.endTime, to: requested.endTime },
  ]);
  const all = [{ source: 'events', from: requested.startTime, to: requested.endTime }];
  const wider = { startTime: START - MS_PER_HOUR, endTime: requested.endTime + MS_PER_HOUR };
  expect(planned(wider)).toEqual(all);
});

it('at most ten windows cover dirty hours, and the largest gaps separate them', () => {
  const windows = (...hours: number[]) =>
    windowsOf(hours.map((hour) => hour * MS_PER_HOUR)).map(({ startTime, endTime }) => [
      startTime / MS_PER_HOUR,
      endTime / MS_PER_HOUR,
    ]);
  expect(windows()).toEqual([]);
  expect(windows(5, 6, 480)).toEqual([
    [5, 7],
    [480, 481],
  ]);
  const many = Array.from({ length: 12 }, (_, n) => n * n);
  expect(windows(...many).slice(0, 2)).toEqual([
    [0, 5],
    [9, 10],
  ]);
  expect(windows(...many)).toHaveLength(10);
});

const ONE_DAY = { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 2) };
const TWO_DAYS = { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 3) };
const SEALED = { hourly: Date.UTC(2025, 9, 4, 12), daily: Date.UTC(2025, 9, 4), dirtyHours: [] };
const QUERY: MetricsQuery = {
  accounts: ['acme'],
  window: ONE_DAY,
  filters: {},
  resolution: 'daily',
  groupBy: [],
  limit: 100,
};

/** When events end, in seconds. */
const LAST = Date.UTC(2106, 0) / 1000;

/** In October 2025, in seconds. */
function october(day: number, hour = 0): number {
  return Date.UTC(2025, 9, day, hour) / 1000;
}

/** The dirty hours of two accounts, and their days, as parameters. */
const DIRTY = [
  { accountId: "it's", bucket: Date.UTC(2025, 9, 2, 3) },
  { accountId: 'acme', bucket: Date.UTC(2025, 9, 2, 23) },
];
const DIRTY_HOURS = [new TupleParam(["it's", '2025-10-02 03:00:00']), new TupleParam(['acme', '2025-10-02 23:00:00'])];
const DIRTY_DAYS = [new TupleParam(["it's", '2025-10-02 00:00:00']), new TupleParam(['acme', '2025-10-02 00:00:00'])];

it.each<[string, string, Partial<MetricsQuery>, Statement['query_params'], Statement['settings']]>([
  [
    'reads events of one bucket that answer alone without a subquery, and takes their sum for the series',
    'events-of-one-bucket',
    { filters: { workspace: ['production'] }, groupBy: ['resource_uuid'], asOf: '7' },
    { account_id: 'acme', workspace: 'production', from_0: october(1), to_0: october(2), as_of: '7' },
    {},
  ],
  [
    'reads summaries of one account that answer alone without a subquery, in one thread, and nothing for later pages',
    'rollups',
    { window: TWO_DAYS, rollups: SEALED },
    { account_id: 'acme', from_0: october(1), to_0: october(3) },
    { max_threads: 1 },
  ],
  [
    'reads each part of the window where it is known, dirty hours from the events, and the others of their days from hours',
    'every-source',
    {
      accounts: ['acme', "it's"],
      window: { startTime: ONE_DAY.startTime, endTime: Date.UTC(2025, 9, 4, 12, 30) },
      groupBy: ['account', 'workspace'],
      excluded: { account: ['globex'] },
      rollups: { ...SEALED, dirtyHours: DIRTY },
    },
    {
      ...{ accounts: ['acme', "it's"], excluded_account: 'globex' },
      ...{ from_0: october(1), to_0: october(4), except_0: DIRTY_DAYS },
      ...{ from_1: october(4), to_1: october(4, 12) },
      ...{ from_2: Date.UTC(2025, 9, 4, 12), to_2: Date.UTC(2025, 9, 4, 12, 30) },
      ...{ from_3: october(2), to_3: october(3), days_3: DIRTY_DAYS, except_3: DIRTY_HOURS },
      ...{ from_4: october(2, 3), to_4: october(3), only_4: DIRTY_HOURS },
    },
    {},
  ],
])('the metrics statement %s', (_, name, changes, query_params, settings) => {
  expect(metricsStatement({ ...QUERY, ...changes })).toEqual({
    name: 'read_metrics',
    query: golden(name),
    query_params: { ...query_params, axis_start: october(1), limit: 100 },
    ...(settings?.max_threads && { settings }),
  });
});

it.each<[MetricsQuery['groupBy'], number, boolean]>([
  [[], 1, true],
  [['resource_type'], 6, true],
  [['resource_type'], 5, false],
  [['resource_type', 'billing_dimension'], 12, true],
  [['billing_dimension'], 11, false],
  [['workspace'], 100, false],
  [['account', 'billing_dimension'], 100, false],
])('a result by %j has one page of %i groups: %j', (groupBy, limit, isOnly) => {
  expect(hasOnePage({ groupBy, limit })).toBe(isOnly);
  expect(metricsStatement({ ...QUERY, groupBy, limit }).query.includes('digest')).toBe(!isOnly);
});

it('the statement that stores a ranking has every value as a parameter', () => {
  const statement = storeMetricsStatement({
    ...QUERY,
    window: TWO_DAYS,
    groupBy: ['resource_name', 'billing_dimension'],
    resolution: 'weekly',
    filters: { workspace: ["it's", 'b'], resource_type: ['agent'] },
    rollups: SEALED,
  });
  expect(statement).toEqual({
    name: 'store_metrics',
    query: golden('stored'),
    query_params: {
      ...{ account_id: 'acme', workspace: ["it's", 'b'], resource_type: 'agent' },
      ...{ from_0: october(1), to_0: october(3), axis_start: Date.UTC(2025, 8, 29) / 1000 },
    },
  });
});

it('the metrics statement adds events of several buckets up by group and bucket before their series is made', () => {
  const { query } = metricsStatement({ ...QUERY, resolution: 'hourly', groupBy: ['workspace'] });
  expect(query).toContain('FROM usage_events FINAL');
  expect(query).toContain('GROUP BY workspace, entry_bucket\n)');
});

it('the metrics statement does not read the workspace for a group that hides it', () => {
  const query = { ...QUERY, groupBy: ['resource_name'], hidesWorkspace: true } as const;
  expect(metricsStatement(query).query).not.toContain('workspace');
  expect(metricsStatement({ ...query, groupBy: ['workspace'] }).query).toContain('[workspace] AS values');
});

it.each([
  ['before the first event', Date.UTC(1900, 0), Date.UTC(1960, 0), 0, 0],
  ['after the last', Date.UTC(2200, 0), Date.UTC(2300, 0), LAST, LAST],
  ['around all of them', Date.UTC(1900, 0), Date.UTC(2200, 0), 0, LAST],
])('the metrics statement of a window %s reads only what events can have', (_, startTime, endTime, from_0, to_0) => {
  const { query_params } = metricsStatement({ ...QUERY, window: { startTime, endTime }, resolution: 'monthly' });
  const axis_start = (new Date(startTime).getUTCFullYear() - 1970) * 12;
  expect(query_params).toEqual({ account_id: 'acme', from_0, to_0, axis_start, limit: 100 });
});

/** The statement in a file, word for word. */
function golden(name: string): string {
  return `\n${readFileSync(new URL(`../../test/golden/${name}.sql`, import.meta.url), 'utf8').trimEnd()}`;
}
