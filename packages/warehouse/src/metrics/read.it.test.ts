/** What the oracle and the contract seldom draw: windows of any years, and names that mean something to SQL. */
import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from './read.js';
import type { MetricsQuery } from './statement.js';

const START = Date.UTC(2025, 9, 1);

const database = testDatabase();

/** What an account has used that has these events alone. */
async function used(
  events: readonly Parameters<typeof pricedEvent>[0][],
  changes: Partial<MetricsQuery>,
  accountId: string = randomUUID(),
) {
  await insertUsageEvents(
    database.warehouse,
    events.map((event) => pricedEvent({ accountId, ...event })),
  );
  return readMetrics(database.warehouse, {
    ...{ accounts: [accountId], filters: {}, resolution: 'monthly', groupBy: [], limit: 100 },
    window: { startTime: START, endTime: START + MS_PER_DAY },
    ...changes,
  });
}

it.each([
  ['1970-01-01T00:00:00Z', '2100-01-01T00:00:00Z', 130 * 12 - 1],
  ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', 2099 * 12 - 1],
  ['1969-12-15T00:00:00Z', '2200-01-01T00:00:00Z', 130 * 12],
])('an event has its place in a window from %s to %s', async (startTime, endTime, bucket) => {
  const window = { startTime: Date.parse(startTime), endTime: Date.parse(endTime) };
  const { groups } = await used([{ timestamp: Date.UTC(2100, 0) - 1 }], { window });
  expect(groups[0]?.series).toEqual({ buckets: [bucket], costs: ['1'], usages: ['1'] });
});

it.each([
  [Date.UTC(1950, 0), 0],
  [Date.UTC(2500, 0), Date.UTC(2600, 0)],
])('a window that can have no events has none: %i to %i', async (startTime, endTime) => {
  const { groups } = await used([{ timestamp: 0 }], { window: { startTime, endTime } });
  expect(groups).toMatchObject([{ cost: '0', series: { buckets: [] } }]);
});

it.each([
  ...["it's", '"quoted"', 'back\\slash', '\\N', '\\', "\\'", '{account_id: String}', '{}', '100%'],
  ...['%27', 'a+b&c=d', '?', "' OR 1 = 1 --", "'; DROP TABLE usage_events; --", 'NULL', 'null', ' '],
  ...['日本語 😀', '\u2028', 'e\u0301', 'x'.repeat(256), '😀'.repeat(256)],
])('the name %j is stored, filtered and grouped by as it is, and may be that of an account', async (name) => {
  const events = [name, 'other'].map((each) => ({ workspace: each, resourceName: each, resourceUuid: each }));
  const { groups, totals } = await used(
    events,
    {
      groupBy: ['workspace', 'resource_name', 'resource_uuid'],
      filters: { workspace: [name], resource_name: [name, 'nobody'], resource_uuid: ['nobody', name] },
    },
    `${name.slice(0, 200)}${randomUUID()}`,
  );
  expect(groups.map(({ values }) => values)).toEqual([
    { workspace: name, resource_name: name, resource_uuid: name, resource_type: 'sandbox' },
  ]);
  expect(totals.cost).toBe('1');
});
