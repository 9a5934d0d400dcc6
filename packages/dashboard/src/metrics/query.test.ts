import { describe, expect, it } from '@jest/globals';
import { type Filters, filterQuery, periodWindow, showsWorkspaces } from '@meterline/catalog/plain';
import type { EventsQuery, FilterQuery, GroupValues } from '@meterline/client';
import { DEFAULT_VIEW, only, type View } from '../view/view.js';
import {
  measureOf,
  metricsQuery,
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

it('the query has the window, resolution, breakdown and filters of the view', () => {
  const shown = view({ groupBy: ['resource_name', 'workspace'], filters: { resourceType: only('agent') } });
  expect(queryOf(shown)).toEqual({
    startTime: '2026-10-23T00:00:00Z',
    endTime: '2026-11-22T00:00:00Z',
    resolution: 'daily',
    groupBy: ['workspace', 'resource_name'],
    resourceType: 'agent',
  });
});

it('the query includes usage if the view has a single billing dimension', () => {
  const shown = view({ groupBy: ['resource_name'], filters: { resourceType: only('volume') } });
  expect(queryOf(shown).groupBy).toEqual(['resource_name', 'billing_dimension']);
  // The API accepts three dimensions.
  const groupBy = ['workspace', 'resource_name', 'resource_uuid'] as const;
  expect(queryOf(view({ ...shown, groupBy })).groupBy).toEqual(groupBy);
});

it('the query for totals has no breakdown, except by billing dimension for usage', () => {
  const filters = { billingDimension: only('volume_storage_gbs') };
  const groupByOf = (shown: View) => wholeQuery(shown, queryOf(shown)).groupBy;
  expect(groupByOf(view({ filters }))).toEqual([]);
  expect(groupByOf(view({ filters, measure: 'usage' }))).toEqual(['billing_dimension']);
});

it('a view that groups or filters by workspace needs an admin', () => {
  expect(showsWorkspaces(view({ groupBy: ['resource_type', 'workspace'] }))).toBe(true);
  expect(showsWorkspaces(view({ filters: { workspace: only('main') } }))).toBe(true);
  expect(showsWorkspaces(DEFAULT_VIEW)).toBe(false);
});

it('a window that is too long for the chosen resolution uses the default resolution', () => {
  const day = { from: Date.parse('2026-11-01T00:00:00Z'), to: Date.parse('2026-11-08T00:00:00Z') };
  const hourly = view({ resolution: 'hourly', period: day });
  expect(resolutionOf(hourly, windowOf(hourly))).toBe('hourly');
  const longer = view({ ...hourly, period: { ...day, to: day.to + 1_000 } });
  expect(resolutionOf(longer, windowOf(longer))).toBe('daily');
});

it('the last twelve months have monthly bars although their last month is incomplete', () => {
  const year = view({ period: { preset: '12m' } });
  expect(resolutionOf(year, windowOf(year))).toBe('monthly');
  expect(resolutionOf({ ...year, resolution: 'weekly' }, windowOf(year))).toBe('weekly');
});

it('an unavailable resolution has a reason', () => {
  const shown = view({ period: { preset: '12m' } });
  expect(resolutionChoices(windowOf(shown))).toEqual([
    { resolution: 'hourly', disabledReason: 'Only available for periods of up to 7 days.' },
    { resolution: 'daily', disabledReason: 'Only available for periods of up to 90 days.' },
    { resolution: 'weekly', disabledReason: undefined },
    { resolution: 'monthly', disabledReason: undefined },
  ]);
});

it.each<[string, Partial<View>, string]>([
  ['one dimension', { filters: { billingDimension: only('agent_async_requests_count') } }, 'events'],
  ['a type with one dimension', { filters: { resourceType: only('custom_domain') } }, 'h'],
  ['dimensions of one unit', { filters: { resourceType: only('sandbox') }, groupBy: ['billing_dimension'] }, 'GB-h'],
])('usage has the unit of %s', (_what, change, unit) => {
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
  [
    'all levels have groups',
    { filters: { resourceType: only('volume') }, groupBy: ['workspace', 'resource_name', 'resource_uuid'] },
    /remove one of the three groups/,
  ],
  ['dimensions are not separated', { filters: { resourceType: only('job') } }, /group by billing dimension/],
])('usage is unavailable with a reason if %s', (_what, change, reason) => {
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
  ['codes', { billingDimension: allBut(...twoDimensions) }, { excludeBillingDimension: twoDimensions }],
  ['no instance', { resourceUuid: only('') }, { withoutResourceUuid: true }],
  ['none or one instance', { resourceUuid: only('', 'u') }, { withoutResourceUuid: true, resourceUuid: 'u' }],
  [
    'all but none and one instance',
    { resourceUuid: allBut('u', '') },
    { excludeWithoutResourceUuid: true, excludeResourceUuid: 'u' },
  ],
])('a filter for %s becomes API parameters', (_what, filters, query) => {
  expect(filterQuery(filters)).toEqual(query);
});

describe('the query for the events behind a row', () => {
  const window = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z' };
  const byName = ['workspace', 'resource_name'] as const;
  const byInstance = ['resource_uuid'] as const;
  const group = { workspace: 'dev', resourceName: 'x', resourceUuid: 'u-1' };

  it.each<[string, Filters, View['groupBy'], GroupValues, Partial<EventsQuery>]>([
    [
      'filters by the values of the row',
      { workspace: only('prod', 'dev') },
      byName,
      group,
      { workspace: ['dev'], resourceName: ['x'] },
    ],
    [
      'has the filters of a view without a breakdown',
      { resourceName: only('x'), resourceType: only('job') },
      [],
      {},
      { resourceName: 'x', resourceType: 'job' },
    ],
    [
      'filters by the instance of the row',
      { resourceUuid: only('u-1', 'u-2', '') },
      byInstance,
      group,
      { resourceUuid: ['u-1'] },
    ],
    [
      'filters by usage without an instance',
      { resourceUuid: only('u-1', '') },
      byInstance,
      { resourceUuid: '' },
      { withoutResourceUuid: true },
    ],
    [
      'replaces an exclusion by the value of the row',
      { resourceUuid: allBut('u-2', ''), resourceType: allBut('job') },
      byInstance,
      group,
      { excludeResourceType: 'job', resourceUuid: ['u-1'] },
    ],
  ])('the query for the events behind a row %s', (_what, filters, groupBy, values, sent) => {
    expect(rowEventsQuery(window, { filters, groupBy }, values)).toEqual({ ...window, ...sent });
  });
});
