import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readMetrics, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';

let api: TestApi;
let accounts = 0;

beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

/** An account of its own, with an event of 1 USD at each of the times, and its series over the window. */
async function seriesOf(times: readonly string[], query: Record<string, string>): Promise<[string, number][]> {
  accounts += 1;
  const accountId = `account-${accounts}`;
  await api.seed(times.map((at) => event({ accountId, at })));
  const key = await api.key(accountId);
  const body = await readMetrics(api, accountId, key, { startTime: '', endTime: '', ...query });
  return body.data[0]?.timeseries.map(({ timestamp, cost }) => [timestamp, cost]) ?? [];
}

it('a series has the hours across the end of a year', async () => {
  const query = { startTime: '2024-12-31T22:00:00Z', endTime: '2025-01-01T02:00:00Z' };
  expect(await seriesOf(['2024-12-31T23:59:59.999Z', '2025-01-01T00:00:00Z'], query)).toEqual([
    ['2024-12-31T22:00:00Z', 0],
    ['2024-12-31T23:00:00Z', 1],
    ['2025-01-01T00:00:00Z', 1],
    ['2025-01-01T01:00:00Z', 0],
  ]);
});

it('a series has the days across the end of February in a leap year', async () => {
  const query = { startTime: '2024-02-28T00:00:00Z', endTime: '2024-03-02T00:00:00Z', resolution: 'daily' };
  expect(await seriesOf(['2024-02-29T12:00:00Z'], query)).toEqual([
    ['2024-02-28T00:00:00Z', 0],
    ['2024-02-29T00:00:00Z', 1],
    ['2024-03-01T00:00:00Z', 0],
  ]);
});

it('a series has ISO weeks, from Monday, across the end of a year', async () => {
  const query = { startTime: '2024-12-23T00:00:00Z', endTime: '2025-01-13T00:00:00Z', resolution: 'weekly' };
  const times = ['2024-12-29T23:59:59.999Z', '2024-12-30T00:00:00Z', '2025-01-05T23:59:59Z', '2025-01-06T00:00:00Z'];
  expect(await seriesOf(times, query)).toEqual([
    ['2024-12-23T00:00:00Z', 1],
    ['2024-12-30T00:00:00Z', 2],
    ['2025-01-06T00:00:00Z', 1],
  ]);
});

it('a series has months of 28 to 31 days', async () => {
  const query = { startTime: '2025-01-01T00:00:00Z', endTime: '2025-05-01T00:00:00Z', resolution: 'monthly' };
  const times = [
    '2025-01-31T23:59:59.999Z',
    '2025-02-28T23:59:59.999Z',
    '2025-03-01T00:00:00Z',
    '2025-04-30T23:00:00Z',
  ];
  expect(await seriesOf(times, query)).toEqual([
    ['2025-01-01T00:00:00Z', 1],
    ['2025-02-01T00:00:00Z', 1],
    ['2025-03-01T00:00:00Z', 1],
    ['2025-04-01T00:00:00Z', 1],
  ]);
});

it('a series has the future, too', async () => {
  const query = { startTime: '2099-12-31T22:00:00Z', endTime: '2100-01-01T00:00:00Z' };
  expect(await seriesOf([], query)).toEqual([
    ['2099-12-31T22:00:00Z', 0],
    ['2099-12-31T23:00:00Z', 0],
  ]);
});

it('the week in which 1970 begins starts in 1969', async () => {
  const query = { startTime: '1970-01-01T00:00:00Z', endTime: '1970-01-06T00:00:00Z', resolution: 'weekly' };
  expect(await seriesOf(['1970-01-01T00:00:00Z', '1970-01-05T00:00:00Z'], query)).toEqual([
    ['1969-12-29T00:00:00Z', 1],
    ['1970-01-05T00:00:00Z', 1],
  ]);
});

it.each([
  ['hourly', '2025-10-15T10:00:00Z', '2025-10-15T11:00:00Z'],
  ['daily', '2025-10-15T00:00:00Z', '2025-10-16T00:00:00Z'],
  ['weekly', '2025-10-13T00:00:00Z', '2025-10-20T00:00:00Z'],
  ['monthly', '2025-10-01T00:00:00Z', '2025-11-01T00:00:00Z'],
])(
  '%s buckets at the edges hold what lies in the window, and are named by their calendar start',
  async (resolution, first, second) => {
    const startTime = '2025-10-15T10:30:00Z';
    const endTime = new Date(Date.parse(second) + 60_000).toISOString();
    const inside = [startTime, new Date(Date.parse(second) - 1).toISOString(), second];
    const outside = [first, '2025-10-15T10:29:59.999Z', endTime, new Date(Date.parse(endTime) + 1).toISOString()];
    expect(await seriesOf([...inside, ...outside], { startTime, endTime, resolution })).toEqual([
      [first, 2],
      [second, 1],
    ]);
  },
);

it('the start is inclusive and the end exclusive, to the millisecond', async () => {
  const times = ['10:00:00.123Z', '10:00:00.124Z', '10:00:00.125Z', '10:00:00.126Z'].map(
    (time) => `2025-10-01T${time}`,
  );
  const query = { startTime: '2025-10-01T10:00:00.124Z', endTime: '2025-10-01T10:00:00.126Z' };
  expect(await seriesOf(times, query)).toEqual([['2025-10-01T10:00:00Z', 2]]);
});

describe('what counts', () => {
  const day = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-02T00:00:00Z', resolution: 'daily' };
  const total = async (accountId: string) =>
    (await readMetrics(api, accountId, await api.key(accountId), day)).summary.totalCost;

  it('an event that is stored again counts once', async () => {
    const twice = event({ accountId: 'again', cost: '3' });
    await api.seed([twice]);
    await api.seed([twice]);
    expect(await total('again')).toBe(3);
  });

  it('the highest revision of an event counts, whatever order they arrive in', async () => {
    const first = event({ accountId: 'revised', cost: '3' });
    await api.seed([{ ...first, revision: 2, cost: 5_000_000_000_000n }]);
    await api.seed([first]);
    expect(await total('revised')).toBe(5);
  });

  it('a voided event counts nowhere', async () => {
    const first = event({ accountId: 'void', cost: '3' });
    await api.seed([first, event({ accountId: 'void', cost: '1' })]);
    await api.seed([{ ...first, revision: 1, voided: true }]);
    expect(await total('void')).toBe(1);
  });

  it('a revision that moves an event within its hour out of the window takes it out of the answer', async () => {
    const first = event({ accountId: 'moved', at: '2025-10-01T10:10:00Z' });
    await api.seed([first]);
    await api.seed([{ ...first, revision: 1, timestamp: Date.parse('2025-10-01T10:50:00Z') }]);
    const query = { startTime: '2025-10-01T10:00:00Z', endTime: '2025-10-01T10:30:00Z' };
    expect((await readMetrics(api, 'moved', await api.key('moved'), query)).summary.totalCost).toBe(0);
  });

  it('another account counts nowhere', async () => {
    await api.seed([event({ accountId: 'mine', cost: '1' }), event({ accountId: 'yours', cost: '2' })]);
    expect(await total('mine')).toBe(1);
  });
});
