import { expect, it } from '@jest/globals';
import { decimalText, ZERO } from '@meterline/catalog/plain';
import fc from 'fast-check';
import { type Breakdown, OTHER_KEY } from '../breakdown/breakdown.js';
import { drawChart, plotOf, scaleOf } from './chart-drawing.js';
import { type ChartSource, chartFigures } from './chart-figures.js';

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
  expected: undefined,
  previous: undefined,
  budget: undefined,
};
/** The labels, two bands of 100 pixels, and 100 pixels above the axis. */
const SIZE = { width: 44 + 200 + 8, height: 22 + 100 + 28 };
const draw = (change: Partial<ChartSource> = {}, hidden: readonly string[] = []) =>
  drawChart(chartFigures({ ...source, ...change }), new Set(hidden), SIZE);
const expected = new Map([
  [at('02T00:00:00Z'), decimalText('0.5')],
  [at('03T00:00:00Z'), decimalText('4')],
]);
const previous = {
  distance: '4 weeks earlier',
  isByDate: false,
  buckets: [],
  points: [decimalText('9'), decimalText('8'), decimalText('7')],
};

it('the chart stacks a bar for each series, and separates the bar of the bucket in progress', () => {
  // The scale ends at $4, so that a pixel is 4 cents. The bars have their maximum width.
  expect(draw().bars).toEqual([
    { finished: 'M66 122V90.75h56V122z', unfinished: 'M166 122V122h56V122z' },
    { finished: '', unfinished: 'M166 122V47h56V122z' },
  ]);
  expect(draw({ asOf: at('03T00:00:00Z') }).bars[1]).toEqual({ finished: 'M166 122V47h56V122z', unfinished: '' });
});

it('the axes label the buckets and the amounts', () => {
  expect(draw().times.map(({ text, x }) => `${text} at ${x}`)).toEqual(['1 Nov at 94', '2 Nov at 194']);
  const amounts = ['$0 at 122', '$1 at 97', '$2 at 72', '$3 at 47', '$4 at 22'];
  expect(draw().amounts.map(({ text, y }) => `${text} at ${y}`)).toEqual(amounts);
});

it('the chart omits labels that would overlap', () => {
  const buckets = Array.from({ length: 30 }, (_, day) => at('01T00:00:00Z') + day * 86_400_000);
  const month = { ...breakdown, buckets, series: [], totals: buckets.map(() => ZERO) };
  const { times } = draw({ breakdown: month });
  expect(times.length).toBeGreaterThan(2);
  for (const [index, { text, x }] of times.entries()) {
    const before = times[index - 1];
    if (before) expect(x - before.x).toBeGreaterThan(text.length * 7);
  }
});

it('the chart finds the bar under a point, and none next to or above the bars', () => {
  const { barAt } = draw();
  expect(barAt(94, 100)).toEqual({ series: 0, bucket: 0 });
  expect(barAt(194, 50)).toEqual({ series: 1, bucket: 1 });
  expect([barAt(194, 40), barAt(60, 100), barAt(20, 100)]).toEqual([undefined, undefined, undefined]);
  expect(draw({}, ['agent']).barAt(94, 100)).toBeUndefined();
});

it('the line of the previous period ends with the window', () => {
  // The scale ends at $10.
  expect(draw({ previous }).previous).toBe('M98.5 32L195.5 42');
});

it('a hidden series has no bars, and hides the lines that refer to all groups', () => {
  const shown = draw({ previous, budget: decimalText('300') }, ['agent']);
  expect(shown.bars[0]).toEqual({ finished: '', unfinished: '' });
  expect([shown.previous, shown.budget]).toEqual(['', '']);
  expect(shown.amounts.at(-1)?.text).toBe('$3');
});

it('the scale includes the highest bar, the previous period and the budget', () => {
  expect(draw({ previous }).amounts.at(-1)?.text).toBe('$10');
  expect(draw({ budget: decimalText('300') }).budget).toBe('M50 22H244');
});

