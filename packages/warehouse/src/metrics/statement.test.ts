import { readFileSync } from 'node:fs';
import { TupleParam } from '@clickhouse/client';
import { describe, expect, it } from '@jest/globals';
import { type MetricsQuery, metricsStatement } from './statement.js';
import { storeMetricsStatement } from './stored-pages.js';

const HALF_PAST = Date.UTC(2025, 9, 1, 0, 30);
const QUESTION: MetricsQuery = {
  accounts: ['acme'],
  window: { startTime: HALF_PAST, endTime: Date.UTC(2025, 9, 2) },
  filters: {},
  resolution: 'hourly',
  groupBy: [],
  limit: 100,
};

/** The statement in a file, word for word. */
function golden(name: string): string {
  return `\n${readFileSync(new URL(`../../test/golden/${name}.sql`, import.meta.url), 'utf8').trimEnd()}`;
}

/** As {@link Date.UTC}. */
function seconds(year: number, month: number, day: number, hour = 0): number {
  return Date.UTC(year, month, day, hour) / 1000;
}

describe('the metrics statement', () => {
  it('without seals reads the truth alone', () => {
    expect(metricsStatement(QUESTION)).toEqual({
      name: 'read_metrics',
      query: golden('truth-alone'),
      query_params: {
        account_id: 'acme',
        from_0: HALF_PAST,
        to_0: Date.UTC(2025, 9, 2),
        axis_start: Date.UTC(2025, 9, 1) / 1000,
        limit: 100,
      },
    });
  });

  it('reads rollup rows that answer alone without a subquery', () => {
    const days = { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 3) };
    const rollups = { hourly: days.endTime, daily: days.endTime, dirtyHours: [] };
    expect(metricsStatement({ ...QUESTION, window: days, resolution: 'daily', rollups })).toEqual({
      name: 'read_metrics',
      query: golden('rollups-alone'),
      query_params: {
        account_id: 'acme',
        from_0: seconds(2025, 9, 1),
        to_0: seconds(2025, 9, 3),
        axis_start: seconds(2025, 9, 1),
        limit: 100,
      },
    });
  });

  it('reads events of one bucket that answer alone without a subquery, and takes their sum for the series', () => {
    const day = { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 2) };
    const filters = { workspace: ['production'] };
    const question = { ...QUESTION, window: day, filters, groupBy: ['resource_uuid'], asOf: '7' } as const;
    expect(metricsStatement({ ...question, resolution: 'daily' })).toEqual({
      name: 'read_metrics',
      query: golden('truth-of-one-bucket'),
      query_params: {
        account_id: 'acme',
        workspace: 'production',
        from_0: seconds(2025, 9, 1),
        to_0: seconds(2025, 9, 2),
        axis_start: seconds(2025, 9, 1),
        as_of: '7',
        limit: 100,
      },
    });
  });

  it('for one dimension adds those that it enriches, and reads each part of the window where it is known', () => {
    const statement = metricsStatement({
      ...QUESTION,
      window: { startTime: Date.UTC(2025, 8, 30, 0, 30), endTime: Date.UTC(2025, 9, 4, 12, 30) },
      groupBy: ['resource_uuid'],
      resolution: 'monthly',
      rollups: { hourly: Date.UTC(2025, 9, 4, 12), daily: Date.UTC(2025, 9, 4), dirtyHours: [] },
    });
    expect(statement).toEqual({
      name: 'read_metrics',
      query: golden('every-source'),
      query_params: {
        account_id: 'acme',
        from_0: Date.UTC(2025, 8, 30, 0, 30),
        to_0: Date.UTC(2025, 8, 30, 1),
        from_1: seconds(2025, 8, 30, 1),
        to_1: seconds(2025, 9, 1),
        from_2: seconds(2025, 9, 1),
        to_2: seconds(2025, 9, 4),
        from_3: seconds(2025, 9, 4),
        to_3: seconds(2025, 9, 4, 12),
        from_4: Date.UTC(2025, 9, 4, 12),
        to_4: Date.UTC(2025, 9, 4, 12, 30),
        axis_start: (2025 - 1970) * 12 + 8,
        limit: 100,
      },
    });
  });

  it('reads dirty hours from the events, and the others of their days from the rollup rows of hours', () => {
    const dirty = [Date.UTC(2025, 8, 30, 5), Date.UTC(2025, 9, 2, 3), Date.UTC(2025, 9, 2, 23)];
    const statement = metricsStatement({
      ...QUESTION,
      window: { startTime: Date.UTC(2025, 8, 30, 4), endTime: Date.UTC(2025, 9, 4) },
      groupBy: ['workspace'],
      resolution: 'daily',
      rollups: {
        hourly: Date.UTC(2025, 9, 4),
        daily: Date.UTC(2025, 9, 4),
        dirtyHours: dirty.map((bucket) => ({ bucket })),
      },
    });
    expect(statement).toEqual({
      name: 'read_metrics',
      query: golden('dirty-hours'),
      query_params: {
        account_id: 'acme',
        from_0: seconds(2025, 8, 30, 4),
        to_0: seconds(2025, 9, 1),
        except_0: [seconds(2025, 8, 30, 5)],
        from_1: seconds(2025, 9, 1),
        to_1: seconds(2025, 9, 4),
        except_1: [seconds(2025, 9, 2)],
        from_2: seconds(2025, 9, 2),
        to_2: seconds(2025, 9, 3),
        days_2: [seconds(2025, 9, 2)],
        except_2: [seconds(2025, 9, 2, 3), seconds(2025, 9, 2, 23)],
        from_3: seconds(2025, 8, 30, 5),
        to_3: seconds(2025, 9, 3),
        only_3: dirty.map((hour) => hour / 1000),
        axis_start: seconds(2025, 8, 30),
        limit: 100,
      },
    });
  });

  it('about several accounts names each dirty hour with its account', () => {
    const dirty = [
      { accountId: "it's", bucket: Date.UTC(2025, 9, 2, 3) },
      { accountId: 'acme', bucket: Date.UTC(2025, 9, 2, 23) },
    ];
    const statement = metricsStatement({
      ...QUESTION,
      accounts: ['acme', "it's"],
      window: { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 4) },
      groupBy: ['account', 'workspace'],
      excluded: { account: ['globex'] },
      resolution: 'daily',
      rollups: { hourly: Date.UTC(2025, 9, 4), daily: Date.UTC(2025, 9, 4), dirtyHours: dirty },
    });
    const days = [new TupleParam(["it's", '2025-10-02 00:00:00']), new TupleParam(['acme', '2025-10-02 00:00:00'])];
    const hours = [new TupleParam(["it's", '2025-10-02 03:00:00']), new TupleParam(['acme', '2025-10-02 23:00:00'])];
    expect(statement).toEqual({
      name: 'read_metrics',
      query: golden('accounts'),
      query_params: {
        accounts: ['acme', "it's"],
        excluded_account: 'globex',
        from_0: seconds(2025, 9, 1),
        to_0: seconds(2025, 9, 4),
        except_0: days,
        from_1: seconds(2025, 9, 2),
        to_1: seconds(2025, 9, 3),
        days_1: days,
        except_1: hours,
        from_2: seconds(2025, 9, 2, 3),
        to_2: seconds(2025, 9, 3),
        only_2: hours,
        axis_start: seconds(2025, 9, 1),
        limit: 100,
      },
    });
  });

  it('does not read the workspace for a group that hides it', () => {
    const question = { ...QUESTION, groupBy: ['resource_name'], hidesWorkspace: true } as const;
    expect(metricsStatement(question).query).not.toContain('workspace');
    expect(metricsStatement({ ...question, groupBy: ['workspace'] }).query).toContain('[workspace] AS values');
  });

  it.each([
    ['before the first event', Date.UTC(1900, 0), Date.UTC(1960, 0), 0, 0],
    ['after the last', Date.UTC(2200, 0), Date.UTC(2300, 0), seconds(2106, 0, 1), seconds(2106, 0, 1)],
    ['around all of them', Date.UTC(1900, 0), Date.UTC(2200, 0), 0, seconds(2106, 0, 1)],
  ])('of a window %s reads only what events can have', (_where, startTime, endTime, from_0, to_0) => {
    const statement = metricsStatement({ ...QUESTION, window: { startTime, endTime }, resolution: 'monthly' });
    const axis_start = (new Date(startTime).getUTCFullYear() - 1970) * 12;
    expect(statement.query_params).toEqual({ account_id: 'acme', from_0, to_0, axis_start, limit: 100 });
  });
});

it('the statement that stores a ranking has every value as a parameter', () => {
  const statement = storeMetricsStatement({
    ...QUESTION,
    window: { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 3) },
    groupBy: ['workspace', 'billing_dimension'],
    resolution: 'weekly',
    filters: { workspace: ["it's", 'b'], resource_type: ['agent'] },
    rollups: { hourly: Date.UTC(2025, 9, 2, 1), daily: Date.UTC(2025, 9, 2), dirtyHours: [] },
    asOf: '18446744073709551615',
  });
  expect(statement).toEqual({
    name: 'store_metrics',
    query: golden('stored'),
    query_params: {
      account_id: 'acme',
      workspace: ["it's", 'b'],
      resource_type: 'agent',
      from_0: seconds(2025, 9, 1),
      to_0: seconds(2025, 9, 2),
      from_1: seconds(2025, 9, 2),
      to_1: seconds(2025, 9, 2, 1),
      from_2: seconds(2025, 9, 2, 1),
      to_2: seconds(2025, 9, 3),
      axis_start: Date.UTC(2025, 8, 29) / 1000,
      as_of: '18446744073709551615',
    },
  });
});
