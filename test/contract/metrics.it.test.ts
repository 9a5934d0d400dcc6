/**
 * What the metrics and their enums answer: of each rule of the specification an example that can be checked by eye. The oracle draws all
 * other combinations; what is refused is in refusals, and how results are paged in paging.
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { bearer, DAY, metricsPath, type Query, readMetrics, startApi, type TestApi } from '../harness/api.js';
import { type EventSketch, event } from '../harness/events.js';

const HOUR = { startTime: '2025-10-01T10:00:00Z', endTime: '2025-10-01T11:00:00Z' };
const BY_DIMENSION = { ...DAY, groupBy: 'billing_dimension' };
const JOB = { resourceType: 'job', billingDimension: 'job_compute_runtime_gbs' } as const;
const VOLUME = { resourceType: 'volume', billingDimension: 'volume_storage_gbs' } as const;
const AGENT = { resourceType: 'agent', billingDimension: 'agent_async_requests_count' } as const;
const ODD_NAME = "it's a \\ \u{1f600} job";

let api: TestApi;
let key: string;
let number = 0;
beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
  await api.seed([
    event({ workspace: 'main', cost: '1' }),
    event({ workspace: 'other', resourceUuid: '', cost: '2' }),
    event({ ...JOB, workspace: 'other', resourceName: ODD_NAME, resourceUuid: 'u-3', cost: '4' }),
  ]);
});
afterAll(() => api.stop());

/** A new account with these events, and how it asks. */
async function accountOf(...events: readonly EventSketch[]) {
  number += 1;
  const accountId = `account-${number}`;
  const token = await api.key(accountId);
  await api.seed(events.map((sketch) => event({ accountId, ...sketch })));
  return {
    accountId,
    read: (query: Query) => readMetrics(api, accountId, token, query),
    text: async (query: Query) => (await api.request(metricsPath(accountId, query), bearer(token))).text,
  };
}

const read = (query: Query) => readMetrics(api, 'acme', key, query);
const inDay = (query: string) =>
  api.request(metricsPath('acme', `${new URLSearchParams(DAY)}${query && `&${query}`}`), bearer(key));

it.each([
  ['', 7],
  ['workspace=main', 1],
  ['resourceType=sandbox', 3],
  ['resourceName=box', 3],
  [`resourceName=${encodeURIComponent(ODD_NAME)}`, 4],
  ['resourceUuid=u-3', 4],
  ['withoutResourceUuid=true', 2],
  ['withoutResourceUuid=true&resourceUuid=u-3', 6],
  ['withoutResourceUuid=false', 7],
  ['billingDimension=job_compute_runtime_gbs', 4],
  ['workspace=other&resourceType=sandbox', 2],
  ['workspace=nobody', 0],
  ["resourceName=x' OR 1=1 --", 0],
  ['resourceType=job&billingDimension=sandbox_compute_runtime_gbs', 0],
  ['workspace=main&workspace=main&workspace=nobody', 1],
  ['resourceUuid=u-1&resourceUuid=u-3&workspace=other', 4],
  ['resourceType=job&resourceType=volume', 4],
  ['excludeWorkspace=main', 6],
  ['excludeResourceType=job', 3],
  ['excludeResourceName=box&excludeResourceName=nobody', 4],
  ['excludeResourceUuid=u-1', 6],
  ['excludeBillingDimension=sandbox_compute_runtime_gbs', 4],
  ['excludeWithoutResourceUuid=true', 5],
  ['excludeWithoutResourceUuid=false', 7],
  ['excludeWithoutResourceUuid=true&excludeResourceUuid=u-1', 4],
  ['workspace=main&workspace=other&excludeWorkspace=other', 1],
  ['withoutResourceUuid=true&excludeWithoutResourceUuid=true', 0],
])('the filters "%s" select events worth %d USD', async (filters, cost) => {
  expect((await inDay(filters)).body).toMatchObject({ summary: { totalCost: cost } });
});

it.each([
  ...['limit=1', 'limit=0100', 'limit=101', `limit=${'9'.repeat(400)}`, 'cursor=', 'resolution=monthly'],
  ...['resourceName=%20', `workspace=${encodeURIComponent('\u{1f600}'.repeat(256))}`, 'resourceType=custom_domain'],
  ...['resourceName', 'excludeResourceName'].map((name) =>
    Array.from({ length: 100 }, (_, n) => `${name}=box-${n}`).join('&'),
  ),
])('the parameters %.60s are accepted', async (query) => {
  expect((await inDay(query)).status).toBe(200);
});

