import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { bucketAxis, formatScaled, type GroupByDimension, RESOLUTIONS, type Resolution } from '@meterline/catalog';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import { insertUsageEvents, type PricedEvent } from '../events/usage-events.js';
import { readMetrics } from './read.js';
import type { MetricsQuestion } from './statement.js';

const DAY = 86_400_000;
const START = Date.UTC(2025, 9, 1);
const WINDOW = { startTime: START, endTime: START + DAY };
const USD = 10n ** 12n;
const UNIT = 10n ** 9n;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** An account of its own that has used this. */
async function accountWith(events: readonly Partial<PricedEvent>[]): Promise<string> {
  const accountId = randomUUID();
  await insertUsageEvents(
    database.warehouse,
    events.map((changes) => ({
      eventId: randomUUID(),
      accountId,
      workspace: 'production',
      resourceType: 'sandbox',
      resourceName: 'builder',
      resourceUuid: '',
      billingDimension: 'sandbox_compute_runtime_gbs',
      usage: UNIT,
      timestamp: START,
      revision: 0,
      voided: false,
      cost: USD,
      priceRevision: 0,
      priceBook: 0,
      ...changes,
    })),
  );
  return accountId;
}

function ask(accountId: string, changes: Partial<MetricsQuestion> = {}) {
  return readMetrics(database.warehouse, {
    ...{ accountId, window: WINDOW, filters: {}, resolution: 'hourly', groupBy: [], limit: 100 },
    ...changes,
  });
}

async function groupsBy(accountId: string, ...groupBy: GroupByDimension[]) {
  const { groups } = await ask(accountId, { groupBy });
  return groups.map(({ values, cost }) => ({ ...values, cost }));
}

describe('without groupBy', () => {
  it('there is one group of everything', async () => {
    const account = await accountWith([{ workspace: 'a' }, { workspace: 'b', cost: 2n * USD }]);
    expect(await ask(account)).toEqual({
      groups: [{ values: {}, cost: '3', usage: '2', series: series([0, '3', '2']) }],
      totals: { cost: '3', usage: '2' },
      totalGroups: 1,
    });
  });

  it('there is one group of zeros if nothing was used', async () => {
    expect(await ask(randomUUID())).toEqual({
      groups: [{ values: {}, cost: '0', usage: '0', series: series() }],
      totals: { cost: '0', usage: '0' },
      totalGroups: 1,
    });
  });
});

describe('with groupBy', () => {
  it('there is no group if nothing was used', async () => {
    expect(await ask(randomUUID(), { groupBy: ['workspace'] })).toEqual({
      groups: [],
      totals: { cost: '0', usage: '0' },
      totalGroups: 0,
    });
  });

  it('there is a group for each combination, and for nothing else', async () => {
    const account = await accountWith([
      { workspace: 'a', resourceType: 'sandbox', cost: 4n * USD },
      { workspace: 'a', resourceType: 'agent', cost: 3n * USD },
      { workspace: 'b', resourceType: 'agent', cost: 2n * USD },
      { workspace: 'a', resourceType: 'sandbox', cost: USD },
    ]);
    expect(await groupsBy(account, 'workspace', 'resource_type')).toEqual([
      { workspace: 'a', resource_type: 'sandbox', cost: '5' },
      { workspace: 'a', resource_type: 'agent', cost: '3' },
      { workspace: 'b', resource_type: 'agent', cost: '2' },
    ]);
  });

  it('an event without a resourceUuid belongs to the empty one', async () => {
    const account = await accountWith([{ resourceUuid: '' }, { resourceUuid: 'u', cost: 2n * USD }]);
    const { groups } = await ask(account, { groupBy: ['resource_uuid'] });
    expect(groups.map(({ values }) => values.resource_uuid)).toEqual(['u', '']);
  });

  it('a group that costs nothing is there, with its usage', async () => {
    const account = await accountWith([{ cost: 0n, usage: 5n * UNIT }]);
    expect(await ask(account, { groupBy: ['billing_dimension'] })).toMatchObject({
      groups: [{ cost: '0', usage: '5', series: series([0, '0', '5']) }],
    });
  });
});

