import { expect, it } from '@jest/globals';
import type { MetricsQuery } from '@meterline/catalog';
import { queriesOfGroups } from './groups.js';
import { queryString } from './transport.js';

const QUERY = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z', resolution: 'daily' } as const;
const names = (count: number) => Array.from({ length: count }, (_, index) => `u${index}`);

it('queriesOfGroups splits groups into queries that fit into a URL, and keeps other filters', () => {
  const query: MetricsQuery = {
    ...QUERY,
    ...{ groupBy: ['workspace', 'resource_uuid'], resourceType: 'job', excludeWithoutResourceUuid: true },
    ...{ excludeWorkspace: 'test', resourceUuid: names(90) },
  };
  const groups = ['', ...names(25)].map((resourceUuid) => ({ resourceUuid, workspace: 'main' }));
  const common = { ...QUERY, groupBy: query.groupBy, resourceType: 'job', workspace: ['main'] };
  expect(queriesOfGroups(query, groups)).toEqual([
    { ...common, withoutResourceUuid: true, resourceUuid: names(24) },
    { ...common, resourceUuid: ['u24'] },
  ]);
});

it('queriesOfGroups filters by account if the query groups by account', () => {
  const query: MetricsQuery = { ...QUERY, groupBy: ['account'], excludeAccount: 'acme' };
  expect(queriesOfGroups(query, [{ account: 'globex' }])).toEqual([
    { ...QUERY, groupBy: ['account'], account: ['globex'] },
  ]);
});

it.each<[number, MetricsQuery['groupBy'], number]>([
  [60, ['workspace', 'resource_uuid'], 2],
  [95, ['resource_uuid'], 8],
  // No room for any group: one unfiltered query.
  [100, ['resource_uuid'], 1],
])('queriesOfGroups leaves room for %d values of other filters when grouped by %j', (kept, groupBy, parts) => {
  const groups = names(40).map((resourceUuid) => ({ resourceUuid, workspace: resourceUuid }));
  expect(queriesOfGroups({ ...QUERY, groupBy, resourceName: names(kept) }, groups)).toHaveLength(parts);
});

it('queriesOfGroups includes every group once, in queries that fit into a URL even with the longest names', () => {
  const long = names(40).map((name) => name.padEnd(256, '東'));
  const query: MetricsQuery = { ...QUERY, groupBy: ['workspace', 'resource_name'] };
  const queries = queriesOfGroups(
    query,
    long.map((name) => ({ workspace: name, resourceName: name })),
  );
  expect(queries.flatMap(({ resourceName }) => resourceName)).toEqual(long);
  expect(Math.max(...queries.map((each) => queryString(each).length))).toBeLessThan(16 * 1_024);
});
