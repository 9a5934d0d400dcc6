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

  it('takes away another that would leave nothing', () => {
    expect(withFilter(agents, 'resourceType', only('job')).filters).toEqual({ resourceType: only('job') });
    expect(withFilter(agents, 'resourceType', only('job', 'agent')).filters).toEqual({
      billingDimension: only(AGENTS),
      resourceType: only('job', 'agent'),
    });
    const noAgents = { values: ['agent'], isExcluded: true };
    expect(withFilter(agents, 'resourceType', noAgents).filters).toEqual({ resourceType: noAgents });
    const jobs = withFilter(DEFAULT_VIEW, 'resourceType', only('job'));
    expect(withFilter(jobs, 'billingDimension', only('volume_storage_gbs')).filters).toEqual({
      billingDimension: only('volume_storage_gbs'),
    });
  });

  it('is gone when it is set to undefined, or to no values', () => {
    const one = withFilter(DEFAULT_VIEW, 'resourceUuid', only(''));
    expect(withFilter(one, 'resourceUuid', undefined).filters).toEqual({});
    expect(withFilter(one, 'resourceUuid', only()).filters).toEqual({});
  });
});
