import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { bearer, DAY, metricsPath, type Query, readMetrics, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
  await api.seed([
    event({ workspace: 'main', resourceName: 'box', resourceUuid: 'u-1', cost: '1' }),
    event({ workspace: 'other', resourceName: 'box', resourceUuid: '', cost: '2' }),
    event({
      workspace: 'other',
      resourceType: 'job',
      billingDimension: 'job_compute_runtime_gbs',
      resourceName: "it's a \\ \u{1f600} job",
      resourceUuid: 'u-3',
      cost: '4',
    }),
  ]);
});
afterAll(() => api.stop());

async function totalCost(filters: Query): Promise<number> {
  return (await readMetrics(api, 'acme', key, { ...DAY, ...filters })).summary.totalCost;
}

it.each<[Query, number]>([
  [{}, 7],
  [{ workspace: 'main' }, 1],
  [{ workspace: 'other' }, 6],
  [{ resourceType: 'sandbox' }, 3],
  [{ resourceName: 'box' }, 3],
  [{ resourceName: "it's a \\ \u{1f600} job" }, 4],
  [{ resourceUuid: 'u-3' }, 4],
  [{ withoutResourceUuid: 'true' }, 2],
  [{ withoutResourceUuid: 'true', resourceUuid: 'u-3' }, 6],
  [{ withoutResourceUuid: 'false' }, 7],
  [{ billingDimension: 'job_compute_runtime_gbs' }, 4],
  [{ workspace: 'other', resourceType: 'sandbox' }, 2],
  [{ workspace: 'nobody has this one' }, 0],
  [{ resourceName: "x' OR 1=1 --" }, 0],
  [{ resourceType: 'volume' }, 0],
])('the filter %j selects events worth %d USD', async (filters, cost) => {
  expect(await totalCost(filters)).toBe(cost);
});

it.each([
  ['workspace=main&workspace=other', 7],
  ['workspace=main&workspace=main&workspace=nobody', 1],
  ['resourceUuid=u-1&resourceUuid=u-3', 5],
  ['resourceUuid=u-1&resourceUuid=u-3&workspace=other', 4],
  ['resourceType=job&resourceType=volume', 4],
  ['billingDimension=job_compute_runtime_gbs&billingDimension=sandbox_compute_runtime_gbs&workspace=other', 6],
])('several values are alternatives, so that %s selects events worth %d USD', async (filters, cost) => {
  const answer = await api.request(metricsPath('acme', `${new URLSearchParams(DAY)}&${filters}`), bearer(key));
  expect(answer.body).toMatchObject({ summary: { totalCost: cost } });
});

it.each([
  ['excludeWorkspace=main', 6],
  ['excludeWorkspace=main&excludeWorkspace=other', 0],
  ['excludeResourceType=job', 3],
  ['excludeResourceName=box', 4],
  ['excludeResourceName=nobody&excludeResourceName=nobody', 7],
  ['excludeBillingDimension=sandbox_compute_runtime_gbs&excludeBillingDimension=volume_storage_gbs', 4],
  ['excludeWorkspace=main&excludeResourceType=job', 2],
  ['excludeResourceUuid=u-1', 6],
  ['excludeWithoutResourceUuid=true', 5],
  ['excludeWithoutResourceUuid=false', 7],
  ['excludeWithoutResourceUuid=true&excludeResourceUuid=u-1', 4],
  ['workspace=main&workspace=other&excludeWorkspace=other', 1],
  ['resourceName=box&excludeResourceUuid=u-1', 2],
  ['resourceType=job&excludeResourceType=job', 0],
  ['withoutResourceUuid=true&excludeWithoutResourceUuid=true', 0],
])(
  'filters leave out what they exclude, whatever else selects it, so that %s selects events worth %d USD',
  async (filters, cost) => {
    const answer = await api.request(metricsPath('acme', `${new URLSearchParams(DAY)}&${filters}`), bearer(key));
    expect(answer.body).toMatchObject({ summary: { totalCost: cost } });
  },
);