it('the budget of each day begins with the current month, by whose days it is divided', () => {
  const october = Date.parse('2026-10-31T00:00:00Z');
  const days = {
    breakdown: { ...breakdown, buckets: [october, at('01T00:00:00Z')] },
    window: { startTime: october, endTime: at('02T00:00:00Z') },
  };
  expect(draw({ ...days, budget: decimalText('300') }).budget).toBe('M147 22H244');
});

it('the forecast continues to the end of the month, and adds to the bar of today', () => {
  const figures = chartFigures({ ...source, expected });
  expect(figures.buckets).toHaveLength(30);
  expect(figures.expected?.slice(0, 4)).toEqual(['0', '0.5', '4', '0']);
  expect(figures.unfinished).toBe(1);
});

it('in a monthly chart, the forecast of the remaining days adds to the bar of the month', () => {
  const months = { ...breakdown, buckets: [Date.parse('2026-10-01T00:00:00Z'), at('01T00:00:00Z')] };
  expect(chartFigures({ ...source, breakdown: months, resolution: 'monthly', expected }).expected).toEqual([
    '0',
    '4.5',
  ]);
});

it('a window that has ended has no forecast, even if its last month is in progress', () => {
  const window = { ...source.window, endTime: at('02T00:00:00Z') };
  const figures = chartFigures({ ...source, window, resolution: 'monthly', expected });
  expect([figures.unfinished, figures.expected]).toEqual([undefined, undefined]);
});

it('there is no forecast for windows that begin before the month, and for hourly bars', () => {
  const window = { startTime: Date.parse('2026-10-25T00:00:00Z'), endTime: at('03T00:00:00Z') };
  expect(chartFigures({ ...source, window, expected }).expected).toBeUndefined();
  expect(chartFigures({ ...source, resolution: 'hourly', expected }).expected).toBeUndefined();
});

it('in a cumulative chart, the forecast continues from the total so far', () => {
  const figures = chartFigures({ ...source, isCumulative: true, expected });
  expect(figures.breakdown.totals).toEqual(['1.25', '4.250001']);
  expect(figures.expected?.slice(0, 4)).toEqual(['0', '0.5', '8.750001', '8.750001']);
});

it.each([
  ['with daily bars is divided evenly', {}, { amount: '10', per: 'day', from: 0 }],
  ['with monthly bars is the monthly amount', { resolution: 'monthly' }, { amount: '300', per: 'month', from: 0 }],
  ['in a cumulative month is the monthly amount', { isCumulative: true }, { amount: '300', per: 'month', from: 0 }],
  ['with hourly bars has no line', { resolution: 'hourly' }, undefined],
  ['with daily bars of earlier months has no line', { asOf: at('30T12:00:00Z') + 86_400_000 }, undefined],
] as const)('the budget %s', (_what, change, line) => {
  expect(chartFigures({ ...source, ...change, budget: decimalText('300') }).budget).toEqual(line);
});

it.each([
  [0, ['$0', '$0.25', '$0.5', '$0.75', '$1']],
  [66.5, ['$0', '$20', '$40', '$60', '$80']],
  [2_500, ['$0', '$1K', '$2K', '$3K']],
  [0.0000000023, ['$0', '$0.000000001', '$0.000000002', '$0.000000003']],
  [1_034_999_999.99, ['$0', '$500M', '$1B', '$1.5B']],
])('the amount axis up to %d has round steps', (largest, labels) => {
  expect(scaleOf(largest, undefined).labels).toEqual(labels);
});

it('the amount axis reaches any largest amount in two to five steps', () => {
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

it('the left margin fits the longest amount label', () => {
  expect(plotOf(scaleOf(80, undefined)).left).toBe(44);
  // 14 characters of at most 7 pixels.
  expect(plotOf(scaleOf(0.0000000000023, undefined)).left).toBeGreaterThan(15 * 7);
});
