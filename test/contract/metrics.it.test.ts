/**
 * The metrics of an account, their enums and their pages: an example of each rule of docs/api-contract.md that can be checked by eye. The oracle
 * draws all other combinations, and which parameters are rejected is a unit test of services/query/src/metrics/request.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type BillingDimension, DEFAULT_PRICE_BOOK_FILE, PriceBook, type PriceBookFile } from '@meterline/catalog';
import { onEachShard, registerPriceBook } from '@meterline/warehouse';
import { z } from 'zod';
import {
  allPages,
  bearer,
  DAY,
  errorOf,
  metricsPath,
  NOW,
  type Query,
  readMetrics,
  startApi,
  type TestApi,
} from '../harness/api.js';
import { type EventSketch, event } from '../harness/events.js';
import { execute } from '../harness/stack.js';
import { testDatabase } from '../harness/test-database.js';

const HOUR = { startTime: '2025-10-01T10:00:00Z', endTime: '2025-10-01T11:00:00Z' };
const BY_DIMENSION = { ...DAY, groupBy: 'billing_dimension' };
const JOB = { resourceType: 'job', billingDimension: 'job_compute_runtime_gbs' } as const;
const VOLUME = { resourceType: 'volume', billingDimension: 'volume_storage_gbs' } as const;
const AGENT = { resourceType: 'agent', billingDimension: 'agent_async_requests_count' } as const;
/** Every job has a price of its own for some accounts, volumes get cheaper, and domains have no price yet. */
const BOOK_FILE = {
  ...DEFAULT_PRICE_BOOK_FILE,
  prices: [
    ...DEFAULT_PRICE_BOOK_FILE.prices.filter(({ billingDimension }) => !billingDimension.startsWith('custom_domain')),
    price('custom_domain_active_time_hours', '20.00', '2026-01-01T00:00:00Z', '730'),
    price(VOLUME.billingDimension, '0.10', '2025-12-01T00:00:00Z', '2628000'),
  ],
  overrides: [
    { accountId: 'acme', ...price(JOB.billingDimension, '3.50', '2025-06-01T00:00:00Z', '1000') },
    { accountId: 'globex', ...price(JOB.billingDimension, '9', '2025-07-01T00:00:00Z') },
  ],
};
const ODD_NAME = "it's a \\ \u{1f600} job";

function price(billingDimension: BillingDimension, amount: string, effectiveFrom: string, per = '1') {
  return { billingDimension, amount, per, effectiveFrom };
}

const database = testDatabase();
let api: TestApi;
let key: string;
let number = 0;
beforeAll(async () => {
  api = await startApi({ warehouse: database.warehouse });
  key = await api.key('acme');
  await api.seed([
    event({ workspace: 'main', cost: '1' }),
    event({ workspace: 'other', resourceUuid: '', cost: '2' }),
    event({ ...JOB, workspace: 'other', resourceName: ODD_NAME, resourceUuid: 'u-3', cost: '4' }),
  ]);
});
afterAll(() => api.stop());

