import { describe, expect, it } from '@jest/globals';
import {
  BUILT_IN_DIMENSION_NAMES,
  BUILT_IN_RESOURCE_TYPES,
  type Filters,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  MAX_GROUP_BY_DIMENSIONS,
  PAGE_SIZES,
  PRESETS,
  RESOLUTIONS,
  SORT_COLUMNS,
} from '@meterline/catalog/plain';
import { ALL_ACCOUNTS, type GroupValues } from '@meterline/client';
import fc from 'fast-check';
import { ignoredParameter, readView, readViewOf, writeView } from './address.js';
import { breadcrumb, canDrill, DEFAULT_VIEW, drillDown, only, sortOf, type View, withFilter } from './view.js';

const AGENTS = 'agent_compute_runtime_gbs';
const view = (change: Partial<View>): View => ({ ...DEFAULT_VIEW, ...change });

it.each<[string, GroupByDimension[], GroupValues, GroupByDimension]>([
  ['a workspace leads to its resource types', ['workspace'], { workspace: 'main' }, 'resource_type'],
  ['a type leads to its resources', ['resource_type'], { resourceType: 'agent' }, 'resource_name'],
  ['a resource leads to its billing dimensions', ['resource_name'], { resourceName: 'a' }, 'billing_dimension'],
  ['a billing dimension fixes the type', ['billing_dimension'], { billingDimension: AGENTS }, 'resource_uuid'],
  [
    'usage without an instance ID leads to the resource types',
    ['resource_uuid'],
    { resourceUuid: '' },
    'resource_type',
  ],
  ['a pair fixes both', ['workspace', 'resource_name'], { workspace: 'b', resourceName: 'a' }, 'billing_dimension'],
])('drilling down: %s', (_what, groupBy, values, next) => {
  const filters = Object.fromEntries(Object.entries(values).map(([field, value]) => [field, only(value ?? '')]));
  expect(drillDown(view({ groupBy, page: 4 }), values)).toMatchObject({ groupBy: [next], filters, page: 1 });
});

it('drilling down filters only by the dimensions of the breakdown', () => {
  const { filters } = drillDown(view({ groupBy: ['resource_name'] }), { resourceName: 'a', workspace: 'main' });
  expect(filters).toEqual({ resourceName: only('a') });
});

it('drilling down from all accounts opens one account and keeps the filters', () => {
  const all = view({
    account: ALL_ACCOUNTS,
    groupBy: ['account', 'resource_type'],
    filters: { workspace: only('w') },
  });
  expect(drillDown(all, { account: 'acme', resourceType: 'agent' })).toMatchObject({
    account: 'acme',
    groupBy: ['resource_name'],
    filters: { workspace: only('w'), resourceType: only('agent') },
  });
  expect(drillDown({ ...all, groupBy: ['account'] }, { account: 'acme' }).groupBy).toEqual(['resource_type']);
});

it('drilling down ends when the filters fix every dimension', () => {
  const filters: Filters = {
    workspace: only('w'),
    resourceType: only('agent'),
    resourceName: only('n'),
    resourceUuid: only('u'),
    billingDimension: only(AGENTS),
  };
  expect(canDrill(view({ filters }))).toBe(false);
  expect(canDrill(view({ groupBy: [] }))).toBe(false);
  expect(canDrill(view({}))).toBe(true);
});

describe('the breadcrumb', () => {
  const day = { from: Date.parse('2026-11-14T00:00:00Z'), to: Date.parse('2026-11-15T00:00:00Z') };

  it('there is no breadcrumb before the first step', () => {
    expect(breadcrumb(view({ filters: { workspace: { values: ['a'], isExcluded: true } } }))).toEqual([]);
  });

  it('the breadcrumb has a step back to each opened group', () => {
    const start = view({ compare: 'period', filters: { workspace: only('a', 'b') } });
    const agents = drillDown(start, { resourceType: 'agent' }, day);
    expect(agents).toMatchObject({ period: day, resolution: undefined, filters: { resourceType: only('agent') } });
    const crumbs = breadcrumb(drillDown(agents, { resourceName: 'support' }));
    expect(crumbs.map(({ field }) => field)).toEqual([undefined, 'resourceType', 'resourceName']);
    expect(crumbs.map(({ to }) => to)).toEqual([{ ...start, period: day }, agents, undefined]);
  });
});

describe('a filter', () => {
  const agents = withFilter(DEFAULT_VIEW, 'billingDimension', only(AGENTS));
  const jobs = withFilter(DEFAULT_VIEW, 'resourceType', only('job'));
  const both = only('job', 'agent');
  const noAgents = { values: ['agent'], isExcluded: true };
  const storage = only('volume_storage_gbs');

  it.each([
    ['removes a dimension of another type', agents, 'resourceType', only('job'), { resourceType: only('job') }],
    ['removes a type of another dimension', jobs, 'billingDimension', storage, { billingDimension: storage }],
    ['removes a filter that would match nothing', agents, 'resourceType', noAgents, { resourceType: noAgents }],
    ['keeps a filter that still matches', agents, 'resourceType', both, { ...agents.filters, resourceType: both }],
    ['is removed when it is undefined', agents, 'billingDimension', undefined, {}],
    ['is removed when it has no values', agents, 'billingDimension', only(), {}],
  ] as const)('a filter %s', (_what, before, field, filter, filters) => {
    expect(withFilter(before, field, filter).filters).toEqual(filters);
  });
});

const name = fc.string({ minLength: 1, unit: 'grapheme' });
const second = fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1_000);
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });

const filter = (value: fc.Arbitrary<string>) =>
  fc.record({ values: fc.uniqueArray(value, { minLength: 1, maxLength: 4 }), isExcluded: fc.boolean() });