it.each(['resourceName', 'excludeResourceName'])('filters may have 100 values of %s', async (name) => {
  const filters = Array.from({ length: 100 }, (_, n) => `${name}=box-${n}`).join('&');
  const { status } = await api.request(metricsPath('acme', `${new URLSearchParams(DAY)}&${filters}`), bearer(key));
  expect(status).toBe(200);
});

it('filters leave out one of 300 names', async () => {
  const many = await api.key('many names');
  const event300 = (_: unknown, n: number) =>
    event({ accountId: 'many names', resourceName: `box-${n}`, cost: n === 7 ? '1000' : '1' });
  await api.seed(Array.from({ length: 300 }, event300));
  const query = { ...DAY, excludeResourceName: 'box-7' };
  expect((await readMetrics(api, 'many names', many, query)).summary.totalCost).toBe(299);
});

it('a type and a dimension that exclude each other select nothing', async () => {
  const exclusive = { resourceType: 'job', billingDimension: 'sandbox_compute_runtime_gbs' };
  expect(await totalCost(exclusive)).toBe(0);
  expect((await readMetrics(api, 'acme', key, { ...DAY, ...exclusive, groupBy: 'resource_name' })).data).toEqual([]);
});

it.each([
  ['unknown parameters', (index: number) => `${String.fromCharCode(97 + (index % 26))}${index}`],
  ['characters that JSON escapes', (index: number) => `%00${index}=%01`],
  ['repeated parameters', (index: number) => `limit=${index}`],
])('a request gets no answer many times its size, however many faults it has: %s', async (_what, fault) => {
  for (const count of [1, 10, 100, 1_500]) {
    const query = Array.from({ length: count }, (_, index) => fault(index)).join('&');
    const { status, text } = await api.request(metricsPath('acme', query), bearer(key));
    expect(status).toBe(400);
    // What the shortest request needs besides: the path, Host and the credentials.
    expect(text.length).toBeLessThan(20 * (query.length + 200));
    expect(text.length).toBeLessThan(8_000);
  }
});

it.each<[string, string]>([
  ['limit', '1'],
  ['limit', '0100'],
  ['limit', '101'],
  ['limit', '9'.repeat(400)],
  ['workspace', '\u{1f600}'.repeat(256)],
  ['resourceName', ' '],
  ['cursor', ''],
  ['resourceType', 'custom_domain'],
  ['billingDimension', 'agent_async_requests_count'],
  ['resolution', 'monthly'],
])('%s=%j is accepted', async (name, value) => {
  await readMetrics(api, 'acme', key, { ...DAY, [name]: value });
});

const resolutionOf = async (startTime: string, endTime: string) =>
  (await readMetrics(api, 'acme', key, { startTime, endTime })).resolution;

it.each([
  ['1 ms', '2025-10-01T00:00:00Z', '2025-10-01T00:00:00.001Z', 'hourly'],
  ['1 ms below 7 days', '2025-10-01T00:00:00Z', '2025-10-07T23:59:59.999Z', 'hourly'],
  ['exactly 7 days', '2025-10-01T00:00:00Z', '2025-10-08T00:00:00Z', 'daily'],
  ['1 ms above 7 days', '2025-10-01T00:00:00Z', '2025-10-08T00:00:00.001Z', 'daily'],
  ['1 ms below 90 days', '2025-01-01T00:00:00Z', '2025-03-31T23:59:59.999Z', 'daily'],
  ['exactly 90 days', '2025-01-01T00:00:00Z', '2025-04-01T00:00:00Z', 'weekly'],
  ['1 ms below a year', '2025-01-01T00:00:00Z', '2025-12-31T23:59:59.999Z', 'weekly'],
  ['exactly a year', '2025-01-01T00:00:00Z', '2026-01-01T00:00:00Z', 'monthly'],
  ['365 days of a leap year', '2024-01-01T00:00:00Z', '2024-12-31T00:00:00Z', 'weekly'],
  ['366 days of a leap year', '2024-01-01T00:00:00Z', '2025-01-01T00:00:00Z', 'monthly'],
  ['a year from 29 February', '2024-02-29T00:00:00Z', '2025-02-28T00:00:00Z', 'monthly'],
  ['1 ms below it', '2024-02-29T00:00:00Z', '2025-02-27T23:59:59.999Z', 'weekly'],
])('the default resolution of %s is right', async (_name, startTime, endTime, resolution) => {
  expect(await resolutionOf(startTime, endTime)).toBe(resolution);
});