describe('an enriched value', () => {
  it('is the one that carries the most cost in the group, not the most events', async () => {
    const account = await accountWith([
      { resourceUuid: 'u', workspace: 'a', cost: 2n * USD },
      { resourceUuid: 'u', workspace: 'a', cost: 2n * USD },
      { resourceUuid: 'u', workspace: 'z', cost: 5n * USD },
    ]);
    expect(await groupsBy(account, 'resource_uuid')).toMatchObject([{ workspace: 'z', cost: '9' }]);
  });

  it('sums over buckets before it compares', async () => {
    const account = await accountWith([
      { resourceName: 'r', workspace: 'a', cost: 3n * USD },
      { resourceName: 'r', workspace: 'b', cost: 2n * USD },
      { resourceName: 'r', workspace: 'b', cost: 2n * USD, timestamp: START + DAY / 2 },
    ]);
    expect(await groupsBy(account, 'resource_name')).toMatchObject([{ workspace: 'b' }]);
  });

  it('is the smallest, bytewise, of those that tie', async () => {
    const account = await accountWith(['z', 'Z', 'é', '😀'].map((workspace) => ({ workspace })));
    expect(await groupsBy(account, 'resource_name')).toMatchObject([{ workspace: 'Z' }]);
  });

  it('is the smallest where nothing costs anything', async () => {
    const account = await accountWith(['b', 'a', 'c'].map((workspace) => ({ workspace, cost: 0n })));
    expect(await groupsBy(account, 'resource_name')).toMatchObject([{ workspace: 'a' }]);
  });

  it('is never one that costs nothing beside one that costs something', async () => {
    const account = await accountWith([
      { workspace: 'a', cost: 0n },
      { workspace: 'b', cost: 1n },
    ]);
    expect(await groupsBy(account, 'resource_name')).toMatchObject([{ workspace: 'b' }]);
  });

  it('is found for each field by itself', async () => {
    const account = await accountWith([
      { resourceUuid: 'u', workspace: 'a', resourceName: 'x', resourceType: 'job', cost: 3n * USD },
      { resourceUuid: 'u', workspace: 'b', resourceName: 'y', resourceType: 'agent', cost: 2n * USD },
      { resourceUuid: 'u', workspace: 'b', resourceName: 'z', resourceType: 'volume', cost: 2n * USD },
    ]);
    expect(await groupsBy(account, 'resource_uuid')).toEqual([
      { resource_uuid: 'u', workspace: 'b', resource_type: 'job', resource_name: 'x', cost: '7' },
    ]);
  });
});

describe('the bucket of an event', () => {
  const windows: Record<Resolution, readonly [string, string]> = {
    hourly: ['2025-10-01T00:30:00Z', '2025-10-03T12:00:00Z'],
    daily: ['2024-02-27T12:00:00Z', '2024-03-02T00:00:00.001Z'],
    weekly: ['1970-01-01T00:00:00Z', '1970-03-01T00:00:00Z'],
    monthly: ['2023-11-15T12:00:00Z', '2025-02-02T00:00:00Z'],
  };

  it.each(RESOLUTIONS)('%s is its place on the axis of the catalog', async (resolution) => {
    const [startTime = 0, endTime = 0] = windows[resolution].map(Date.parse);
    const axis = bucketAxis({ startTime, endTime }, resolution);
    const edges = axis.flatMap((bucket) => [bucket - 1, bucket]).filter((at) => at >= startTime && at < endTime);
    const instants = [...new Set([startTime, ...edges, endTime - 1])];
    const account = await accountWith(instants.map((timestamp) => ({ timestamp })));

    const { groups } = await ask(account, { window: { startTime, endTime }, resolution });
    const expected = series(
      ...axis.map((bucket, index): SeriesEntry => {
        const next = axis[index + 1] ?? Infinity;
        const events = String(instants.filter((at) => at >= bucket && at < next).length);
        return [index, events, events];
      }),
    );
    expect(groups[0]?.series).toEqual(expected);
  });

  it('is on the last hour that the API allows, too', async () => {
    const timestamp = Date.UTC(2100, 0) - 1;
    const account = await accountWith([{ timestamp }]);
    const window = { startTime: 0, endTime: Date.UTC(2100, 0) };
    const { groups } = await ask(account, { window, resolution: 'monthly' });
    expect(groups[0]?.series).toEqual(series([130 * 12 - 1, '1', '1']));
  });
});

describe('the window', () => {
  it('holds startTime and not endTime, to the millisecond', async () => {
    const window = { startTime: START + 1, endTime: START + 1000 };
    const instants = [START, START + 1, START + 999, START + 1000];
    const account = await accountWith(instants.map((timestamp, index) => ({ timestamp, usage: 10n ** BigInt(index) })));
    const { totals } = await ask(account, { window });
    expect(totals?.usage).toBe(formatScaled(110n, 9));
  });

  it('holds nothing of another account', async () => {
    await accountWith([{}]);
    expect((await ask(await accountWith([{ cost: 7n }]))).totals?.cost).toBe('0.000000000007');
  });
});

describe('the order of groups', () => {
  it('is by cost, the highest first, then by values, bytewise', async () => {
    const names = ['b', 'a', 'Z', 'é', 'ab', '😀', '\uffee'];
    const account = await accountWith([
      ...names.map((workspace) => ({ workspace })),
      { workspace: 'dear', cost: 9n * USD },
      { workspace: 'free', cost: 0n },
    ]);
    const { groups } = await ask(account, { groupBy: ['workspace'] });
    expect(groups.map(({ values }) => values.workspace)).toEqual([
      ...['dear', 'Z', 'a', 'ab', 'b', 'é', '\uffee', '😀', 'free'],
    ]);
  });

  it('compares costs as numbers', async () => {
    const account = await accountWith([9n, 10n, 100n].map((cost) => ({ workspace: `${cost}`, cost })));
    const { groups } = await ask(account, { groupBy: ['workspace'] });
    expect(groups.map(({ values }) => values.workspace)).toEqual(['100', '10', '9']);
  });
});