const anyView: fc.Arbitrary<View> = fc.record({
  account: optional(name),
  period: fc.oneof(
    fc.constantFrom(...PRESETS).map(({ id }) => ({ preset: id })),
    fc.tuple(second, fc.integer({ min: 1, max: 1e9 })).map(([from, length]) => ({ from, to: from + length })),
  ),
  resolution: optional(fc.constantFrom(...RESOLUTIONS)),
  groupBy: fc.uniqueArray(fc.constantFrom(...GROUP_BY_DIMENSIONS), { maxLength: MAX_GROUP_BY_DIMENSIONS }),
  filters: fc.record(
    {
      workspace: filter(name),
      resourceType: filter(fc.constantFrom(...BUILT_IN_RESOURCE_TYPES)),
      resourceName: filter(name),
      resourceUuid: filter(fc.string()),
      billingDimension: filter(fc.constantFrom(...BUILT_IN_DIMENSION_NAMES)),
    },
    { requiredKeys: [] },
  ),
  measure: fc.constantFrom('cost', 'usage'),
  compare: optional(fc.constantFrom('period', 'months')),
  isCumulative: fc.boolean(),
  asTable: fc.boolean(),
  isExact: fc.boolean(),
  isLive: fc.boolean(),
  sort: fc.record({ column: fc.constantFrom(...SORT_COLUMNS), descending: fc.boolean() }),
  search: fc.string({ unit: 'grapheme' }),
  pageSize: fc.constantFrom(...PAGE_SIZES),
  page: fc.integer({ min: 1, max: 999_999 }),
});
const viewInUrl = anyView.map((any) => ({ ...any, sort: sortOf(any) }));

it('reading the URL of any view returns the same view', () => {
  fc.assert(fc.property(viewInUrl, (any) => expect(readView(writeView(any))).toEqual(any)));
});

it.each<[string, Partial<View>]>([
  ['', {}],
  ['accounts=all&group=account%2Cresource_name', { account: ALL_ACCOUNTS, groupBy: ['account', 'resource_name'] }],
  [
    'account=acme&group=resource_name%2Cbilling_dimension&not-workspace=staging&type=agent&type=job&uuid=&compare=period',
    {
      account: 'acme',
      groupBy: ['resource_name', 'billing_dimension'],
      filters: {
        workspace: { values: ['staging'], isExcluded: true },
        resourceType: only('agent', 'job'),
        resourceUuid: only(''),
      },
      compare: 'period',
    },
  ],
])('the URL is readable and omits defaults: %s', (query, change) => {
  expect(writeView({ ...DEFAULT_VIEW, ...change })).toBe(query);
  expect(readView(query)).toEqual({ ...DEFAULT_VIEW, ...change });
});

it.each([
  ['period=yesterday', { period: { preset: '30d' } }],
  ['from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', { period: { preset: '30d' } }],
  ['from=2026-01-01T00:00:00Z', { period: { preset: '30d' } }],
  ['from=1969-01-01T00:00:00Z&to=2026-01-01T00:00:00Z', { period: { preset: '30d' } }],
  ['resolution=yearly', { resolution: undefined }],
  ['group=color', { groupBy: ['resource_type'] }],
  ['account=acme&group=account,resource_name', { groupBy: ['resource_name'] }],
  ['group=workspace,workspace', { groupBy: ['workspace'] }],
  [
    'group=workspace,resource_type,resource_name,resource_uuid',
    { groupBy: ['workspace', 'resource_type', 'resource_name'] },
  ],
  ['group=none', { groupBy: [] }],
  ['type=Toaster&dimension=toast', { filters: {} }],
  ['compare=years', { compare: undefined }],
  ['rows=7', { pageSize: 25 }],
  ['page=0', { page: 1 }],
  ['page=-1', { page: 1 }],
  ['page=two', { page: 1 }],
  ['sort=color', { sort: { column: 'cost', descending: true } }],
  ['sort=-usage&group=resource_name', { sort: { column: 'cost', descending: true } }],
  ['sort=change', { sort: { column: 'cost', descending: true } }],
  ['measure=both', { measure: 'cost' }],
])('invalid parameters of a URL are ignored: %s', (query, expected) => {
  expect(readView(query)).toMatchObject(expected);
});

it.each([
  ['account=acme&period=month-to-date&group=workspace', 'period=month-to-date'],
  ['accounts=all&groupBy=account', 'groupBy=account'],
  ['accounts=some&account=acme', 'accounts=some'],
  ['account=acme&period=month&type=toaster&not-name=a&not-name=b&page=2&exact=1', undefined],
  ['accounts=all&group=account', undefined],
])('the page can name the parameter that it ignores in a URL: %s', (query, ignored) => {
  expect(ignoredParameter(query)).toBe(ignored);
});

it.each<[string, string, Partial<View>]>([
  ['', ALL_ACCOUNTS, { groupBy: ['account'] }],
  ['group=color', ALL_ACCOUNTS, { groupBy: ['account'] }],
  ['group=workspace&account=', ALL_ACCOUNTS, { groupBy: ['workspace'] }],
  ['group=account,workspace', ALL_ACCOUNTS, { groupBy: ['account', 'workspace'] }],
  ['group=none&compare=period', ALL_ACCOUNTS, { groupBy: [], compare: 'period' }],
  ['', 'acme', {}],
  ['group=account,workspace', 'acme', { groupBy: ['workspace'] }],
])('a URL without an account keeps its grouping: %s for %s', (query, account, change) => {
  expect(readViewOf(account, query)).toEqual({ ...DEFAULT_VIEW, account, ...change });
});
