import { describe, expect, it } from '@jest/globals';
import type { EventsQuery, FilterQuery, GroupValues } from '@meterline/client';
import { periodWindow } from '../period/period.js';
import { DEFAULT_VIEW, type Filters, only, type View } from '../view/view.js';
import {
  filterQuery,
  measureOf,
  metricsQuery,
  needsAdmin,
  resolutionChoices,
  resolutionOf,
  rowEventsQuery,
  usageScope,
  wholeQuery,
} from './query.js';

const NOW = Date.parse('2026-11-21T16:49:00Z');
const view = (change: Partial<View>): View => ({ ...DEFAULT_VIEW, ...change });
const windowOf = ({ period }: View) => periodWindow(period, NOW);
const queryOf = (shown: View) => {
  const window = windowOf(shown);
  const requested = { window, resolution: resolutionOf(shown, window), filters: filterQuery(shown.filters) };
  return metricsQuery(shown, requested);
};

it('the query of a view is the window, the resolution, the breakdown and the filters', () => {
  const shown = view({ groupBy: ['resource_name', 'workspace'], filters: { resourceType: only('agent') } });
  expect(queryOf(shown)).toEqual({
    startTime: '2026-10-23T00:00:00Z',
    endTime: '2026-11-22T00:00:00Z',
    resolution: 'daily',
    groupBy: ['workspace', 'resource_name'],
    resourceType: 'agent',
  });
});

it('the query of a view has usage where a single billing dimension is left', () => {
  const shown = view({ groupBy: ['resource_name'], filters: { resourceType: only('volume') } });
  expect(queryOf(shown).groupBy).toEqual(['resource_name', 'billing_dimension']);
});

it('the query for the whole has no breakdown but the one that shows usage', () => {
  const filters = { billingDimension: only('volume_storage_gbs') };
  const ask = (shown: View) => wholeQuery(shown, queryOf(shown)).groupBy;
  expect(ask(view({ filters }))).toEqual([]);
  expect(ask(view({ filters, measure: 'usage' }))).toEqual(['billing_dimension']);
});

it('a view by workspace is only for admins', () => {
  expect(needsAdmin(view({ groupBy: ['resource_type', 'workspace'] }))).toBe(true);
  expect(needsAdmin(view({ filters: { workspace: only('main') } }))).toBe(true);
  expect(needsAdmin(DEFAULT_VIEW)).toBe(false);
});

it('the resolution is the default one when the window is too long for the choice', () => {
  const day = { from: Date.parse('2026-11-01T00:00:00Z'), to: Date.parse('2026-11-08T00:00:00Z') };
  const hourly = view({ resolution: 'hourly', period: day });
  expect(resolutionOf(hourly, windowOf(hourly))).toBe('hourly');
  const longer = view({ ...hourly, period: { ...day, to: day.to + 1_000 } });
  expect(resolutionOf(longer, windowOf(longer))).toBe('daily');
});

it('a resolution says why it cannot be chosen', () => {
  const shown = view({ period: { preset: '12m' } });
  expect(resolutionChoices(windowOf(shown))).toEqual([
    { resolution: 'hourly', disabledReason: 'For up to 7 days; choose a shorter period.' },
    { resolution: 'daily', disabledReason: 'For up to 90 days; choose a shorter period.' },
    { resolution: 'weekly', disabledReason: undefined },
    { resolution: 'monthly', disabledReason: undefined },
  ]);
});

it.each<[string, Partial<View>, string]>([
  ['one dimension', { filters: { billingDimension: only('agent_async_requests_count') } }, 'events'],
  ['a type with one dimension', { filters: { resourceType: only('custom_domain') } }, 'h'],
  ['dimensions of one unit', { filters: { resourceType: only('sandbox') }, groupBy: ['billing_dimension'] }, 'GB-h'],
])('usage is in the unit of %s', (_what, change, unit) => {
  expect(usageScope(view(change))).toMatchObject({ unit: { name: unit } });
  expect(measureOf(view({ ...change, measure: 'usage' }))).toBe('usage');
});

it.each<[string, Partial<View>, RegExp]>([
  [
    'units are mixed',
    { filters: { resourceType: only('agent') }, groupBy: ['billing_dimension'] },
    /mixes GB-seconds and events/,
  ],
  ['everything is mixed', {}, /mixes GB-seconds, events and hours/],
  ['dimensions are not separated', { filters: { resourceType: only('job') } }, /Group by billing dimension/],
])('usage is not shown, with the reason, when %s', (_what, change, reason) => {
  expect(usageScope(view(change))).toEqual({ unit: undefined, reason: expect.stringMatching(reason) });
  expect(measureOf(view({ ...change, measure: 'usage' }))).toBe('cost');
});

const allBut = (...values: string[]) => ({ values, isExcluded: true });
const twoDimensions = ['volume_storage_gbs', 'job_compute_runtime_gbs'];

it.each<[string, Filters, FilterQuery]>([
  ['one value', { workspace: only('main') }, { workspace: 'main' }],
  ['several values', { resourceName: only('a', 'b') }, { resourceName: ['a', 'b'] }],
  [
    'excluded values',
    { workspace: allBut('main'), resourceType: allBut('agent'), resourceName: allBut('a', 'b') },
    { excludeWorkspace: 'main', excludeResourceType: 'agent', excludeResourceName: ['a', 'b'] },
  ],
  [
    'codes, in the order of the catalog',
    { billingDimension: allBut(...twoDimensions) },
    { excludeBillingDimension: ['job_compute_runtime_gbs', 'volume_storage_gbs'] },
  ],
  ['no instance', { resourceUuid: only('') }, { withoutResourceUuid: true }],
  ['none or one instance', { resourceUuid: only('', 'u') }, { withoutResourceUuid: true, resourceUuid: 'u' }],
  [
    'all but none and one instance',
    { resourceUuid: allBut('u', '') },
    { excludeWithoutResourceUuid: true, excludeResourceUuid: 'u' },
  ],
])('a filter for %s is one as the API takes it', (_what, filters, query) => {
  expect(filterQuery(filters)).toEqual(query);
});

describe('the query for the events behind a row', () => {
  const window = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z' };
  const byName = ['workspace', 'resource_name'] as const;
  const byInstance = ['resource_uuid'] as const;
  const group = { workspace: 'dev', resourceName: 'x', resourceUuid: 'u-1' };

  it.each<[string, Filters, View['groupBy'], GroupValues, Partial<EventsQuery>]>([
    [
      'has the values that the row is grouped by',
      { workspace: only('prod', 'dev') },
      byName,
      group,
      { workspace: ['dev'], resourceName: ['x'] },
    ],
    [
      'has the filters of a table without groups',
      { resourceName: only('x'), resourceType: only('job') },
      [],
      {},
      { resourceName: 'x', resourceType: 'job' },
    ],
    [
      'is for an instance alone',
      { resourceUuid: only('u-1', 'u-2', '') },
      byInstance,
      group,
      { resourceUuid: ['u-1'] },
    ],
    [
      'is for what has no instance',
      { resourceUuid: only('u-1', '') },
      byInstance,
      { resourceUuid: '' },
      { withoutResourceUuid: true },
    ],
    [
      'leaves nothing out of what the row has a value of',
      { resourceUuid: allBut('u-2', ''), resourceType: allBut('job') },
      byInstance,
      group,
      { excludeResourceType: 'job', resourceUuid: ['u-1'] },
    ],
  ])('the query for the events behind a row %s', (_what, filters, groupBy, values, sent) => {
    expect(rowEventsQuery(window, { filters, groupBy }, values)).toEqual({ ...window, ...sent });
  });
});
