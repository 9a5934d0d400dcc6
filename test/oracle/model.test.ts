/** The oracle compared with figures calculated by hand: that the service agrees with it does not prove it right. */
import { expect, it } from '@jest/globals';
import { Oracle, type OracleEvent, type OracleQuery } from './model.js';

const NOW = Date.parse('2026-02-01T00:00:00Z');
const DAY = { startTime: '2026-01-05T00:00:00Z', endTime: '2026-01-06T00:00:00Z', resolution: 'daily' } as const;

function event(id: number, changes: Partial<OracleEvent> = {}): OracleEvent {
  return {
    eventId: `0190c5e4-7b1a-7def-8abc-00000000000${id}`,
    accountId: 'acme',
    workspace: 'prod',
    resourceType: 'sandbox',
    resourceName: 'builder',
    billingDimension: 'sandbox_compute_runtime_gbs',
    usage: 1,
    timestamp: '2026-01-05T10:15:00Z',
    ...changes,
  };
}

function oracleOf(...events: readonly OracleEvent[]): Oracle {
  const oracle = new Oracle();
  for (const each of events) expect(oracle.accept(each, NOW)).toBe('accepted');
  return oracle;
}

interface Body {
  readonly summary: { readonly totalUsage: number };
  readonly data: readonly Readonly<Record<string, unknown>>[];
}

/** Of its first page, by dimension if nothing else is said. */
function read(oracle: Oracle, query: Partial<OracleQuery> = {}, role?: 'member'): Body {
  return JSON.parse(oracle.pages('acme', { ...DAY, groupBy: 'billing_dimension', ...query }, role)[0] ?? '');
}

it('the oracle writes the whole body of an answer', () => {
  const oracle = oracleOf(event(1, { usage: '2.5' }), event(2, { usage: 1e-7 }));
  expect(oracle.metrics('acme', { ...DAY, groupBy: 'billing_dimension' })).toBe(
    '{"startTime":"2026-01-05T00:00:00Z","endTime":"2026-01-06T00:00:00Z","resolution":"daily",' +
      '"summary":{"totalCost":0.000028750001,"totalUsage":2.5000001},' +
      '"data":[{"resourceType":"sandbox","billingDimension":"sandbox_compute_runtime_gbs",' +
      '"summary":{"cost":0.000028750001,"usage":2.5000001},' +
      '"timeseries":[{"timestamp":"2026-01-05T00:00:00Z","cost":0.000028750001,"usage":2.5000001}]}],' +
      '"meta":{"hasMore":false,"nextCursor":""}}',
  );
});

it.each([
  ['0.0000000005', '0'],
  ['0.0000000015', '0.000000002'],
  ['0.0000000025', '0.000000002'],
  ['0.00000000250000000001', '0.000000003'],
  [0.1 + 0.2, '0.3'],
])('the oracle keeps usage %s as %s', (usage, kept) => {
  expect(oracleOf(event(1, { usage })).totals('acme').usage).toBe(kept);
});

it.each([
  ['2021-01-03T23:59:59.999Z', '2020-12-28T00:00:00Z'],
  ['2021-01-04T00:00:00Z', '2021-01-04T00:00:00Z'],
  ['1970-01-01T00:00:00Z', '1969-12-29T00:00:00Z'],
])('the oracle puts %s into the week that begins at %s', (startTime, monday) => {
  const query = { startTime, endTime: '2021-01-05T00:00:00Z', resolution: 'weekly' } as const;
  expect(oracleOf(event(1)).metrics('acme', query)).toContain(`"timeseries":[{"timestamp":"${monday}"`);
});

it('the oracle ranks by cost, then by byte order', () => {
  const names = ['\u{1f600}', '\uffee', 'z', 'a'];
  const oracle = oracleOf(
    ...names.map((resourceName, n) => event(n, { resourceName })),
    event(9, { resourceName: 'm', usage: 2 }),
  );
  const found = read(oracle, { groupBy: 'resource_name' }).data.map(({ resourceName }) => resourceName);
  expect(found).toEqual(['m', 'a', 'z', '\uffee', '\u{1f600}']);
});

