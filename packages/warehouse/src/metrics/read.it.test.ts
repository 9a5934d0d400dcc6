import { describe, expect, it } from '@jest/globals';
import type { GroupByDimension } from '@meterline/catalog';
import { askedUsage, DAY, START } from '../../../../test/harness/asked-usage.js';

const { accountWith, ask } = askedUsage();

async function groupsBy(accountId: string, ...groupBy: GroupByDimension[]) {
  const { groups } = await ask(accountId, { groupBy });
  return groups.map(({ values, cost }) => ({ ...values, cost }));
}

describe('an enriched value', () => {
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
