import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { bearer, DAY, type MetricsBody, metricsPath, readMetrics, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';

type Entry = MetricsBody['data'][number];

let api: TestApi;
let key: string;
/** Of an account in which every name and every UUID is of one workspace. */
let tidy: string;
let tidyMember: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
  tidy = await api.key('tidy');
  tidyMember = await api.key('tidy', 'member');
  const disk = {
    workspace: 'other',
    resourceType: 'volume',
    billingDimension: 'volume_storage_gbs',
    resourceName: 'disk',
    resourceUuid: '',
    cost: '4',
  } as const;
  await api.seed([
    event({ workspace: 'main', resourceName: 'box', resourceUuid: 'u-1', cost: '1' }),
    event({ workspace: 'other', resourceName: 'box', resourceUuid: 'u-2', cost: '2' }),
    event(disk),
    event({ accountId: 'tidy', workspace: 'main', resourceName: 'box', resourceUuid: 'u-1', cost: '1' }),
    event({ accountId: 'tidy', workspace: 'other', resourceName: 'crate', resourceUuid: 'u-2', cost: '2' }),
    event({ ...disk, accountId: 'tidy' }),
  ]);
});
afterAll(() => api.stop());

/** Set by hand from the table AccountMetricsDataEntry: which fields an entry has for each set of dimensions. */
const W = 'workspace';
const T = 'resourceType';
const N = 'resourceName';
const U = 'resourceUuid';
const B = 'billingDimension';
const SETS: [string, string[]][] = [
  ['workspace', [W]],
  ['resource_type', [T]],
  ['resource_name', [W, T, N]],
  ['resource_uuid', [W, T, N, U]],
  ['billing_dimension', [T, B]],
  ['workspace,resource_type', [W, T]],
  ['workspace,resource_name', [W, T, N]],
  ['workspace,resource_uuid', [W, T, N, U]],
  ['workspace,billing_dimension', [W, T, B]],
  ['resource_type,resource_name', [W, T, N]],
  ['resource_type,resource_uuid', [W, T, N, U]],
  ['resource_type,billing_dimension', [T, B]],
  ['resource_name,resource_uuid', [W, T, N, U]],
  ['resource_name,billing_dimension', [W, T, N, B]],
  ['resource_uuid,billing_dimension', [W, T, N, U, B]],
  ['workspace,resource_type,resource_name', [W, T, N]],
  ['workspace,resource_type,resource_uuid', [W, T, N, U]],
  ['workspace,resource_type,billing_dimension', [W, T, B]],
  ['workspace,resource_name,resource_uuid', [W, T, N, U]],
  ['workspace,resource_name,billing_dimension', [W, T, N, B]],
  ['workspace,resource_uuid,billing_dimension', [W, T, N, U, B]],
  ['resource_type,resource_name,resource_uuid', [W, T, N, U]],
  ['resource_type,resource_name,billing_dimension', [W, T, N, B]],
  ['resource_type,resource_uuid,billing_dimension', [W, T, N, U, B]],
  ['resource_name,resource_uuid,billing_dimension', [W, T, N, U, B]],
];

it.each(SETS)('the set %s fills exactly %j', async (groupBy, fields) => {
  const body = await readMetrics(api, 'tidy', tidy, { ...DAY, groupBy });
  const withUsage = fields.includes(B);
  expect(body.data.length).toBeGreaterThan(0);
  for (const entry of body.data) {
    expect(Object.keys(entry)).toEqual([...fields, 'summary', 'timeseries']);
    expect(Object.keys(entry.summary)).toEqual(withUsage ? ['cost', 'usage'] : ['cost']);
    for (const point of entry.timeseries) {
      expect(Object.keys(point)).toEqual(withUsage ? ['timestamp', 'cost', 'usage'] : ['timestamp', 'cost']);
    }
  }
  expect(Object.keys(body.summary)).toEqual(withUsage ? ['totalCost', 'totalUsage'] : ['totalCost']);
  expect(body.summary.totalCost).toBe(7);
  expect(body.data.reduce((sum, entry) => sum + entry.summary.cost, 0)).toBe(7);
  if (withUsage) expect(body.summary.totalUsage).toBe(3);
});

it.each(SETS)('the set %s means the same in reverse order, and with a parameter for each', async (groupBy) => {
  const names = groupBy.split(',');
  const each = names.map((name) => `groupBy=${name}`).join('&');
  const [one, ...others] = await Promise.all(
    [`groupBy=${groupBy}`, `groupBy=${[...names].reverse().join(',')}`, each].map((query) =>
      api.request(metricsPath('acme', `${new URLSearchParams(DAY)}&${query}`), bearer(key)),
    ),
  );
  expect(one?.status).toBe(200);
  for (const other of others) expect(other.text).toBe(one?.text);
});

