import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  canonicalGroupBy,
  ENTRY_FIELD,
  enrichedDimensions,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  isGroupByDimension,
  MAX_GROUP_BY_DIMENSIONS,
  showsUsage,
} from './group-by.js';

/** Every groupBy the API accepts, as (groupBy, enriched): one to three dimensions in canonical order. */
const ENRICHMENT: readonly (readonly [string, string])[] = [
  ['workspace', ''],
  ['resource_type', ''],
  ['resource_name', 'workspace,resource_type'],
  ['resource_uuid', 'workspace,resource_type,resource_name'],
  ['billing_dimension', 'resource_type'],
  ['workspace,resource_type', ''],
  ['workspace,resource_name', 'resource_type'],
  ['workspace,resource_uuid', 'resource_type,resource_name'],
  ['workspace,billing_dimension', 'resource_type'],
  ['resource_type,resource_name', 'workspace'],
  ['resource_type,resource_uuid', 'workspace,resource_name'],
  ['resource_type,billing_dimension', ''],
  ['resource_name,resource_uuid', 'workspace,resource_type'],
  ['resource_name,billing_dimension', 'workspace,resource_type'],
  ['resource_uuid,billing_dimension', 'workspace,resource_type,resource_name'],
  ['workspace,resource_type,resource_name', ''],
  ['workspace,resource_type,resource_uuid', 'resource_name'],
  ['workspace,resource_type,billing_dimension', ''],
  ['workspace,resource_name,resource_uuid', 'resource_type'],
  ['workspace,resource_name,billing_dimension', 'resource_type'],
  ['workspace,resource_uuid,billing_dimension', 'resource_type,resource_name'],
  ['resource_type,resource_name,resource_uuid', 'workspace'],
  ['resource_type,resource_name,billing_dimension', 'workspace'],
  ['resource_type,resource_uuid,billing_dimension', 'workspace,resource_name'],
  ['resource_name,resource_uuid,billing_dimension', 'workspace,resource_type'],
];

function dimensions(list: string): GroupByDimension[] {
  return list.split(',').filter(isGroupByDimension);
}

describe('groupBy', () => {
  it('knows five dimensions, in the order of the specification, and takes at most three', () => {
    expect(GROUP_BY_DIMENSIONS).toEqual([
      'workspace',
      'resource_type',
      'resource_name',
      'resource_uuid',
      'billing_dimension',
    ]);
    expect(MAX_GROUP_BY_DIMENSIONS).toBe(3);
  });

  it('has 25 sets of one to three dimensions', () => {
    expect(new Set(ENRICHMENT.map(([groupBy]) => groupBy)).size).toBe(25);
  });

  it.each([...ENRICHMENT, ['', '']])(
    '"%s" has a canonical order, fills "%s" too, and shows usage of one dimension alone',
    (groupBy, enriched) => {
      const wanted = dimensions(groupBy);
      fc.assert(
        fc.property(fc.shuffledSubarray(wanted, { minLength: wanted.length }), (shuffled) => {
          expect(canonicalGroupBy(shuffled).join()).toBe(groupBy);
        }),
      );
      expect(enrichedDimensions(wanted).join()).toBe(enriched);
      expect(showsUsage(wanted)).toBe(groupBy.includes('billing_dimension'));
    },
  );

  it('names the members of an entry as the specification does', () => {
    expect(ENTRY_FIELD).toEqual({
      workspace: 'workspace',
      resource_type: 'resourceType',
      resource_name: 'resourceName',
      resource_uuid: 'resourceUuid',
      billing_dimension: 'billingDimension',
    });
  });

  it.each(['', 'resourceType', 'Workspace', 'label', 'length', ' workspace'])('refuses %j', (name) => {
    expect(isGroupByDimension(name)).toBe(false);
  });
});
