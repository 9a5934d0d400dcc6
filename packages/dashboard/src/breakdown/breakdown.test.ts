import { expect, it } from '@jest/globals';
import { type DecimalText, decimalText, formatScaled, sumDecimals, ZERO } from '@meterline/catalog/plain';
import type { MetricsEntry, MetricsResponse } from '@meterline/client';
import fc from 'fast-check';
import {
  accumulatedBreakdown,
  type Breakdown,
  buildBreakdown,
  LISTED_GROUPS,
  OTHER_KEY,
  peakBucket,
} from './breakdown.js';

const DAYS = ['2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z', '2026-11-03T00:00:00Z'] as const;
const WINDOW = { startTime: Date.parse(DAYS[0]), endTime: Date.parse('2026-11-04T00:00:00Z') };

function entry(resourceName: string, costs: readonly DecimalText[]): MetricsEntry {
  return {
    resourceName,
    summary: { cost: sumDecimals(costs) },
    timeseries: DAYS.map((timestamp, index) => ({ timestamp, cost: costs[index] ?? ZERO })),
  };
}

function response(data: readonly MetricsEntry[], hasMore = false): MetricsResponse {
  return {
    startTime: DAYS[0],
    endTime: '2026-11-04T00:00:00Z',
    resolution: 'daily',
    summary: { totalCost: sumDecimals(data.map(({ summary }) => summary.cost)) },
    data: [...data],
    meta: { hasMore, nextCursor: hasMore ? 'more' : '' },
  };
}

const build = (first: MetricsResponse, whole?: MetricsResponse) =>
  buildBreakdown({ first, whole }, ['resource_name'], 'cost', WINDOW);

const bucketSum = ({ series }: Breakdown, bucket: number) =>
  sumDecimals(series.map(({ points }) => points[bucket] ?? ZERO));

const cost = fc.bigInt({ min: 0n, max: 10n ** 24n }).map((scaled) => decimalText(formatScaled(scaled, 12)));
const groups = fc.array(fc.tuple(cost, cost, cost), { minLength: 1, maxLength: 30 });

it('the series add up to the exact totals in every bucket and overall, whatever groups are listed', () => {
  fc.assert(
    fc.property(groups, fc.integer({ min: 1, max: 30 }), (costs, pageSize) => {
      const entries = costs.map((each, index) => entry(`group ${index}`, each));
      const page = entries.slice(0, pageSize);
      const hasMore = page.length < entries.length;
      const total = DAYS.map((_, day) => sumDecimals(costs.map((each) => each[day] ?? ZERO)));
      const shown = build({ ...response(page, hasMore) }, hasMore ? response([entry('all', total)]) : undefined);
      expect(DAYS.map((_, day) => bucketSum(shown, day))).toEqual(total);
      expect(sumDecimals(shown.series.map((series) => series.total))).toBe(sumDecimals(total));
      expect(shown.totals).toEqual(total);
      expect(shown.total).toBe(sumDecimals(total));
    }),
  );
});

it('the breakdown names ten groups, and combines the others under a key that no group has', () => {
  const entries = Array.from({ length: 14 }, (_, index) => entry(`group ${index}`, [decimalText('0.1')]));
  const { series } = build(response(entries));
  expect(series).toHaveLength(LISTED_GROUPS + 1);
  expect(series.at(-1)).toMatchObject({ key: OTHER_KEY, label: '4 other groups', values: undefined, total: '0.4' });
  const named = build(response([entry('Other', [decimalText('1')])]));
  expect(named.series).toMatchObject([{ label: 'Other', values: { resourceName: 'Other' } }]);
  expect(named.series[0]?.key).not.toBe(OTHER_KEY);
});

it('with more pages, the other groups are the totals minus the listed groups', () => {
  const first = response([entry('one', [decimalText('1'), ZERO, decimalText('0.25')])], true);
  const whole = response([entry('all', [decimalText('1.5'), decimalText('2'), decimalText('0.25')])]);
  expect(build(first, whole).series.at(-1)).toMatchObject({ points: ['0.5', '2', '0'], total: '2.5' });
});

it('the breakdown has every bucket of the window, even without usage or in the future', () => {
  const buckets = DAYS.map((day) => Date.parse(day));
  expect(build(response([]))).toEqual({ buckets, series: [], totals: [ZERO, ZERO, ZERO], total: ZERO });
  const one = entry('one', [decimalText('1')]);
  const cut = response([{ ...one, timeseries: one.timeseries.slice(0, 1) }]);
  expect(build(cut)).toMatchObject({ buckets, totals: ['1', '0', '0'], series: [{ points: ['1', '0', '0'] }] });
});

it('a cumulative breakdown has running totals in its buckets and the same overall totals', () => {
  const daily = build(response([entry('one', [decimalText('1'), decimalText('0.5'), decimalText('2')])]));
  expect(accumulatedBreakdown(daily)).toMatchObject({
    totals: ['1', '1.5', '3.5'],
    series: [{ points: ['1', '1.5', '3.5'], total: '3.5' }],
    total: '3.5',
  });
});

it('the peak is the first of equally high buckets, and undefined if all are zero', () => {
  expect(peakBucket([decimalText('1'), decimalText('2'), decimalText('2')])).toBe(1);
  expect(peakBucket([ZERO, ZERO])).toBeUndefined();
});
