/** One golden statement for each shape. Their results: test/oracle. */
import { readFileSync } from 'node:fs';
import { TupleParam } from '@clickhouse/client';
import { expect, it } from '@jest/globals';
import type { Statement } from '../clickhouse/connection.js';
import { storeMetricsStatement } from './read.js';
import { type MetricsQuery, metricsStatement } from './statement.js';

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

it.each<[string, string, Partial<MetricsQuery>, Statement['query_params']]>([
  [
    'reads events of one bucket that answer alone without a subquery, and takes their sum for the series',
    'events-of-one-bucket',
    { filters: { workspace: ['production'] }, groupBy: ['resource_uuid'], asOf: '7' },
    { account_id: 'acme', workspace: 'production', from_0: october(1), to_0: october(2), as_of: '7' },
  ],
  [
    'reads rollup rows that answer alone without a subquery',
    'rollups',
    { window: TWO_DAYS, rollups: SEALED },
    { account_id: 'acme', from_0: october(1), to_0: october(3) },
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
  ],
])('the metrics statement %s', (_, name, changes, query_params) => {
  expect(metricsStatement({ ...QUERY, ...changes })).toEqual({
    name: 'read_metrics',
    query: golden(name),
    query_params: { ...query_params, axis_start: october(1), limit: 100 },
  });
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