it.each([
  ['hourly', '2025-10-01T12:00:00Z', '2025-10-08T12:00:00Z'],
  ['daily', '2025-01-01T00:00:00Z', '2025-04-01T00:00:00Z'],
  ['weekly', '2025-01-01T00:00:00Z', '2026-01-01T00:00:00Z'],
  ['weekly', '2024-01-01T00:00:00Z', '2025-01-01T00:00:00Z'],
  ['weekly', '2024-02-29T00:00:00Z', '2025-02-28T00:00:00Z'],
])('the longest window of %s from %s reaches to %s', async (resolution, startTime, endTime) => {
  expect((await readMetrics(api, 'acme', key, { startTime, endTime, resolution })).resolution).toBe(resolution);
});

it('the resolution monthly has no longest window', async () => {
  const whole = { startTime: '1970-01-01T00:00:00Z', endTime: '2100-12-31T23:59:59.999Z', resolution: 'monthly' };
  const { data } = await readMetrics(api, 'acme', key, whole);
  expect(data[0]?.timeseries).toHaveLength(131 * 12);
});

it.each(['hourly', 'daily', 'weekly', 'monthly'])('the resolution %s may be asked for an hour', async (resolution) => {
  const hour = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-01T01:00:00Z', resolution };
  expect((await readMetrics(api, 'acme', key, hour)).data[0]?.timeseries).toHaveLength(1);
});

it.each([
  ['2025-10-01T00:00:00+00:00', '2025-10-01T00:00:00Z'],
  ['2025-10-01T00:00:00.000000000Z', '2025-10-01T00:00:00Z'],
  ['2025-10-01T00:00:00.5Z', '2025-10-01T00:00:00.5Z'],
  ['2025-10-01T00:00:00.120Z', '2025-10-01T00:00:00.12Z'],
  ['2025-10-01T00:00:00.1239Z', '2025-10-01T00:00:00.123Z'],
  ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00Z'],
])('the time %s is echoed as %s', async (startTime, echo) => {
  const body = await readMetrics(api, 'acme', key, { startTime, endTime: '2025-10-02T00:00:00.25Z' });
  expect([body.startTime, body.endTime]).toEqual([echo, '2025-10-02T00:00:00.25Z']);
});

it.each([
  ['0001-01-01T00:00:00Z', '1600-01-01T00:00:00Z', 'monthly', 1599 * 12],
  ['0099-12-31T23:00:00Z', '0100-01-01T00:30:00Z', 'hourly', 2],
  ['9999-12-31T00:00:00Z', '9999-12-31T23:59:59.999Z', 'hourly', 24],
  ['1969-12-31T00:00:00Z', '1970-01-02T00:00:00Z', 'hourly', 48],
])(
  'a window may be long before any event or long after, as from %s to %s, %s',
  async (startTime, endTime, resolution, buckets) => {
    const body = await readMetrics(api, 'acme', key, { startTime, endTime });
    expect([body.startTime, body.endTime, body.resolution]).toEqual([startTime, endTime, resolution]);
    expect(body.data[0]?.timeseries).toHaveLength(buckets);
  },
);

it('the ends of a window may differ by a millisecond', async () => {
  await readMetrics(api, 'acme', key, {
    startTime: '2025-10-01T00:00:00.0001Z',
    endTime: '2025-10-01T00:00:00.001Z',
  });
});