it.each([
  ['hourly', '2025-10-01T12:30:00Z', '2025-10-08T12:30:00Z', 169],
  ['daily', '2025-01-01T00:00:00Z', '2025-04-01T00:00:00Z', 90],
  ['weekly', '2024-02-29T00:00:00Z', '2025-02-28T00:00:00Z', 53],
  ['monthly', '1970-01-01T00:00:00Z', '2100-12-31T23:59:59.999Z', 131 * 12],
  ['monthly', '0001-01-01T00:00:00Z', '1600-01-01T00:00:00Z', 1_599 * 12],
  ['hourly', '0099-12-31T23:00:00Z', '0100-01-01T00:30:00Z', 2],
  ['hourly', '1969-12-31T00:00:00Z', '1970-01-02T00:00:00Z', 48],
  ['daily', '9999-12-31T00:00:00Z', '9999-12-31T23:59:59.999Z', 1],
])('a %s window may reach from %s to %s, and has %d buckets', async (resolution, startTime, endTime, buckets) => {
  const body = await read({ startTime, endTime, resolution });
  expect([body.startTime, body.endTime, body.resolution]).toEqual([startTime, endTime, resolution]);
  expect(body.data[0]?.timeseries).toHaveLength(buckets);
});

it.each([
  ['0.1', '0.2', '0.3'],
  ['131000.123456789011', '0.000000000001', '131000.123456789012'],
  ['12345678901234567890.123456789012', '0', '12345678901234567890.123456789012'],
  ['0', '0', '0'],
])('costs of %s and %s are %s, in digits', async (a, b, sum) => {
  const { text } = await accountOf({ cost: a }, { cost: b });
  expect(await text(HOUR)).toBe(
    `{"startTime":"2025-10-01T10:00:00Z","endTime":"2025-10-01T11:00:00Z","resolution":"hourly","summary":{"totalCost":${sum}},` +
      `"data":[{"summary":{"cost":${sum}},"timeseries":[{"timestamp":"2025-10-01T10:00:00Z","cost":${sum}}]}],` +
      `"meta":{"hasMore":false,"nextCursor":""}}`,
  );
});

it('groups come by cost, the highest first, then by their values, bytewise', async () => {
  const costs = {
    b: '1',
    B: '1',
    é: '1',
    '\u{1f600}': '1',
    '\uff5e': '1',
    a: '2.000000000001',
    z: '2.000000000002',
    free: '0',
  };
  const { read } = await accountOf(...Object.entries(costs).map(([workspace, cost]) => ({ workspace, cost })));
  const { data } = await read({ ...DAY, groupBy: 'workspace' });
  expect(data.map(({ workspace }) => workspace)).toEqual(['z', 'a', 'B', 'b', 'é', '\uff5e', '\u{1f600}', 'free']);
});

/** The table AccountMetricsDataEntry: of which dimensions one at least must be asked for. */
const FILLED_BY = {
  workspace: ['workspace', 'resource_name', 'resource_uuid'],
  resourceType: ['resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'],
  resourceName: ['resource_name', 'resource_uuid'],
  resourceUuid: ['resource_uuid'],
  billingDimension: ['billing_dimension'],
};
const DIMENSIONS = ['workspace', 'resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'];
const SETS = Array.from({ length: 31 }, (_, n) => DIMENSIONS.filter((_, bit) => (n + 1) & (1 << bit))).filter(
  ({ length }) => length <= 3,
);

it('each of the 25 sets of dimensions fills exactly the fields that the specification says, for a member all but the workspace', async () => {
  expect(SETS).toHaveLength(25);
  const { accountId, read } = await accountOf(
    { workspace: 'main', cost: '1' },
    { workspace: 'other', resourceName: 'crate', resourceUuid: 'u-2', cost: '2' },
    { ...VOLUME, workspace: 'other', resourceName: 'disk', resourceUuid: '', cost: '4' },
  );
  const member = await api.key(accountId, 'member');
  for (const set of SETS) {
    const query = { ...DAY, groupBy: set.join() };
    const fields = Object.entries(FILLED_BY).flatMap(([field, by]) =>
      by.some((one) => set.includes(one)) ? [field] : [],
    );
    const usage = set.includes('billing_dimension') ? ['usage'] : [];
    const { data, summary } = await read(query);
    expect(summary).toEqual({ totalCost: 7, ...(usage.length > 0 && { totalUsage: 3 }) });
    expect(data.reduce((sum, entry) => sum + entry.summary.cost, 0)).toBe(7);
    for (const entry of data) {
      expect([set, Object.keys(entry)]).toEqual([set, [...fields, 'summary', 'timeseries']]);
      for (const amounts of [{ timestamp: '', ...entry.summary }, ...entry.timeseries]) {
        expect([set, Object.keys(amounts)]).toEqual([set, ['timestamp', 'cost', ...usage]]);
      }
    }
    if (set.includes('workspace')) continue;
    const shown = (await readMetrics(api, accountId, member, query)).data;
    expect(shown).toEqual(data.map(({ workspace: _, ...entry }) => entry));
  }
});

