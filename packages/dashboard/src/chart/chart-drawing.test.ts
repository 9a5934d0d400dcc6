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
  toCome: undefined,
  previous: undefined,
  budget: undefined,
};
/** Room for the amounts' labels, two bands of 100 pixels, and 100 pixels above the axis. */
const SIZE = { width: 44 + 200 + 8, height: 22 + 100 + 28 };
const draw = (change: Partial<ChartSource> = {}, hidden: readonly string[] = []) =>
  drawChart(chartFigures({ ...source, ...change }), new Set(hidden), SIZE);
const toCome = new Map([
  [at('02T00:00:00Z'), decimalText('0.5')],
  [at('03T00:00:00Z'), decimalText('4')],
]);
const previous = {
  distance: '4 weeks earlier',
  buckets: [],
  points: [decimalText('9'), decimalText('8'), decimalText('7')],
};

it('the chart stacks one bar for each series, and tells the one that is not over from the others', () => {
  // Up to $4, so that a pixel is 4 cents; the bars are as wide as bars become.
  expect(draw().bars).toEqual([
    { closed: 'M66 122V90.75h56V122z', open: 'M166 122V122h56V122z' },
    { closed: '', open: 'M166 122V47h56V122z' },
  ]);
  expect(draw({ asOf: at('03T00:00:00Z') }).bars[1]).toEqual({ closed: 'M166 122V47h56V122z', open: '' });
});

it('the chart names the buckets, and the steps of the amounts', () => {
  expect(draw().times.map(({ text, x }) => `${text} at ${x}`)).toEqual(['1 Nov at 94', '2 Nov at 194']);
  const amounts = ['$0 at 122', '$1 at 97', '$2 at 72', '$3 at 47', '$4 at 22'];
  expect(draw().amounts.map(({ text, y }) => `${text} at ${y}`)).toEqual(amounts);
});

it('the chart leaves out labels that would touch', () => {
  const buckets = Array.from({ length: 30 }, (_, day) => at('01T00:00:00Z') + day * 86_400_000);
  const month = { ...breakdown, buckets, series: [], totals: buckets.map(() => ZERO) };
  const { times } = draw({ breakdown: month });
  expect(times.length).toBeGreaterThan(2);
  for (const [index, { text, x }] of times.entries()) {
    const before = times[index - 1];
    if (before) expect(x - before.x).toBeGreaterThan(text.length * 7);
  }
});

it('the chart finds the bar under a point, and nothing beside or above it', () => {
  const { barAt } = draw();
  expect(barAt(94, 100)).toEqual({ series: 0, bucket: 0 });
  expect(barAt(194, 50)).toEqual({ series: 1, bucket: 1 });
  expect([barAt(194, 40), barAt(60, 100), barAt(20, 100)]).toEqual([undefined, undefined, undefined]);
  expect(draw({}, ['agent']).barAt(94, 100)).toBeUndefined();
});

it('the chart draws the period before as a line, no further than the window', () => {
  // Up to $10.
  expect(draw({ previous }).previous).toBe('M98.5 32L195.5 42');
});

it('the chart takes away the bars of a series, and with it what is about all', () => {
  const shown = draw({ previous, budget: decimalText('300') }, ['agent']);
  expect(shown.bars[0]).toEqual({ closed: '', open: '' });
  expect([shown.previous, shown.budget]).toEqual(['', '']);
  expect(shown.amounts.at(-1)?.text).toBe('$3');
});

it('the chart has room for the highest of everything', () => {
  expect(draw({ previous }).amounts.at(-1)?.text).toBe('$10');
  expect(draw({ budget: decimalText('300') }).budget).toBe('M50 22H244');
});

it('the forecast in the chart goes on to the end of the month, above what there is of today', () => {
  const figures = chartFigures({ ...source, toCome });
  expect(figures.buckets).toHaveLength(30);
  expect(figures.toCome?.slice(0, 4)).toEqual(['0', '0.5', '4', '0']);
  expect(figures.unfinished).toBe(1);
});

it('the forecast in the chart is the sum of what is left on the bar of the month', () => {
  const months = { ...breakdown, buckets: [Date.parse('2026-10-01T00:00:00Z'), at('01T00:00:00Z')] };
  expect(chartFigures({ ...source, breakdown: months, resolution: 'monthly', toCome }).toCome).toEqual(['0', '4.5']);
});

it('the forecast in the chart is not drawn for a window that is over, whose last month goes on', () => {
  const window = { ...source.window, endTime: at('02T00:00:00Z') };
  const figures = chartFigures({ ...source, window, resolution: 'monthly', toCome });
  expect([figures.unfinished, figures.toCome]).toEqual([undefined, undefined]);
});

it('the forecast in the chart is not drawn for other windows, nor for usage', () => {
  const window = { startTime: Date.parse('2026-10-25T00:00:00Z'), endTime: at('03T00:00:00Z') };
  expect(chartFigures({ ...source, window, toCome }).toCome).toBeUndefined();
  expect(chartFigures({ ...source, resolution: 'hourly', toCome }).toCome).toBeUndefined();
});

it('the forecast continues a cumulative chart from the total so far', () => {
  const figures = chartFigures({ ...source, isCumulative: true, toCome });
  expect(figures.breakdown.totals).toEqual(['1.25', '4.250001']);
  expect(figures.toCome?.slice(0, 4)).toEqual(['0', '0.5', '8.750001', '8.750001']);
});

it.each([
  ['by days is an even pace', {}, { amount: '10', per: 'a day' }],
  ['by months is itself', { resolution: 'monthly' }, { amount: '300', per: 'a month' }],
  ['of the sum of a month is itself', { isCumulative: true }, { amount: '300', per: 'a month' }],
  ['by hours is no line', { resolution: 'hourly' }, undefined],
] as const)('the budget in the chart %s', (_what, change, line) => {
  expect(chartFigures({ ...source, ...change, budget: decimalText('300') }).budget).toEqual(line);
});

it.each([
  [0, ['$0', '$0.25', '$0.5', '$0.75', '$1']],
  [66.5, ['$0', '$20', '$40', '$60', '$80']],
  [2_500, ['$0', '$1K', '$2K', '$3K']],
  [0.0000000023, ['$0', '$0.000000001', '$0.000000002', '$0.000000003']],
  [1_034_999_999.99, ['$0', '$500M', '$1B', '$1.5B']],
])('the axis of amounts up to %d has round steps', (largest, labels) => {
  expect(scaleOf(largest, undefined).labels).toEqual(labels);
});

it('the axis of amounts holds the largest amount, in two to five steps, whatever it is', () => {
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

it('the axis of amounts has room for its longest label', () => {
  expect(plotOf(scaleOf(80, undefined)).left).toBe(44);
  // 14 characters of at most 7 pixels.
  expect(plotOf(scaleOf(0.0000000000023, undefined)).left).toBeGreaterThan(15 * 7);
});
