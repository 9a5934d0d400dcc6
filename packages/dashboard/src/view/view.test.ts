import { describe, expect, it } from '@jest/globals';
import { type DimensionValues, type Filters, only } from './filters.js';
import { backTo, canDrill, DEFAULT_VIEW, drillDown, type View, withFilter, zoomInto } from './view.js';

const view = (change: Partial<View>): View => ({ ...DEFAULT_VIEW, ...change });

describe('drilling down', () => {
  it.each<[string, Partial<View>, DimensionValues, Partial<View>]>([
    [
      'a workspace leads to its resource types',
      { groupBy: ['workspace'] },
      { workspace: 'main' },
      { groupBy: ['resource_type'], filters: { workspace: only('main') } },
    ],
    [
      'a type leads to its resources',
      { groupBy: ['resource_type'] },
      { resourceType: 'agent' },
      { groupBy: ['resource_name'], filters: { resourceType: only('agent') } },
    ],
    [
      'a resource leads to what is billed for it',
      { groupBy: ['resource_name'], filters: { resourceType: only('agent') } },
      { resourceName: 'support' },
      { groupBy: ['billing_dimension'], filters: { resourceType: only('agent'), resourceName: only('support') } },
    ],
    [
      'a billing dimension, which fixes the type, leads to instances',
      { groupBy: ['billing_dimension'] },
      { billingDimension: 'volume_storage_gbs' },
      { groupBy: ['resource_uuid'], filters: { billingDimension: only('volume_storage_gbs') } },
    ],
    [
      'instances without an id lead to what is coarser and still open',
      { groupBy: ['resource_uuid'] },
      { resourceUuid: '' },
      { groupBy: ['resource_type'], filters: { resourceUuid: only('') } },
    ],
    [
      'a pair fixes both',
      { groupBy: ['resource_name', 'billing_dimension'] },
      { resourceName: 'support', billingDimension: 'agent_compute_runtime_gbs' },
      {
        groupBy: ['resource_uuid'],
        filters: { resourceName: only('support'), billingDimension: only('agent_compute_runtime_gbs') },
      },
    ],
    ['it goes back to the first page', { groupBy: ['resource_type'], page: 4 }, { resourceType: 'job' }, { page: 1 }],
  ])('%s', (_what, from, values, to) => {
    expect(drillDown(view(from), values)).toMatchObject(to);
  });

  it('takes only what the breakdown is by, not what an entry shows besides', () => {
    const { filters } = drillDown(view({ groupBy: ['resource_name'] }), { resourceName: 'a', workspace: 'main' });
    expect(filters).toEqual({ resourceName: only('a') });
  });

  it('ends where every dimension is fixed', () => {
    const filters: Filters = {
      workspace: only('w'),
      resourceType: only('agent'),
      resourceName: only('n'),
      resourceUuid: only('u'),
      billingDimension: only('agent_compute_runtime_gbs'),
    };
    expect(canDrill(view({ filters }))).toBe(false);
    expect(canDrill(view({ groupBy: [] }))).toBe(false);
    expect(canDrill(view({}))).toBe(true);
  });
});

describe('the way back', () => {
  const day = { from: Date.parse('2026-11-14T00:00:00Z'), to: Date.parse('2026-11-15T00:00:00Z') };

  it('keeps the day that was clicked, and leads back step by step', () => {
    const start = view({ resolution: 'daily', compare: 'period' });
    const agents = drillDown(start, { resourceType: 'agent' }, day);
    expect(agents).toMatchObject({ period: day, resolution: undefined, filters: { resourceType: only('agent') } });
    const support = drillDown(agents, { resourceName: 'support' });
    expect(support).toMatchObject({ period: day, compare: 'period' });
    expect(support.trail).toHaveLength(2);
    expect(backTo(support, 1)).toEqual(agents);
    expect(backTo(support, 0)).toEqual(start);
  });

  it('out of a range of bars leads to the period before', () => {
    const zoomed = zoomInto(view({ groupBy: [] }), day);
    expect(zoomed).toMatchObject({ period: day, groupBy: [] });
    expect(backTo(zoomed, 0).period).toEqual(DEFAULT_VIEW.period);
  });
});

describe('a filter', () => {
  const agents = withFilter(DEFAULT_VIEW, 'billingDimension', only('agent_compute_runtime_gbs'));

  it('takes away another that would leave nothing', () => {
    expect(withFilter(agents, 'resourceType', only('job')).filters).toEqual({ resourceType: only('job') });
    expect(withFilter(agents, 'resourceType', only('job', 'agent')).filters).toEqual({
      billingDimension: only('agent_compute_runtime_gbs'),
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