it('the oracle names what all usage of a group has in common, but no workspace to a member', () => {
  const fields = (role?: 'member') =>
    read(oracle, { groupBy: 'resource_name' }, role).data.map(({ summary: _, timeseries: __, ...names }) => names);
  const oracle = oracleOf(event(1), event(2));
  expect(fields()).toEqual([{ workspace: 'prod', resourceType: 'sandbox', resourceName: 'builder' }]);
  expect(fields('member')).toEqual([{ resourceType: 'sandbox', resourceName: 'builder' }]);
  oracle.accept(event(3, { workspace: 'dev', usage: 0 }), NOW);
  expect(fields()).toEqual([{ resourceType: 'sandbox', resourceName: 'builder' }]);
});

it.each<[Partial<OracleQuery>, number]>([
  [{}, 7],
  [{ resourceUuid: ['u', 'v'] }, 6],
  [{ resourceUuid: 'u', withoutResourceUuid: 'true' }, 3],
  [{ withoutResourceUuid: 'true' }, 1],
  [{ withoutResourceUuid: 'false' }, 7],
  [{ excludeResourceUuid: 'u' }, 5],
  [{ excludeWithoutResourceUuid: 'true' }, 6],
  [{ excludeResourceUuid: ['u', 'nobody'], excludeWithoutResourceUuid: 'true' }, 4],
  [{ excludeWorkspace: 'dev', excludeResourceName: 'tester' }, 1],
  [{ resourceUuid: ['u', 'v'], excludeResourceUuid: 'v' }, 2],
  [{ excludeResourceType: 'sandbox' }, 0],
  [{ excludeBillingDimension: 'sandbox_image_storage_gbs' }, 7],
])('the oracle selects by %j usage of %d', (filters, usage) => {
  const oracle = oracleOf(
    event(1),
    event(2, { resourceUuid: 'u', usage: 2, workspace: 'dev' }),
    event(3, { resourceUuid: 'v', usage: 4, resourceName: 'tester' }),
  );
  expect(read(oracle, filters).summary.totalUsage).toBe(usage);
});

it.each([null, ''])('the oracle takes resourceUuid %j for none', (resourceUuid) => {
  const oracle = oracleOf(event(1, { resourceUuid }));
  expect(oracle.metrics('acme', { ...DAY, groupBy: 'resource_uuid' })).toContain('"resourceUuid":""');
});

it('the oracle counts the highest revision, removes voided events, and ignores a resend', () => {
  const oracle = oracleOf(
    event(1, { revision: 2, usage: 5 }),
    event(1, { usage: 9 }),
    event(1, { revision: 2, usage: '5.0' }),
  );
  expect(oracle.totals('acme')).toEqual({ events: 1, usage: '5', cost: '0.0000575' });
  oracle.accept(event(1, { revision: 3, void: true }), NOW);
  expect(oracle.totals('acme')).toEqual({ events: 0, usage: '0', cost: '0' });
});

it('the oracle keeps both payloads of a revision until the winner is known, then only the winner', () => {
  const oracle = oracleOf(event(1, { usage: 5 }), event(1, { usage: 7 }));
  expect(() => oracle.totals('acme')).toThrow('contested');
  expect(oracle.stored()).toMatchObject([{ accountId: 'acme', payloads: [{}, {}] }]);
  const worlds = oracle.worlds('acme');
  for (const world of worlds) for (const usage of [5, 7]) world.accept(event(1, { usage }), NOW);
  expect(worlds.map((world) => world.totals('acme').usage)).toEqual(['5', '7']);
});

it.each<[string, object]>([
  ['before 1970', { timestamp: '1969-12-31T23:59:59.999Z' }],
  ['more than ten minutes ahead', { timestamp: '2026-02-01T00:10:00.001Z' }],
  ['of another type than its dimension', { resourceType: 'agent' }],
  ['of half a request', { resourceType: 'agent', billingDimension: 'agent_async_requests_count', usage: 0.5 }],
  ['with a field that there is not', { price: 1 }],
])('the oracle refuses an event %s', (_what, changes) => {
  expect(new Oracle().accept({ ...event(1), ...changes }, NOW)).toBe('refused');
});
