import { describe, expect, it } from '@jest/globals';
import { isDecimalText } from '@meterline/catalog';
import type { MetricsGroup } from '@meterline/warehouse';
import fc from 'fast-check';
import type { MetricsRequest } from '../contracts/metrics-parameters.js';
import { rankOf } from './cursor.js';
import { pageOf, planMetrics } from './plan.js';

const REQUEST: MetricsRequest = {
  window: { startTime: 0, endTime: 3_600_000 },
  resolution: 'hourly',
  groupBy: ['workspace', 'billing_dimension'],
  filters: { resource_uuid: '' },
  limit: 2,
  cursor: '',
};

function decimal(text: string) {
  if (!isDecimalText(text)) throw new TypeError(text);
  return text;
}

function group(workspace: string): MetricsGroup {
  return {
    values: { workspace, resource_type: 'job', billing_dimension: 'job_compute_runtime_gbs' },
    cost: decimal('1.5'),
    usage: decimal('2'),
    costSeries: [],
    usageSeries: [],
  };
}

const TOTALS = { cost: decimal('9'), usage: decimal('8') };

describe('planMetrics', () => {
  it('asks for one group more than the page holds', () => {
    expect(planMetrics('acme', REQUEST, undefined)).toEqual({
      accountId: 'acme',
      window: REQUEST.window,
      resolution: 'hourly',
      groupBy: ['workspace', 'billing_dimension'],
      filters: { resource_uuid: '' },
      limit: 3,
    });
  });

  it('goes on after a rank', () => {
    const after = rankOf(group('main'), REQUEST);
    expect(after).toEqual({ cost: '1.5', values: ['main', 'job_compute_runtime_gbs'] });
    expect(planMetrics('acme', REQUEST, after).after).toBe(after);
  });
});

describe('pageOf', () => {
  it('holds at most limit groups, and says where the next page begins only if there is one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), fc.nat(101), (limit, count) => {
        const groups = Array.from({ length: Math.min(count, limit + 1) }, (_, index) => group(String(index)));
        const page = pageOf({ groups, totals: TOTALS }, { ...REQUEST, limit });
        expect(page.groups).toEqual(groups.slice(0, limit));
        expect(page.lastBeforeMore).toBe(count > limit ? groups[limit - 1] : undefined);
        expect(page.totals).toBe(TOTALS);
      }),
    );
  });
});
