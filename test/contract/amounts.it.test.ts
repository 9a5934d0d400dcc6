import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { bearer, DAY, metricsPath, type Query, readMetrics, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

async function rawBody(account: string, query: Query): Promise<string> {
  return (await api.request(metricsPath(account, query), bearer(await api.key(account)))).text;
}

const HOUR = { startTime: '2025-10-01T10:00:00Z', endTime: '2025-10-01T11:00:00Z' };
const BY_DIMENSION = { groupBy: 'billing_dimension' };

it.each([
  ['0.1', '0.2', '0.3'],
  ['0.000000000001', '0', '0.000000000001'],
  ['131000.123456789011', '0.000000000001', '131000.123456789012'],
  ['9007199254740993', '0', '9007199254740993'],
  ['12345678901234567890.123456789012', '0', '12345678901234567890.123456789012'],
  ['0.5', '0.5', '1'],
  ['1000', '0', '1000'],
  ['0', '0', '0'],
])('costs %s and %s are %s, in digits', async (a, b, sum) => {
  const accountId = `cost ${a} ${b}`;
  await api.seed([event({ accountId, cost: a }), event({ accountId, cost: b })]);
  expect(await rawBody(accountId, HOUR)).toBe(
    `{"startTime":"2025-10-01T10:00:00Z","endTime":"2025-10-01T11:00:00Z","resolution":"hourly","summary":{"totalCost":${sum}},` +
      `"data":[{"summary":{"cost":${sum}},"timeseries":[{"timestamp":"2025-10-01T10:00:00Z","cost":${sum}}]}],` +
      `"meta":{"hasMore":false,"nextCursor":""}}`,
  );
});

it.each([
  ['0.000000001', '0.000000001'],
  ['999999999999999.999999999', '999999999999999.999999999'],
  ['100', '100'],
])('usage %s is written as %s', async (usage, text) => {
  const accountId = `usage ${usage}`;
  await api.seed([event({ accountId, usage, cost: '0.25' })]);
  const body = await rawBody(accountId, { ...HOUR, ...BY_DIMENSION });
  expect(body).toContain(`"summary":{"totalCost":0.25,"totalUsage":${text}}`);
  expect(body).toContain(`"summary":{"cost":0.25,"usage":${text}}`);
  expect(body).toContain(`{"timestamp":"2025-10-01T10:00:00Z","cost":0.25,"usage":${text}}`);
});

it('an empty bucket has 0, and is there', async () => {
  await api.seed([event({ accountId: 'gap', at: '2025-10-01T10:00:00Z' })]);
  const body = await rawBody('gap', {
    startTime: '2025-10-01T10:00:00Z',
    endTime: '2025-10-01T12:00:00Z',
    ...BY_DIMENSION,
  });
  expect(body).toContain('{"timestamp":"2025-10-01T11:00:00Z","cost":0,"usage":0}');
});

it('names are escaped as JSON requires', async () => {
  const resourceName = 'a"b\\c\u2028\u{1f600}';
  await api.seed([event({ accountId: 'names', resourceName })]);
  const body = await readMetrics(api, 'names', await api.key('names'), { ...HOUR, groupBy: 'resource_name' });
  expect(body.data[0]?.resourceName).toBe(resourceName);
});

it('the order of groups is by cost, the highest first, then by the values, bytewise', async () => {
  const costs: [string, string][] = [
    ['b', '1'],
    ['B', '1'],
    ['é', '1'],
    ['\u{1f600}', '1'],
    ['\uff5e', '1'],
    ['a', '2.000000000001'],
    ['z', '2.000000000002'],
    ['free', '0'],
  ];
  await api.seed(costs.map(([workspace, cost]) => event({ accountId: 'order', workspace, cost })));
  const body = await readMetrics(api, 'order', await api.key('order'), { ...DAY, groupBy: 'workspace' });
  expect(body.data.map(({ workspace }) => workspace)).toEqual(['z', 'a', 'B', 'b', 'é', '\uff5e', '\u{1f600}', 'free']);
});

it('the order of groups compares the dimensions in their canonical order', async () => {
  const groups: [string, string][] = [
    ['b', 'x'],
    ['a', 'y'],
    ['a', 'x'],
  ];
  await api.seed(groups.map(([workspace, resourceName]) => event({ accountId: 'canon', workspace, resourceName })));
  const query = { ...DAY, groupBy: 'resource_name,workspace' };
  const body = await readMetrics(api, 'canon', await api.key('canon'), query);
  expect(body.data.map((entry) => [entry.workspace, entry.resourceName])).toEqual([
    ['a', 'x'],
    ['a', 'y'],
    ['b', 'x'],
  ]);
});

it('usage is summed within a dimension, and in total over the dimensions', async () => {
  await api.seed([
    event({ accountId: 'use', usage: '1.5' }),
    event({ accountId: 'use', usage: '0.25', at: '2025-10-01T11:00:00Z' }),
    event({
      accountId: 'use',
      usage: '7',
      cost: '0',
      resourceType: 'agent',
      billingDimension: 'agent_async_requests_count',
    }),
  ]);
  const body = await readMetrics(api, 'use', await api.key('use'), { ...DAY, ...BY_DIMENSION });
  expect(body.summary).toEqual({ totalCost: 2, totalUsage: 8.75 });
  expect(body.data.map((entry) => [entry.billingDimension, entry.resourceType, entry.summary])).toEqual([
    ['sandbox_compute_runtime_gbs', 'sandbox', { cost: 2, usage: 1.75 }],
    ['agent_async_requests_count', 'agent', { cost: 0, usage: 7 }],
  ]);
  expect(body.data[0]?.timeseries.slice(10, 13)).toEqual([
    { timestamp: '2025-10-01T10:00:00Z', cost: 1, usage: 1.5 },
    { timestamp: '2025-10-01T11:00:00Z', cost: 1, usage: 0.25 },
    { timestamp: '2025-10-01T12:00:00Z', cost: 0, usage: 0 },
  ]);
});
