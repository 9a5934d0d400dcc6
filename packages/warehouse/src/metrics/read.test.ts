import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { GroupByDimension } from '@meterline/catalog';
import { askedUsage, DAY, START, series, UNIT, USD } from '../../../../test/asked-usage.js';

const { accountWith, ask } = askedUsage();

async function groupsBy(accountId: string, ...groupBy: GroupByDimension[]) {
  const { groups } = await ask(accountId, { groupBy });
  return groups.map(({ values, cost }) => ({ ...values, cost }));
}

describe('without groupBy', () => {
  it('there is one group of everything', async () => {
    const account = await accountWith([{ workspace: 'a' }, { workspace: 'b', cost: 2n * USD }]);
    expect(await ask(account)).toMatchObject({
      groups: [{ values: {}, cost: '3', usage: '2', series: series([0, '3', '2']) }],
      totals: { cost: '3', usage: '2' },
      totalGroups: 1,
    });
  });

  it('there is one group of zeros if nothing was used', async () => {
    expect(await ask(randomUUID())).toMatchObject({
      groups: [{ values: {}, cost: '0', usage: '0', series: series() }],
      totals: { cost: '0', usage: '0' },
      totalGroups: 1,
    });
  });
});

describe('with groupBy', () => {
  it('there is no group if nothing was used', async () => {
    expect(await ask(randomUUID(), { groupBy: ['workspace'] })).toMatchObject({
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
  const TWO_OWNERS = [{ workspace: 'prod', cost: 60n * USD }, { workspace: 'dev' }];

  it('is the one that all usage of the group has', async () => {
    const account = await accountWith([{ resourceName: 'r' }, { resourceName: 'r', timestamp: START + DAY / 2 }]);
    expect(await groupsBy(account, 'resource_name')).toEqual([
      { resource_name: 'r', workspace: 'production', resource_type: 'sandbox', cost: '2' },
    ]);
  });

  it('is left out where there are several, however the cost is spread', async () => {
    const account = await accountWith(TWO_OWNERS);
    expect(await groupsBy(account, 'resource_name')).toEqual([
      { resource_name: 'builder', resource_type: 'sandbox', cost: '61' },
    ]);
  });

  it('is left out where another one cost nothing, or came in another bucket', async () => {
    const free = await accountWith([{ workspace: 'a', cost: 0n, usage: 0n }, { workspace: 'b' }]);
    const later = await accountWith([{ workspace: 'a' }, { workspace: 'b', timestamp: START + DAY - 1 }]);
    for (const account of [free, later]) {
      expect(await groupsBy(account, 'resource_name')).toMatchObject([{ cost: expect.anything() }]);
      expect((await groupsBy(account, 'resource_name'))[0]).not.toHaveProperty('workspace');
    }
  });

  it('does not count what was voided', async () => {
    const account = await accountWith([{ workspace: 'a' }, { workspace: 'b', voided: true }]);
    expect(await groupsBy(account, 'resource_name')).toMatchObject([{ workspace: 'a' }]);
  });

  it('is of what the filters select', async () => {
    const account = await accountWith(TWO_OWNERS);
    const { groups } = await ask(account, { groupBy: ['resource_name'], filters: { workspace: ['dev'] } });
    expect(groups[0]?.values).toMatchObject({ workspace: 'dev' });
  });

  it('is found for each field by itself', async () => {
    const account = await accountWith([
      { resourceUuid: 'u', workspace: 'a', resourceName: 'x', resourceType: 'job' },
      { resourceUuid: 'u', workspace: 'b', resourceName: 'x', resourceType: 'agent' },
      { resourceUuid: '', workspace: 'b', resourceName: 'y', resourceType: 'agent' },
    ]);
    expect(await groupsBy(account, 'resource_uuid')).toEqual([
      { resource_uuid: 'u', resource_name: 'x', cost: '2' },
      { resource_uuid: '', resource_name: 'y', resource_type: 'agent', workspace: 'b', cost: '1' },
    ]);
  });

  it('is no workspace where that is hidden', async () => {
    const account = await accountWith([{}]);
    const { groups } = await ask(account, { groupBy: ['resource_name'], hidesWorkspace: true });
    expect(groups[0]?.values).toEqual({ resource_name: 'builder', resource_type: 'sandbox' });
  });
});

describe('the order of groups', () => {
  it('is by cost, the highest first, then by values, bytewise', async () => {
    const names = ['b', 'a', 'Z', 'é', 'ab', '😀', '\uffee'];
    const account = await accountWith([
      ...names.map((workspace) => ({ workspace })),
      { workspace: 'expensive', cost: 9n * USD },
      { workspace: 'free', cost: 0n },
    ]);
    const { groups } = await ask(account, { groupBy: ['workspace'] });
    expect(groups.map(({ values }) => values.workspace)).toEqual([
      ...['expensive', 'Z', 'a', 'ab', 'b', 'é', '\uffee', '😀', 'free'],
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
    expect(sum(groups.map(({ cost }) => cost))).toBe(scaled(totals.cost));
    expect(scaled(totals.cost)).toBe(333_333_333_333n * ((500n * 499n) / 2n) + 500n);
  });
});

function scaled(text: string): bigint {
  const [integer = '', fraction = ''] = text.split('.');
  return BigInt(integer + fraction.padEnd(12, '0'));
}
