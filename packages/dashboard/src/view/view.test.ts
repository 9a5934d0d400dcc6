import { describe, expect, it } from '@jest/globals';
import type { GroupByDimension } from '@meterline/catalog';
import { ALL_ACCOUNTS } from '@meterline/client';
import {
  breadcrumb,
  canDrill,
  DEFAULT_VIEW,
  type DimensionValues,
  drillDown,
  type Filters,
  only,
  type View,
  withFilter,
} from './view.js';

const AGENTS = 'agent_compute_runtime_gbs';
const view = (change: Partial<View>): View => ({ ...DEFAULT_VIEW, ...change });

describe('drilling down', () => {
  it.each<[string, GroupByDimension[], DimensionValues, GroupByDimension]>([
    ['a workspace leads to its resource types', ['workspace'], { workspace: 'main' }, 'resource_type'],
    ['a type leads to its resources', ['resource_type'], { resourceType: 'agent' }, 'resource_name'],
    ['a resource leads to what is billed for it', ['resource_name'], { resourceName: 'a' }, 'billing_dimension'],
    ['a billing dimension fixes the type', ['billing_dimension'], { billingDimension: AGENTS }, 'resource_uuid'],
    ['instances without an id lead to what is coarser', ['resource_uuid'], { resourceUuid: '' }, 'resource_type'],
    ['a pair fixes both', ['workspace', 'resource_name'], { workspace: 'b', resourceName: 'a' }, 'billing_dimension'],
  ])('%s', (_what, groupBy, values, next) => {
    const filters = Object.fromEntries(Object.entries(values).map(([field, value]) => [field, only(value)]));
    expect(drillDown(view({ groupBy, page: 4 }), values)).toMatchObject({ groupBy: [next], filters, page: 1 });
  });

  it('takes only what the breakdown is by, not what an entry shows besides', () => {
    const { filters } = drillDown(view({ groupBy: ['resource_name'] }), { resourceName: 'a', workspace: 'main' });
    expect(filters).toEqual({ resourceName: only('a') });
  });

  it('goes from all accounts into one, with the filters', () => {
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

  it('ends where every dimension is fixed', () => {
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
});

describe('the breadcrumb', () => {
  const day = { from: Date.parse('2026-11-14T00:00:00Z'), to: Date.parse('2026-11-15T00:00:00Z') };

  it('is not there before the first step', () => {
    expect(breadcrumb(view({ filters: { workspace: { values: ['a'], isExcluded: true } } }))).toEqual([]);
  });

  it('has a step for each group that was gone into, and leads back to each', () => {
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
    ['takes away a dimension of another type', agents, 'resourceType', only('job'), { resourceType: only('job') }],
    ['takes away a type of another dimension', jobs, 'billingDimension', storage, { billingDimension: storage }],
    ['takes away what it leaves nothing of', agents, 'resourceType', noAgents, { resourceType: noAgents }],
    ['keeps what it leaves', agents, 'resourceType', both, { ...agents.filters, resourceType: both }],
    ['is gone when it is undefined', agents, 'billingDimension', undefined, {}],
    ['is gone without values', agents, 'billingDimension', only(), {}],
  ] as const)('%s', (_what, before, field, filter, filters) => {
    expect(withFilter(before, field, filter).filters).toEqual(filters);
  });
});
