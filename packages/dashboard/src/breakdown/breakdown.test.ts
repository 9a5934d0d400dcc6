import { describe, expect, it } from '@jest/globals';
import { type DecimalText, decimalText, formatScaled, sumDecimals, ZERO } from '@meterline/catalog';
import type { MetricsAnswer, MetricsEntry } from '@meterline/client';
import fc from 'fast-check';
import {
  accumulatedBreakdown,
  type Breakdown,
  buildBreakdown,
  OTHER_KEY,
  peakBucket,
  SHOWN_GROUPS,
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

function answer(data: readonly MetricsEntry[], hasMore = false): MetricsAnswer {
  return {
    startTime: DAYS[0],
    endTime: '2026-11-04T00:00:00Z',
    resolution: 'daily',
    summary: { totalCost: sumDecimals(data.map(({ summary }) => summary.cost)) },
    data: [...data],
    meta: { hasMore, nextCursor: hasMore ? 'more' : '' },
  };
}

const build = (first: MetricsAnswer, whole?: MetricsAnswer) =>
  buildBreakdown({ first, whole }, ['resource_name'], 'cost', WINDOW);

const bucketSum = ({ series }: Breakdown, bucket: number) =>
  sumDecimals(series.map(({ points }) => points[bucket] ?? ZERO));

const cost = fc.bigInt({ min: 0n, max: 10n ** 24n }).map((scaled) => decimalText(formatScaled(scaled, 12)));
const groups = fc.array(fc.tuple(cost, cost, cost), { minLength: 1, maxLength: 30 });

describe('the breakdown', () => {
  it('adds up in every bucket and in sum, to the last digit, whatever is shown', () => {
    fc.assert(
      fc.property(groups, fc.integer({ min: 1, max: 30 }), (costs, pageSize) => {
        const entries = costs.map((each, index) => entry(`group ${index}`, each));
        const page = entries.slice(0, pageSize);
        const hasMore = page.length < entries.length;
        const total = DAYS.map((_, day) => sumDecimals(costs.map((each) => each[day] ?? ZERO)));
        const shown = build({ ...answer(page, hasMore) }, hasMore ? answer([entry('all', total)]) : undefined);
        expect(DAYS.map((_, day) => bucketSum(shown, day))).toEqual(total);
        expect(sumDecimals(shown.series.map((series) => series.total))).toBe(sumDecimals(total));
        expect(shown.totals).toEqual(total);
        expect(shown.total).toBe(sumDecimals(total));
      }),
    );
  });

  it('shows ten groups by name, and counts the rest, which no name is confused with', () => {
    const entries = Array.from({ length: 14 }, (_, index) => entry(`group ${index}`, [decimalText('0.1')]));
    const { series } = build(answer(entries));
    expect(series).toHaveLength(SHOWN_GROUPS + 1);
    expect(series.at(-1)).toMatchObject({ key: OTHER_KEY, label: '4 other groups', values: undefined, total: '0.4' });
    const named = build(answer([entry('Other', [decimalText('1')])]));
    expect(named.series).toMatchObject([{ label: 'Other', values: { resourceName: 'Other' } }]);
    expect(named.series[0]?.key).not.toBe(OTHER_KEY);
  });

  it('takes Other from the whole when there are more pages', () => {
    const first = answer([entry('one', [decimalText('1'), ZERO, decimalText('0.25')])], true);
    const whole = answer([entry('all', [decimalText('1.5'), decimalText('2'), decimalText('0.25')])]);
    expect(build(first, whole).series.at(-1)).toMatchObject({ points: ['0.5', '2', '0'], total: '2.5' });
  });

  it('has all its buckets, also when there was nothing, or nothing yet', () => {
    const buckets = DAYS.map((day) => Date.parse(day));
    expect(build(answer([]))).toEqual({ buckets, series: [], totals: [ZERO, ZERO, ZERO], total: ZERO });
    const one = entry('one', [decimalText('1')]);
    const cut = answer([{ ...one, timeseries: one.timeseries.slice(0, 1) }]);
    expect(build(cut)).toMatchObject({ buckets, totals: ['1', '0', '0'], series: [{ points: ['1', '0', '0'] }] });
  });

  it('can be cumulative, and keeps its totals', () => {
    const daily = build(answer([entry('one', [decimalText('1'), decimalText('0.5'), decimalText('2')])]));
    expect(accumulatedBreakdown(daily)).toMatchObject({
      totals: ['1', '1.5', '3.5'],
      series: [{ points: ['1', '1.5', '3.5'], total: '3.5' }],
      total: '3.5',
    });
  });

  it('knows its highest bucket: the first of equals, and none of nothing', () => {
    expect(peakBucket([decimalText('1'), decimalText('2'), decimalText('2')])).toBe(1);
    expect(peakBucket([ZERO, ZERO])).toBeUndefined();
  });
});
