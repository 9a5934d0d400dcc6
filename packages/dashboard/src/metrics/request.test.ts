import { describe, expect, it } from '@jest/globals';
import { MeterlineConnectionError, MeterlineError } from '@meterline/client';
import { DEFAULT_VIEW, type View } from '../view/view.js';
import {
  measureOf,
  metricsQuery,
  needsAdmin,
  resolutionChoices,
  resolutionOf,
  wholeQuery,
  windowOf,
} from './request.js';
import { retryDelay, shouldRetry } from './retry.js';
import { usageScope } from './usage-scope.js';

const NOW = Date.parse('2026-11-21T16:49:00Z');
const view = (change: Partial<View>): View => ({ ...DEFAULT_VIEW, ...change });

describe('what is asked of the API', () => {
  it('is the window, the resolution, the breakdown and the filters', () => {
    const shown = view({ groupBy: ['resource_name', 'workspace'], filters: { resourceType: 'agent' } });
    expect(metricsQuery(shown, windowOf(shown, NOW))).toEqual({
      startTime: '2026-10-23T00:00:00Z',
      endTime: '2026-11-22T00:00:00Z',
      resolution: 'daily',
      groupBy: ['workspace', 'resource_name'],
      resourceType: 'agent',
    });
  });

  it('has usage wherever a single billing dimension is left', () => {
    const shown = view({ groupBy: ['resource_name'], filters: { resourceType: 'volume' } });
    expect(metricsQuery(shown, windowOf(shown, NOW)).groupBy).toEqual(['resource_name', 'billing_dimension']);
  });

  it('for the whole has no breakdown but the one that shows usage', () => {
    const filters = { billingDimension: 'volume_storage_gbs' } as const;
    const ask = (shown: View) => wholeQuery(shown, metricsQuery(shown, windowOf(shown, NOW))).groupBy;
    expect(ask(view({ filters }))).toEqual([]);
    expect(ask(view({ filters, measure: 'usage' }))).toEqual(['billing_dimension']);
  });

  it('is by workspace only for admins', () => {
    expect(needsAdmin(view({ groupBy: ['resource_type', 'workspace'] }))).toBe(true);
    expect(needsAdmin(view({ filters: { workspace: 'main' } }))).toBe(true);
    expect(needsAdmin(DEFAULT_VIEW)).toBe(false);
  });
});

describe('the resolution', () => {
  it('is the usual one when the window has outgrown the choice', () => {
    const day = { from: Date.parse('2026-11-01T00:00:00Z'), to: Date.parse('2026-11-08T00:00:00Z') };
    const hourly = view({ resolution: 'hourly', period: day });
    expect(resolutionOf(hourly, windowOf(hourly, NOW))).toBe('hourly');
    const longer = view({ ...hourly, period: { ...day, to: day.to + 1_000 } });
    expect(resolutionOf(longer, windowOf(longer, NOW))).toBe('daily');
  });

  it('says why it cannot be chosen', () => {
    const shown = view({ period: { preset: '12m' } });
    expect(resolutionChoices(windowOf(shown, NOW))).toEqual([
      { resolution: 'hourly', disabledReason: 'For up to 7 days; choose a shorter period.' },
      { resolution: 'daily', disabledReason: 'For up to 90 days; choose a shorter period.' },
      { resolution: 'weekly', disabledReason: undefined },
      { resolution: 'monthly', disabledReason: undefined },
    ]);
  });
});

describe('usage', () => {
  it.each<[string, Partial<View>, string]>([
    ['one dimension', { filters: { billingDimension: 'agent_async_requests_count' } }, 'count'],
    ['a type with one dimension', { filters: { resourceType: 'custom_domain' } }, 'hours'],
    ['dimensions of one unit', { filters: { resourceType: 'sandbox' }, groupBy: ['billing_dimension'] }, 'gbs'],
  ])('is in the unit of %s', (_what, change, unit) => {
    expect(usageScope(view(change))).toEqual({ unit });
    expect(measureOf(view({ ...change, measure: 'usage' }))).toBe('usage');
  });

  it.each<[string, Partial<View>, RegExp]>([
    [
      'units are mixed',
      { filters: { resourceType: 'agent' }, groupBy: ['billing_dimension'] },
      /mixes GB-seconds and events/,
    ],
    ['everything is mixed', {}, /mixes GB-seconds, events and hours/],
    ['dimensions are not told apart', { filters: { resourceType: 'job' } }, /Group by billing dimension/],
  ])('is not shown, with the reason, when %s', (_what, change, reason) => {
    expect(usageScope(view(change))).toEqual({ unit: undefined, reason: expect.stringMatching(reason) });
    expect(measureOf(view({ ...change, measure: 'usage' }))).toBe('cost');
  });
});

describe('trying again', () => {
  const failure = (status: number, retryAfter?: number) =>
    new MeterlineError({ status, code: 'some_code', message: 'x', retryAfter });

  it.each([429, 502, 503, 504])('makes sense after %d, a few times', (status) => {
    expect([shouldRetry(0, failure(status)), shouldRetry(4, failure(status))]).toEqual([true, false]);
  });

  it('makes none when the service asks for a wait that nobody sits through', () => {
    expect([shouldRetry(0, failure(429, 60)), shouldRetry(0, failure(429, 61))]).toEqual([true, false]);
  });

  it.each([400, 401, 403, 500])('makes none after %d', (status) => {
    expect(shouldRetry(0, failure(status))).toBe(false);
  });

  it('makes sense when no answer came, and none after a fault of the page', () => {
    expect(shouldRetry(0, new MeterlineConnectionError('x'))).toBe(true);
    expect(shouldRetry(0, new TypeError('x'))).toBe(false);
  });

  it('waits as long as the service asks, or else longer each time', () => {
    expect(retryDelay(0, failure(429, 20))).toBe(20_000);
    expect([0, 1, 2, 9].map((failures) => retryDelay(failures, failure(503)))).toEqual([1_000, 2_000, 4_000, 15_000]);
  });
});