it.each(SETS.filter(([groupBy]) => !groupBy.includes('workspace')))(
  'the set %s shows a member the same, but for the workspace',
  async (groupBy, fields) => {
    const body = await readMetrics(api, 'tidy', tidyMember, { ...DAY, groupBy });
    const seen = fields.filter((field) => field !== W);
    for (const entry of body.data) expect(Object.keys(entry)).toEqual([...seen, 'summary', 'timeseries']);
    expect(JSON.stringify(body)).not.toMatch(/main|other/);
  },
);

describe('groups', () => {
  const labels = async (groupBy: string, label: (entry: Entry) => unknown) =>
    (await readMetrics(api, 'acme', key, { ...DAY, groupBy })).data.map(label);

  it('several dimensions give the combinations that occur', async () => {
    expect(await labels('workspace,resource_name', (e) => [e.workspace, e.resourceName, e.summary.cost])).toEqual([
      ['other', 'disk', 4],
      ['other', 'box', 2],
      ['main', 'box', 1],
    ]);
  });

  it('the same name in two workspaces is one group of resource_name', async () => {
    expect(await labels('resource_name', (e) => [e.resourceName, e.summary.cost])).toEqual([
      ['disk', 4],
      ['box', 3],
    ]);
  });

  it('events without a UUID are the group ""', async () => {
    expect(await labels('resource_uuid', (e) => [e.resourceUuid, e.resourceName])).toEqual([
      ['', 'disk'],
      ['u-2', 'box'],
      ['u-1', 'box'],
    ]);
  });

  it('without groupBy there is one entry with nothing but summary and timeseries', async () => {
    const body = await readMetrics(api, 'acme', key, DAY);
    expect(body.data.map((entry) => Object.keys(entry))).toEqual([['summary', 'timeseries']]);
    expect(body.summary).toEqual({ totalCost: 7 });
    expect(body.meta).toEqual({ hasMore: false, nextCursor: '' });
  });

  it('without groupBy and without usage the entry holds zeros', async () => {
    const body = await readMetrics(api, 'acme', key, { ...DAY, workspace: 'none' });
    expect(body.data.map(({ summary }) => summary)).toEqual([{ cost: 0 }]);
    expect(body.data[0]?.timeseries.map(({ cost }) => cost)).toEqual(Array(24).fill(0));
  });

  it('with groupBy and without usage there is no entry', async () => {
    const body = await readMetrics(api, 'acme', key, { ...DAY, workspace: 'none', groupBy: 'billing_dimension' });
    expect(body.data).toEqual([]);
    expect(body.summary).toEqual({ totalCost: 0, totalUsage: 0 });
  });
});

describe('enriched fields', () => {
  const fieldsOf = async (accountId: string, groupBy: string) => {
    const body = await readMetrics(api, accountId, await api.key(accountId), { ...DAY, groupBy });
    return body.data.map(({ summary, timeseries: _series, ...fields }) => ({ ...fields, cost: summary.cost }));
  };

  it('enriched fields are left out where a group has several values: no workspace gets the money of another', async () => {
    await api.seed([
      event({ accountId: 'two', workspace: 'prod', resourceName: 'x', cost: '0.69' }),
      event({ accountId: 'two', workspace: 'dev', resourceName: 'x', cost: '0.575' }),
    ]);
    expect(await fieldsOf('two', 'resource_name')).toEqual([
      { resourceType: 'sandbox', resourceName: 'x', cost: 1.265 },
    ]);
    expect(await fieldsOf('two', 'workspace,resource_name')).toEqual([
      { workspace: 'prod', resourceType: 'sandbox', resourceName: 'x', cost: 0.69 },
      { workspace: 'dev', resourceType: 'sandbox', resourceName: 'x', cost: 0.575 },
    ]);
  });

  it('enriched fields are left out for what has no UUID, where that is of many resources', async () => {
    const agent = { resourceType: 'agent', billingDimension: 'agent_compute_runtime_gbs' } as const;
    await api.seed([
      event({ ...agent, accountId: 'bare', resourceUuid: '', workspace: 'a', resourceName: 'p' }),
      event({ accountId: 'bare', resourceUuid: '', workspace: 'a', resourceName: 'q' }),
    ]);
    expect(await fieldsOf('bare', 'resource_uuid')).toEqual([{ workspace: 'a', resourceUuid: '', cost: 2 }]);
  });

  it('enriched fields are decided by usage, also where it costs nothing', async () => {
    await api.seed([
      event({ accountId: 'free', workspace: 'a', resourceName: 'x', cost: '1' }),
      event({ accountId: 'free', workspace: 'b', resourceName: 'x', cost: '0', usage: '0' }),
    ]);
    expect(await fieldsOf('free', 'resource_name')).toEqual([{ resourceType: 'sandbox', resourceName: 'x', cost: 1 }]);
  });
});
