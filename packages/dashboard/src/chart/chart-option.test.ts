import { describe, expect, it } from '@jest/globals';
import { decimalText, ZERO } from '@meterline/catalog';
import fc from 'fast-check';
import { type Breakdown, OTHER_KEY } from '../breakdown/breakdown.js';
import { type ChartSource, chartFigures } from './chart-figures.js';
import { chartOption, plotOf, scaleOf } from './chart-option.js';
import { paletteOf } from './palette.js';

const palette = paletteOf('light');
const at = (text: string) => Date.parse(`2026-11-${text}`);
const series = (key: string, ...points: string[]) => ({
  key,
  label: key,
  values: undefined,
  total: ZERO,
  points: points.map(decimalText),
});
const breakdown: Breakdown = {
  buckets: [at('01T00:00:00Z'), at('02T00:00:00Z')],
  series: [series('agent', '1.25', '0.000001'), series(OTHER_KEY, '0', '3')],
  totals: [decimalText('1.25'), decimalText('3.000001')],
  total: decimalText('4.250001'),
};
const source: ChartSource = {
  breakdown,
  window: { startTime: at('01T00:00:00Z'), endTime: at('03T00:00:00Z') },
  resolution: 'daily',
  unit: undefined,
  asOf: at('02T12:00:00Z'),
  isCumulative: false,
  toCome: undefined,
  previous: undefined,
  budget: undefined,
};
const draw = (change: Partial<ChartSource> = {}, hidden: readonly string[] = []) =>
  chartOption({ figures: chartFigures({ ...source, ...change }), hidden: new Set(hidden), palette }).option;
const toCome = new Map([
  [at('02T00:00:00Z'), decimalText('0.5')],
  [at('03T00:00:00Z'), decimalText('4')],
]);
const previous = {
  distance: '4 weeks earlier',
  buckets: [],
  points: [decimalText('9'), decimalText('8'), decimalText('7')],
};

describe('the chart', () => {
  it('stacks one bar for each series, and marks the one that is not over', () => {
    expect(draw().series).toMatchObject([
      { type: 'bar', stack: 'all', data: [1.25, { value: 0.000001, itemStyle: {} }], color: palette.series[0] },
      { type: 'bar', stack: 'all', data: [0, { value: 3 }], color: palette.other },
    ]);
    expect(draw().xAxis).toMatchObject({ data: ['1 Nov', '2 Nov'] });
    expect(draw({ asOf: at('03T00:00:00Z') }).series).toMatchObject([{ data: [1.25, 0.000001] }, {}]);
  });

  it('draws the period before as a line above its edge, no further than the window', () => {
    expect(draw({ previous }).series).toMatchObject([
      {},
      {},
      { color: palette.surface },
      { type: 'line', data: [9, 8] },
    ]);
  });

  it('takes away the bars of a series, and with it what is about all', () => {
    const shown = draw({ previous, budget: decimalText('300') }, ['agent']);
    expect(shown.series).toMatchObject([{ data: [] }, { data: [0, { value: 3 }] }]);
    expect(shown.yAxis).toMatchObject({ max: 3 });
  });

  it('has room for the highest of everything', () => {
    expect(draw({ previous }).yAxis).toMatchObject({ max: 10 });
  });
});

describe('the forecast in the chart', () => {
  it('goes on to the end of the month, above what there is of today', () => {
    const figures = chartFigures({ ...source, toCome });
    expect(figures.buckets).toHaveLength(30);
    expect(figures.toCome?.slice(0, 4)).toEqual(['0', '0.5', '4', '0']);
    expect(figures.unfinished).toBe(1);
  });

  it('is the sum of what is left on the bar of the month', () => {
    const months = { ...breakdown, buckets: [Date.parse('2026-10-01T00:00:00Z'), at('01T00:00:00Z')] };
    expect(chartFigures({ ...source, breakdown: months, resolution: 'monthly', toCome }).toCome).toEqual(['0', '4.5']);
  });

  it('is not drawn for other windows, nor for usage', () => {
    const window = { startTime: Date.parse('2026-10-25T00:00:00Z'), endTime: at('03T00:00:00Z') };
    expect(chartFigures({ ...source, window, toCome }).toCome).toBeUndefined();
    expect(chartFigures({ ...source, resolution: 'hourly', toCome }).toCome).toBeUndefined();
  });

  it('continues a cumulative chart from the total so far', () => {
    const figures = chartFigures({ ...source, isCumulative: true, toCome });
    expect(figures.breakdown.totals).toEqual(['1.25', '4.250001']);
    expect(figures.toCome?.slice(0, 4)).toEqual(['0', '0.5', '8.750001', '8.750001']);
  });
});

describe('the budget in the chart', () => {
  const budget = decimalText('300');

  it.each([
    ['by days is an even pace', {}, { amount: '10', per: 'a day' }],
    ['by months is itself', { resolution: 'monthly' }, { amount: '300', per: 'a month' }],
    ['of the sum of a month is itself', { isCumulative: true }, { amount: '300', per: 'a month' }],
    ['by hours is no line', { resolution: 'hourly' }, undefined],
  ] as const)('%s', (_what, change, line) => {
    expect(chartFigures({ ...source, ...change, budget }).budget).toEqual(line);
  });
});

describe('the axis of amounts', () => {
  it.each([
    [0, ['$0', '$0.25', '$0.5', '$0.75', '$1']],
    [66.5, ['$0', '$20', '$40', '$60', '$80']],
    [2_500, ['$0', '$1K', '$2K', '$3K']],
    [0.0000000023, ['$0', '$0.000000001', '$0.000000002', '$0.000000003']],
    [1_034_999_999.99, ['$0', '$500M', '$1B', '$1.5B']],
  ])('up to %d has round steps', (largest, labels) => {
    expect(scaleOf(largest, undefined).labels).toEqual(labels);
  });

  it('holds the largest amount, in two to five steps, whatever it is', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-12, max: 1e15, noNaN: true }), (largest) => {
        const { top, step, labels } = scaleOf(largest, undefined);
        expect(top).toBeGreaterThanOrEqual(largest * (1 - 1e-9));
        expect(top - step).toBeLessThan(largest);
        expect(labels.length).toBeGreaterThanOrEqual(3);
        expect(labels.length).toBeLessThanOrEqual(6);
        expect(new Set(labels).size).toBe(labels.length);
      }),
    );
  });

  it('has room for its longest label', () => {
    expect(plotOf(scaleOf(80, undefined)).left).toBe(44);
    // 14 characters of at most 7 pixels.
    expect(plotOf(scaleOf(0.0000000000023, undefined)).left).toBeGreaterThan(15 * 7);
  });
});
