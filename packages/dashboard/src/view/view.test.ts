import { describe, expect, it } from '@jest/globals';
import { canDrill, DEFAULT_VIEW, drillDown, type View, withFilter } from './view.js';

const view = (change: Partial<View>): View => ({ ...DEFAULT_VIEW, ...change });

describe('drilling down', () => {
  it.each<[string, Partial<View>, Parameters<typeof drillDown>[1], Partial<View>]>([
    [
      'a workspace leads to its resource types',
      { groupBy: ['workspace'] },
      { workspace: 'main' },
      { groupBy: ['resource_type'], filters: { workspace: 'main' } },
    ],
    [
      'a type leads to its resources',
      { groupBy: ['resource_type'] },
      { resourceType: 'agent' },
      { groupBy: ['resource_name'], filters: { resourceType: 'agent' } },
    ],
    [
      'a resource leads to what is billed for it',
      { groupBy: ['resource_name'], filters: { resourceType: 'agent' } },
      { resourceName: 'support' },
      { groupBy: ['billing_dimension'], filters: { resourceType: 'agent', resourceName: 'support' } },
    ],
    [
      'a billing dimension, which fixes the type, leads to instances',
      { groupBy: ['billing_dimension'] },
      { billingDimension: 'volume_storage_gbs' },
      { groupBy: ['resource_uuid'], filters: { billingDimension: 'volume_storage_gbs' } },
    ],
    [
      'instances without an id lead to what is coarser and still open',
      { groupBy: ['resource_uuid'] },
      { resourceUuid: '' },
      { groupBy: ['resource_type'], filters: { resourceUuid: '' } },
    ],
    [
      'a pair fixes both',
      { groupBy: ['resource_name', 'billing_dimension'] },
      { resourceName: 'support', billingDimension: 'agent_compute_runtime_gbs' },
      {
        groupBy: ['resource_uuid'],
        filters: { resourceName: 'support', billingDimension: 'agent_compute_runtime_gbs' },
      },
    ],
    ['it goes back to the first page', { groupBy: ['resource_type'], page: 4 }, { resourceType: 'job' }, { page: 1 }],
  ])('%s', (_what, from, values, to) => {
    expect(drillDown(view(from), values)).toMatchObject(to);
  });

  it('takes only what the breakdown is by, not what an entry shows besides', () => {
    const { filters } = drillDown(view({ groupBy: ['resource_name'] }), { resourceName: 'a', workspace: 'main' });
    expect(filters).toEqual({ resourceName: 'a' });
  });

  it('ends where every dimension is fixed', () => {
    const filters = {
      workspace: 'w',
      resourceType: 'agent',
      resourceName: 'n',
      resourceUuid: 'u',
      billingDimension: 'agent_compute_runtime_gbs',
    } as const;
    expect(canDrill(view({ filters }))).toBe(false);
    expect(canDrill(view({ groupBy: [] }))).toBe(false);
    expect(canDrill(view({}))).toBe(true);
  });
});

describe('a filter', () => {
  it('takes away another that would leave nothing', () => {
    const agents = withFilter(DEFAULT_VIEW, 'billingDimension', 'agent_compute_runtime_gbs');
    expect(withFilter(agents, 'resourceType', 'job').filters).toEqual({ resourceType: 'job' });
    expect(withFilter(agents, 'resourceType', 'agent').filters).toEqual({
      billingDimension: 'agent_compute_runtime_gbs',
      resourceType: 'agent',
    });
    const jobs = withFilter(DEFAULT_VIEW, 'resourceType', 'job');
    expect(withFilter(jobs, 'billingDimension', 'volume_storage_gbs').filters).toEqual({
      billingDimension: 'volume_storage_gbs',
    });
  });

  it('is gone when it is set to undefined', () => {
    expect(withFilter(withFilter(DEFAULT_VIEW, 'resourceUuid', ''), 'resourceUuid', undefined).filters).toEqual({});
  });
});
