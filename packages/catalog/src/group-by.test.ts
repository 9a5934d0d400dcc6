import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  canonicalGroupBy,
  ENTRY_FIELD,
  enrichedDimensions,
  isGroupByDimension,
  METRICS_DIMENSIONS,
  showsUsage,
} from './group-by.js';

/** What each of the 25 sets fills in a response is a table of test/contract/group-by. */
describe('groupBy', () => {
  it('names the members of an entry as the specification does, in its order', () => {
    expect(Object.entries(ENTRY_FIELD)).toEqual([
      ['account', 'account'],
      ['workspace', 'workspace'],
      ['resource_type', 'resourceType'],
      ['resource_name', 'resourceName'],
      ['resource_uuid', 'resourceUuid'],
      ['billing_dimension', 'billingDimension'],
    ]);
    expect(METRICS_DIMENSIONS).toEqual(Object.keys(ENTRY_FIELD));
  });

  it('has one canonical order', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([...METRICS_DIMENSIONS]), (shuffled) => {
        expect(canonicalGroupBy(shuffled)).toEqual(METRICS_DIMENSIONS.filter((each) => shuffled.includes(each)));
      }),
    );
  });

  it('fills what is coarser than a name, an instance or a dimension, and shows usage of a dimension alone', () => {
    expect(enrichedDimensions(['workspace', 'resource_uuid'])).toEqual(['resource_type', 'resource_name']);
    expect(enrichedDimensions(['resource_type', 'billing_dimension'])).toEqual([]);
    expect([showsUsage(['resource_uuid']), showsUsage(['workspace', 'billing_dimension'])]).toEqual([false, true]);
  });

  it.each(['', 'resourceType', 'Workspace', 'label', 'length', ' workspace', 'account'])('refuses %j', (name) => {
    expect(isGroupByDimension(name)).toBe(false);
  });
});