/** Creates an account with these events. */
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
])('costs of %s and %s add up to %s, to the last digit', async (a, b, sum) => {
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

/** By field, the dimensions that fill it, from docs/api-contract.md, "Groups and filters". */
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

it('each of the 25 sets of dimensions fills exactly the fields of the specification, and for members not the workspace', async () => {
  expect(SETS).toHaveLength(25);
  const { accountId, read } = await accountOf(
    { workspace: 'main', cost: '1' },
    { workspace: 'other', resourceName: 'crate', resourceUuid: 'u-2', cost: '2' },
    { ...VOLUME, workspace: 'other', resourceName: 'disk', resourceUuid: '', cost: '4' },
  );
  const member = await api.key(accountId, 'member');
  const check = async (set: readonly string[]) => {
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
    if (set.includes('workspace')) return;
    const shown = (await readMetrics(api, accountId, member, query)).data;
    expect(shown).toEqual(data.map(({ workspace: _, ...entry }) => entry));
  };
  await Promise.all(SETS.map(check));
});

it('an enriched field is left out if a group has several values, so that no workspace shows the cost of another', async () => {
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
  // Events without cost or usage count, too.
  const free = { workspace: 'dev', cost: '0', usage: '0' };
  expect(await fieldsBy('resource_name', prod, free)).toEqual([{ ...box, cost: 0.69 }]);
  const bare = { workspace: 'dev', resourceUuid: '' };
  expect(await fieldsBy('resource_uuid', { ...bare, ...AGENT, resourceName: 'p' }, bare)).toEqual([
    { workspace: 'dev', resourceUuid: '', cost: 2 },
  ]);
});

it('without groupBy there is one entry with summary and series, which are zeros without usage', async () => {
  const [used, unused] = [await read(DAY), await read({ ...DAY, workspace: 'nobody' })];
  expect([used, unused].map(({ data }) => data.map((entry) => Object.keys(entry)))).toEqual(
    Array(2).fill([['summary', 'timeseries']]),
  );
  expect([used.summary, used.meta]).toEqual([{ totalCost: 7 }, { hasMore: false, nextCursor: '' }]);
  expect(unused.data[0]?.summary).toEqual({ cost: 0 });
  expect(unused.data[0]?.timeseries.map(({ cost }) => cost)).toEqual(Array(24).fill(0));
});

it.each<Query>([{ workspace: 'nobody' }, { resourceType: 'volume', billingDimension: 'job_compute_runtime_gbs' }])(
  'with groupBy there is no entry if %j selects nothing',
  async (filters) => {
    const { data, summary } = await read({ ...BY_DIMENSION, ...filters });
    expect([data, summary]).toEqual([[], { totalCost: 0, totalUsage: 0 }]);
  },
);

const enumOf = async (name: string, query = '') =>
  (await api.request(`/v0/accounts/acme/metrics/enums/${name}${query}`, bearer(await api.key('acme', 'member')))).body;

it('the enum resource-types lists the types of the selected events in the window, including free events and excluding voided ones', async () => {
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
  const rows = [
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
  ] as const;
  const found = rows.map(async ([window, filters]) => {
    const [startTime, endTime] = window.split(' ');
    return [window, filters, await enumOf('resource-types', `?startTime=${startTime}&endTime=${endTime}${filters}`)];
  });
  expect(await Promise.all(found)).toEqual(rows.map(([window, filters, values]) => [window, filters, { values }]));
});

describe('the enum billing-dimensions', () => {
  const usd = (amount: string, per: string, effectiveFrom: string) => ({ amount, per, currency: 'USD', effectiveFrom });
  const [own, general] = [usd('3.5', '1000', '2025-06-01T00:00:00Z'), usd('0.000006', '1', '1970-01-01T00:00:00Z')];
  const volume = usd('0.12', '2628000', '1970-01-01T00:00:00Z');
  let operator: string;
  let prices: TestApi;
  beforeEach(async () => {
    prices = await startApi({ warehouse: database.warehouse });
    operator = await prices.key(undefined, 'operator');
  });
  afterEach(() => prices.stop());

  const at = (time: number) => {
    prices.clock.now = new Date(time);
  };
  const register = (change: Partial<PriceBookFile> = {}) =>
    registerPriceBook(database.shards, new PriceBook({ ...BOOK_FILE, ...change }));
  /** The prices of jobs, of volumes and of domains. */
  const pricesOf = async (account: string) => {
    const path = `/v0/accounts/${account}/metrics/enums/billing-dimensions`;
    const { body } = await prices.request(path, bearer(operator));
    const { values } = z.object({ values: z.array(z.looseObject({ billingDimension: z.string() })) }).parse(body);
    expect(values).toHaveLength(12);
    const priced = [JOB.billingDimension, VOLUME.billingDimension, 'custom_domain_active_time_hours'];
    return priced.map((name) => values.find(({ billingDimension }) => billingDimension === name)?.['price']);
  };

  it('the enum billing-dimensions has no prices before a worker has registered a book, and those of the book within a minute', async () => {
    expect(await pricesOf('acme')).toEqual([undefined, undefined, undefined]);
    await register();
    at(NOW.getTime() + 59_999);
    expect(await pricesOf('acme')).toEqual([undefined, undefined, undefined]);
    at(NOW.getTime() + 60_000);
    expect(await pricesOf('acme')).toEqual([own, volume, undefined]);
  });

  it('the enum billing-dimensions has the prices in force now for the account, and those of no other account', async () => {
    await register();
    expect(await pricesOf('acme')).toEqual([own, volume, undefined]);
    expect(await pricesOf('initech')).toEqual([general, volume, undefined]);
    at(Date.UTC(2026, 0));
    const later = [usd('0.1', '2628000', '2025-12-01T00:00:00Z'), usd('20', '730', '2026-01-01T00:00:00Z')];
    expect(await pricesOf('acme')).toEqual([own, ...later]);
  });

  it('the enum billing-dimensions shows the highest version of the book, not the one that was registered last', async () => {
    const overrides = [{ accountId: 'acme', ...price(JOB.billingDimension, '4', '2025-06-01T00:00:00Z') }];
    await register({ version: 12, overrides });
    await register({ version: 3 });
    expect((await pricesOf('acme'))[0]).toEqual(usd('4', '1', '2025-06-01T00:00:00Z'));
  });
});

describe('pages', () => {
  const GROUPS = 250;
  const NAMES = Array.from({ length: GROUPS }, (_, index) => `box-${String(index).padStart(3, '0')}`);
  /** In descending order. Costs repeat, so that pages end within ties. */
  const COSTS = NAMES.map((_, index) => 5 - Math.floor(index / 50));

  const ACCOUNT = 'paged';
  let owner: string;

  beforeAll(async () => {
    owner = await api.key(ACCOUNT);
    const boxes = NAMES.map((resourceName, index) => ({ resourceName, cost: String(COSTS[index]) }));
    await api.seed(['globex', ACCOUNT].flatMap((accountId) => boxes.map((box) => event({ accountId, ...box }))));
  });

  const BY_NAME = { ...DAY, groupBy: 'resource_name,billing_dimension' };

  const pages = (query: Record<string, string>, token = owner) =>
    allPages((cursor) => readMetrics(api, ACCOUNT, token, { ...query, cursor }));

  async function rejection(cursor: string, query: Record<string, string> = BY_NAME, token = owner, account = ACCOUNT) {
    const response = await api.request(metricsPath(account, { ...query, cursor }), bearer(token));
    expect(response.status).toBe(400);
    return errorOf(response).error;
  }

  const firstCursor = async () => (await readMetrics(api, ACCOUNT, owner, { ...BY_NAME, limit: '10' })).meta.nextCursor;

  it.each([
    [{}, [100, 100, 50]],
    [{ limit: '40' }, [...Array(6).fill(40), 10]],
  ])('pages with %j contain every group once, in order', async (limit, sizes) => {
    const all = await pages({ ...BY_NAME, ...limit });
    expect(all.map(({ data }) => data.length)).toEqual(sizes);
    expect(all.flatMap(({ data }) => data.map((entry) => entry.resourceName))).toEqual(NAMES);
    expect(all.map(({ meta }) => meta.hasMore)).toEqual(sizes.map((_, index) => index < sizes.length - 1));
    for (const { summary } of all) expect(summary).toEqual({ totalCost: 750, totalUsage: 250 });
  });

  it('a page has fewer groups if they have many buckets', async () => {
    const decades = { startTime: '2005-01-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z', resolution: 'monthly' };
    const { data, meta } = await readMetrics(api, ACCOUNT, owner, { ...decades, groupBy: 'resource_name' });
    // 250 months: 80 groups make 20,000 points.
    expect([data.map((entry) => entry.resourceName), meta.hasMore]).toEqual([NAMES.slice(0, 80), true]);
    expect(data.every(({ timeseries }) => timeseries.length === 250)).toBe(true);
  });

  it.each<[string, Record<string, string>]>([
    ['another limit', { limit: '3' }],
    [
      'the same parameters in another spelling',
      {
        groupBy: 'billing_dimension,resource_name',
        endTime: '2025-10-02T00:00:00.0009+00:00',
        startTime: '2025-10-01T00:00:00.000Z',
        resolution: 'hourly',
      },
    ],
  ])('a cursor is valid with %s', async (_what, query) => {
    const page = await readMetrics(api, ACCOUNT, owner, { ...BY_NAME, ...query, cursor: await firstCursor() });
    expect(page.data.slice(0, 3).map((entry) => entry.resourceName)).toEqual(['box-010', 'box-011', 'box-012']);
  });

  it('a cursor is valid with another key of the account and role, so that replicas of a dashboard may share pages', async () => {
    const replica = await api.key(ACCOUNT, 'admin', 'another service account');
    await readMetrics(api, ACCOUNT, replica, { ...BY_NAME, cursor: await firstCursor() });
  });

  it('a cursor is valid for 24 hours and not a millisecond longer', async () => {
    const cursor = await firstCursor();
    try {
      api.clock.now = new Date(NOW.getTime() + 86_400_000);
      await readMetrics(api, ACCOUNT, owner, { ...BY_NAME, cursor });
      api.clock.now = new Date(NOW.getTime() + 86_400_001);
      expect(await rejection(cursor)).toBe('cursor_expired');
    } finally {
      api.clock.now = NOW;
    }
  });

  it.each<[string, Record<string, string>]>([
    ['filtered by', { workspace: '\u{1f600}', resourceName: '\u{1f4e6}', resourceUuid: '\u{1f194}' }],
    ['grouped by', {}],
  ])('names of the maximum length can be %s, all at once, and paged', async (what, filters) => {
    const longest = (character: string) => character.repeat(256);
    const accountId = `${what}${'\u{1f3e6}'.repeat(246)}`;
    const admin = await api.key(accountId);
    const names = {
      workspace: longest('\u{1f600}'),
      resourceName: longest('\u{1f4e6}'),
      resourceUuid: longest('\u{1f194}'),
    };
    await api.seed([
      event({ accountId, ...names }),
      event({ accountId, ...names, billingDimension: 'sandbox_image_storage_gbs', cost: '0.5' }),
    ]);
    const groupBy = 'workspace,resource_name,billing_dimension';
    const wanted = Object.fromEntries(Object.entries(filters).map(([name, character]) => [name, longest(character)]));
    const query = { ...DAY, ...wanted, groupBy, limit: '1' };
    const first = await readMetrics(api, accountId, admin, query);
    const second = await readMetrics(api, accountId, admin, { ...query, cursor: first.meta.nextCursor });
    expect([...first.data, ...second.data].map((entry) => [entry.workspace, entry.summary.cost])).toEqual([
      [names.workspace, 1],
      [names.workspace, 0.5],
    ]);
    expect(second.meta.hasMore).toBe(false);
  });

  it.each([
    ['startTime', '2025-10-01T00:00:00.001Z'],
    ['endTime', '2025-10-01T23:59:59.999Z'],
    ['resolution', 'daily'],
    ['groupBy', 'resource_name'],
    ['workspace', 'main'],
    ['resourceType', 'sandbox'],
    ['resourceName', 'box-001'],
    ['resourceUuid', 'u-1'],
    ['withoutResourceUuid', 'true'],
    ['billingDimension', 'sandbox_compute_runtime_gbs'],
    ['excludeWorkspace', 'nobody'],
    ['excludeResourceName', 'nobody'],
    ['excludeWithoutResourceUuid', 'true'],
  ])('a cursor is rejected with another %s', async (name, value) => {
    expect(await rejection(await firstCursor(), { ...BY_NAME, [name]: value })).toBe('invalid_cursor');
  });

  it('a cursor is rejected without groupBy, for another account, and in another role of the caller', async () => {
    const cursor = await firstCursor();
    expect(await rejection(cursor, DAY)).toBe('invalid_cursor');
    const [member, globex] = [
      await api.key(ACCOUNT, 'member', `admin of ${ACCOUNT}`),
      await api.key('globex', 'admin', `admin of ${ACCOUNT}`),
    ];
    expect(await rejection(cursor, BY_NAME, member)).toBe('invalid_cursor');
    expect(await rejection(cursor, BY_NAME, globex, 'globex')).toBe('invalid_cursor');
  });

  it('a cursor is rejected as expired if a revision has replaced an event of its first page', async () => {
    const { accountId, read } = await accountOf();
    const events = ['3', '2', '1'].map((cost) => event({ accountId, resourceName: `box-${cost}`, cost }));
    await api.seed(events);
    const { meta } = await read({ ...BY_NAME, limit: '1' });
    await api.seed(events.map((one) => ({ ...one, cost: 5n, revision: 1 })));
    // Without a merge, ClickHouse still has the replaced revisions.
    await onEachShard(database.shards.all, (shard) => execute(shard, 'OPTIMIZE TABLE usage_events FINAL'));
    const token = await api.key(accountId);
    expect(await rejection(meta.nextCursor, { ...BY_NAME, limit: '1' }, token, accountId)).toBe('cursor_expired');
  });
});
