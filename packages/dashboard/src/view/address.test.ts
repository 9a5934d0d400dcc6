import { describe, expect, it } from '@jest/globals';
import { BILLING_DIMENSIONS, GROUP_BY_DIMENSIONS, RESOLUTIONS, RESOURCE_TYPES } from '@meterline/catalog';
import { ALL_ACCOUNTS } from '@meterline/client';
import fc from 'fast-check';
import { PRESETS } from '../period/period.js';
import { readView, writeView } from './address.js';
import { DEFAULT_VIEW, only, PAGE_SIZES, SORT_COLUMNS, sortOf, type View } from './view.js';

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
  groupBy: fc.uniqueArray(fc.constantFrom(...GROUP_BY_DIMENSIONS), { maxLength: 2 }),
  filters: fc.record(
    {
      workspace: filter(name),
      resourceType: filter(fc.constantFrom(...RESOURCE_TYPES)),
      resourceName: filter(name),
      resourceUuid: filter(fc.string()),
      billingDimension: filter(fc.constantFrom(...BILLING_DIMENSIONS)),
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
const view = anyView.map((any) => ({ ...any, sort: sortOf(any) }));

describe('the view in the URL', () => {
  it('reads as what was written, for every view', () => {
    fc.assert(fc.property(view, (any) => expect(readView(writeView(any))).toEqual(any)));
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
  ])('can be read by people, and leaves out defaults: %s', (query, change) => {
    expect(writeView({ ...DEFAULT_VIEW, ...change })).toBe(query);
    expect(readView(query)).toEqual({ ...DEFAULT_VIEW, ...change });
  });

  it.each([
    ['period=yesterday', { period: { preset: '30d' } }],
    ['from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', { period: { preset: '30d' } }],
    ['from=2026-01-01T00:00:00Z', { period: { preset: '30d' } }],
    ['from=1969-01-01T00:00:00Z&to=2026-01-01T00:00:00Z', { period: { preset: '30d' } }],
    ['resolution=yearly', { resolution: undefined }],
    ['group=colour', { groupBy: ['resource_type'] }],
    ['account=acme&group=account,resource_name', { groupBy: ['resource_name'] }],
    ['group=workspace,workspace', { groupBy: ['workspace'] }],
    ['group=workspace,resource_type,resource_name', { groupBy: ['workspace', 'resource_type'] }],
    ['group=none', { groupBy: [] }],
    ['type=toaster&dimension=toast', { filters: {} }],
    ['compare=years', { compare: undefined }],
    ['rows=7', { pageSize: 25 }],
    ['page=0', { page: 1 }],
    ['page=-1', { page: 1 }],
    ['page=two', { page: 1 }],
    ['sort=colour', { sort: { column: 'cost', descending: true } }],
    ['sort=-usage&group=resource_name', { sort: { column: 'cost', descending: true } }],
    ['sort=change', { sort: { column: 'cost', descending: true } }],
    ['measure=both', { measure: 'cost' }],
  ])('ignores what it cannot read: %s', (query, expected) => {
    expect(readView(query)).toMatchObject(expected);
  });
});
