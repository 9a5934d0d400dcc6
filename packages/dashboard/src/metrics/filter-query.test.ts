import { describe, expect, it } from '@jest/globals';
import { only } from '../view/filters.js';
import { filterQuery } from './filter-query.js';

const allBut = (...values: string[]) => ({ values, isExcluded: true });

describe('filters as the API takes them', () => {
  it('have one value, or several of which one is enough', () => {
    expect(filterQuery({ workspace: only('main'), resourceName: only('a', 'b') })).toEqual({
      workspace: 'main',
      resourceName: ['a', 'b'],
    });
  });

  it('exclude by parameters of their own', () => {
    const filters = {
      workspace: allBut('main'),
      resourceType: allBut('agent'),
      resourceName: allBut('a', 'b'),
      billingDimension: allBut('volume_storage_gbs', 'job_compute_runtime_gbs'),
    };
    expect(filterQuery(filters)).toEqual({
      excludeWorkspace: 'main',
      excludeResourceType: 'agent',
      excludeResourceName: ['a', 'b'],
      // In the order of the catalog.
      excludeBillingDimension: ['job_compute_runtime_gbs', 'volume_storage_gbs'],
    });
  });

  it('ask for what has no instance by its own parameter', () => {
    expect(filterQuery({ resourceUuid: only('') })).toEqual({ withoutResourceUuid: true });
    expect(filterQuery({ resourceUuid: only('', 'u') })).toEqual({ withoutResourceUuid: true, resourceUuid: 'u' });
    expect(filterQuery({ resourceUuid: allBut('') })).toEqual({ excludeWithoutResourceUuid: true });
    expect(filterQuery({ resourceUuid: allBut('u', '') })).toEqual({
      excludeWithoutResourceUuid: true,
      excludeResourceUuid: 'u',
    });
  });
});