it('an enriched field is left out where a group has several values: no workspace gets the money of another', async () => {
  const fieldsBy = async (groupBy: string, ...events: EventSketch[]) =>
    (await (await accountOf(...events)).read({ ...DAY, groupBy })).data.map(
      ({ timeseries: _, summary, ...fields }) => ({ ...fields, cost: summary.cost }),
    );
  const [prod, dev] = [
    { workspace: 'prod', cost: '0.69' },
    { workspace: 'dev', cost: '0.575' },
  ];
  const box = { resourceType: 'sandbox', resourceName: 'box' };
  expect(await fieldsBy('resource_name', prod, dev)).toEqual([{ ...box, cost: 1.265 }]);
  expect(await fieldsBy('workspace,resource_name', prod, dev)).toEqual([
    { workspace: 'prod', ...box, cost: 0.69 },
    { workspace: 'dev', ...box, cost: 0.575 },
  ]);
  // Usage decides, also where it costs nothing or there is none of it.
  const free = { workspace: 'dev', cost: '0', usage: '0' };
  expect(await fieldsBy('resource_name', prod, free)).toEqual([{ ...box, cost: 0.69 }]);
  const bare = { workspace: 'dev', resourceUuid: '' };
  expect(await fieldsBy('resource_uuid', { ...bare, ...AGENT, resourceName: 'p' }, bare)).toEqual([
    { workspace: 'dev', resourceUuid: '', cost: 2 },
  ]);
});

it('without groupBy there is one entry with nothing but summary and series, of zeros where nothing was used', async () => {
  const [used, unused] = [await read(DAY), await read({ ...DAY, workspace: 'nobody' })];
  expect([used, unused].map(({ data }) => data.map((entry) => Object.keys(entry)))).toEqual(
    Array(2).fill([['summary', 'timeseries']]),
  );
  expect([used.summary, used.meta]).toEqual([{ totalCost: 7 }, { hasMore: false, nextCursor: '' }]);
  expect(unused.data[0]?.summary).toEqual({ cost: 0 });
  expect(unused.data[0]?.timeseries.map(({ cost }) => cost)).toEqual(Array(24).fill(0));
});

it.each<Query>([{ workspace: 'nobody' }, { resourceType: 'volume', billingDimension: 'job_compute_runtime_gbs' }])(
  'with groupBy there is no entry where %j selects nothing',
  async (filters) => {
    const { data, summary } = await read({ ...BY_DIMENSION, ...filters });
    expect([data, summary]).toEqual([[], { totalCost: 0, totalUsage: 0 }]);
  },
);

const enumOf = async (name: string, query = '') =>
  (await api.request(`/v0/accounts/acme/metrics/enums/${name}${query}`, bearer(await api.key('acme', 'member')))).body;

it('the enum resource-types lists the types with an event in the window that the filters select, one that costs nothing included, a voided one not', async () => {
  const voided = { ...AGENT, accountId: 'acme', eventId: '018f0000-0000-7000-8000-ffffffffffff' };
  const at = '2025-09-01T10:00:00Z';
  await api.seed([
    event({ ...VOLUME, at }),
    event({ at: '2025-09-01T10:00:00.500Z', cost: '0', usage: '0' }),
    event({ ...JOB, at: '2025-09-01T11:00:00Z' }),
    event({ ...AGENT, accountId: 'another', at }),
    event({ ...voided, at }),
  ]);
  await api.seed([event({ ...voided, at, revision: 1, voided: true })]);
  const day = '2025-09-01T00:00:00Z 2025-09-02T00:00:00Z';
  for (const [window, filters, values] of [
    [day, '', ['sandbox', 'job', 'volume']],
    ['2025-09-01T10:00:00Z 2025-09-01T10:00:00.500Z', '', ['volume']],
    ['2025-09-01T10:00:00.001Z 2025-09-01T10:00:00.501Z', '', ['sandbox']],
    ['2025-09-01T10:30:00Z 2025-09-01T11:00:00.001Z', '', ['job']],
    ['0001-01-01T00:00:00Z 2025-09-01T10:00:00Z', '', []],
    ['0001-01-01T00:00:00Z 9999-12-31T23:59:59.999Z', '', ['sandbox', 'job', 'volume']],
    [day, '&resourceType=volume&resourceType=job&resourceName=box', ['job', 'volume']],
    [day, '&billingDimension=job_compute_runtime_gbs', ['job']],
    [day, '&withoutResourceUuid=true', []],
    [day, '&excludeResourceType=job', ['sandbox', 'volume']],
    [day, '&excludeWithoutResourceUuid=true&excludeBillingDimension=job_compute_runtime_gbs', ['sandbox', 'volume']],
  ] as const) {
    const [startTime, endTime] = window.split(' ');
    const found = await enumOf('resource-types', `?startTime=${startTime}&endTime=${endTime}${filters}`);
    expect([window, filters, found]).toEqual([window, filters, { values }]);
  }
});