describe('amounts', () => {
  it('are exact to all their digits', async () => {
    const cost = 123_456_789_012_345_678_123_456_789_012n;
    const usage = 999_999_999_999_999_999_999_999n;
    const account = await accountWith([
      { cost, usage },
      { cost: 1n, usage: 1n },
    ]);
    expect((await ask(account)).totals).toEqual({
      cost: '123456789012345678.123456789013',
      usage: '1000000000000000',
    });
  });

  it('of buckets add up to the group, and those of groups to the total', async () => {
    const account = await accountWith(
      Array.from({ length: 500 }, (_, index) => ({
        workspace: `w${index % 7}`,
        timestamp: START + (index % 24) * 3_600_000,
        cost: BigInt(index) * 333_333_333_333n + 1n,
      })),
    );
    const { groups, totals } = await ask(account, { groupBy: ['workspace'] });
    const sum = (amounts: readonly string[]) => amounts.reduce((total, amount) => total + scaled(amount), 0n);
    for (const group of groups) expect(sum(group.series.costs)).toBe(scaled(group.cost));
    expect(sum(groups.map(({ cost }) => cost))).toBe(scaled(totals?.cost ?? ''));
    expect(scaled(totals?.cost ?? '')).toBe(333_333_333_333n * ((500n * 499n) / 2n) + 500n);
  });
});

type SeriesEntry = [bucket: number, cost: string, usage: string];

function series(...entries: SeriesEntry[]) {
  return {
    buckets: entries.map(([bucket]) => bucket),
    costs: entries.map(([, cost]) => cost),
    usages: entries.map(([, , usage]) => usage),
  };
}

function scaled(text: string): bigint {
  const [integer = '', fraction = ''] = text.split('.');
  return BigInt(integer + fraction.padEnd(12, '0'));
}

describe('a name is only data', () => {
  const NAMES = [
    "it's",
    '"quoted"',
    'back\\slash',
    '\\N',
    '\\',
    "\\'",
    '{account_id: String}',
    '{}',
    '100%',
    '%27',
    'a+b&c=d',
    '?',
    "' OR 1 = 1 --",
    "'; DROP TABLE usage_events; --",
    'NULL',
    'null',
    ' ',
    '日本語 😀',
    '\u2028',
    'e\u0301',
    'x'.repeat(256),
    '😀'.repeat(256),
  ];

  it.each(NAMES)('%j: it is stored, filtered and grouped by as it is', async (name) => {
    const account = await accountWith([
      { workspace: name, resourceName: name, resourceUuid: name },
      { workspace: 'other', resourceName: 'other', resourceUuid: 'other' },
    ]);
    const { groups } = await ask(account, {
      groupBy: ['workspace', 'resource_name', 'resource_uuid'],
      filters: { workspace: name, resource_name: name, resource_uuid: name },
    });
    expect(groups.map(({ values }) => values)).toEqual([
      { workspace: name, resource_name: name, resource_uuid: name, resource_type: 'sandbox' },
    ]);
  });

  it.each(NAMES)('%j: it may be an account', async (name) => {
    const accountId = `${name.slice(0, 200)}${randomUUID()}`;
    await accountWith([{ accountId }]);
    expect((await ask(accountId)).totals?.cost).toBe('1');
  });
});

describe('filters', () => {
  it('select by every dimension, together', async () => {
    const account = await accountWith([
      { workspace: 'a', resourceType: 'agent', billingDimension: 'agent_async_requests_count', resourceUuid: 'u' },
      { workspace: 'a', resourceType: 'agent', billingDimension: 'agent_image_storage_gbs', resourceUuid: 'u' },
      { workspace: 'b', resourceType: 'agent', billingDimension: 'agent_async_requests_count', resourceUuid: 'u' },
      { workspace: 'a', resourceType: 'agent', billingDimension: 'agent_async_requests_count' },
    ]);
    const filters = {
      workspace: 'a',
      resource_type: 'agent',
      resource_name: 'builder',
      resource_uuid: 'u',
      billing_dimension: 'agent_async_requests_count',
    };
    expect((await ask(account, { filters })).totals?.cost).toBe('1');
  });

  it('may ask for events without a resourceUuid', async () => {
    const account = await accountWith([{ resourceUuid: '', cost: 3n * USD }, { resourceUuid: 'u' }]);
    expect((await ask(account, { filters: { resource_uuid: '' } })).totals?.cost).toBe('3');
  });
});
