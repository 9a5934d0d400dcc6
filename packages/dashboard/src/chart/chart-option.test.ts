import { describe, expect, it } from '@jest/globals';
import { decimalText, ZERO } from '@meterline/catalog';
import { type Breakdown, OTHER_KEY } from '../breakdown/breakdown.js';
import { chartOption } from './chart-option.js';
import { paletteOf } from './palette.js';

const palette = paletteOf('light');
const series = (key: string, ...points: string[]) => ({
  key,
  label: key,
  values: undefined,
  total: ZERO,
  points: points.map(decimalText),
});
const breakdown: Breakdown = {
  buckets: [Date.parse('2026-11-01T00:00:00Z'), Date.parse('2026-11-02T00:00:00Z')],
  series: [series('agent', '1.25', '0.000001'), series(OTHER_KEY, '0', '3')],
  totals: [decimalText('1.25'), decimalText('3.000001')],
  total: decimalText('4.250001'),
};
const option = (previous?: readonly string[]) =>
  chartOption({ breakdown, resolution: 'daily', previous: previous?.map(decimalText), unit: undefined, palette });

describe('the chart', () => {
  it('stacks one bar for each series on the buckets of the window', () => {
    expect(option().series).toMatchObject([
      { type: 'bar', stack: 'all', data: [1.25, 0.000001], color: palette.series[0] },
      { type: 'bar', stack: 'all', data: [0, 3], color: palette.other },
    ]);
    expect(option().xAxis).toMatchObject({ data: ['1 Nov', '2 Nov'] });
  });

  it('draws the period before as a line, up to its own end and no further than the window', () => {
    expect(option(['9']).series).toMatchObject([{}, {}, { type: 'line', data: [9] }]);
    expect(option(['9', '8', '7']).series).toMatchObject([{}, {}, { data: [9, 8] }]);
  });
});
