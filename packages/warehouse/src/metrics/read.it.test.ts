import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { bucketAxis, type GroupByDimension, RESOLUTIONS, type Resolution } from '@meterline/catalog';
import { askedUsage, DAY, type SeriesEntry, START, series } from '../../../../test/harness/asked-usage.js';

const { accountWith, ask } = askedUsage();

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

  it.each([
    ['1970-01-01T00:00:00Z', '2100-01-01T00:00:00Z', 130 * 12 - 1],
    ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', 2099 * 12 - 1],
    ['1969-12-15T00:00:00Z', '2200-01-01T00:00:00Z', 130 * 12],
  ])('is right in a window from %s to %s, too', async (startTime, endTime, index) => {
    const account = await accountWith([{ timestamp: Date.UTC(2100, 0) - 1 }]);
    const window = { startTime: Date.parse(startTime), endTime: Date.parse(endTime) };
    const { groups } = await ask(account, { window, resolution: 'monthly' });
    expect(groups[0]?.series).toEqual(series([index, '1', '1']));
  });

  it('is nothing in a window that can have no events', async () => {
    const account = await accountWith([{ timestamp: 0 }]);
    for (const [startTime, endTime] of [
      [Date.UTC(1950, 0), 0],
      [Date.UTC(2500, 0), Date.UTC(2600, 0)],
    ] as const) {
      const { groups } = await ask(account, { window: { startTime, endTime }, resolution: 'monthly' });
      expect(groups).toMatchObject([{ cost: '0', series: series() }]);
    }
  });
});

describe('a name is only data', () => {
  const NAMES = [
    ...["it's", '"quoted"', 'back\\slash', '\\N', '\\', "\\'", '{account_id: String}', '{}', '100%'],
    ...['%27', 'a+b&c=d', '?', "' OR 1 = 1 --", "'; DROP TABLE usage_events; --", 'NULL', 'null', ' '],
    ...['日本語 😀', '\u2028', 'e\u0301', 'x'.repeat(256), '😀'.repeat(256)],
  ];

  it.each(NAMES)('%j: it is stored, filtered and grouped by as it is', async (name) => {
    const account = await accountWith([
      { workspace: name, resourceName: name, resourceUuid: name },
      { workspace: 'other', resourceName: 'other', resourceUuid: 'other' },
    ]);
    const { groups } = await ask(account, {
      groupBy: ['workspace', 'resource_name', 'resource_uuid'],
      filters: { workspace: [name], resource_name: [name, 'nobody'], resource_uuid: ['nobody', name] },
    });
    expect(groups.map(({ values }) => values)).toEqual([
      { workspace: name, resource_name: name, resource_uuid: name, resource_type: 'sandbox' },
    ]);
  });

  it.each(NAMES)('%j: it may be an account', async (name) => {
    const accountId = `${name.slice(0, 200)}${randomUUID()}`;
    await accountWith([{ accountId }]);
    expect((await ask(accountId)).totals.cost).toBe('1');
  });
});

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
});
