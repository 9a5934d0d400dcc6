/** The options of ECharts: stacked bars, and a line for the period before. */
import { approximateDecimal, type DecimalText, type Resolution, type Unit } from '@meterline/catalog';
import type { BarSeriesOption, LineSeriesOption } from 'echarts/charts';
import type { GridComponentOption } from 'echarts/components';
import type { ComposeOption } from 'echarts/core';
import type { Breakdown } from '../breakdown/breakdown.js';
import { axisText } from '../breakdown/texts.js';
import { tickText } from '../period/period.js';
import { type Palette, seriesColor } from './palette.js';

export type ChartOption = ComposeOption<BarSeriesOption | LineSeriesOption | GridComponentOption>;

const CHART_FONT = "'Inter Variable', system-ui, sans-serif";

/** Where the bars are, in pixels from the edges of the chart. The left has room for `$1,234K` and `$0.00000123`. */
export const PLOT = { left: 64, right: 8, top: 12, bottom: 28 } as const;

export interface ChartInput {
  readonly breakdown: Breakdown;
  readonly resolution: Resolution;
  /** The period before, by bucket; shorter while the present one has not ended. */
  readonly previous: readonly DecimalText[] | undefined;
  /** Undefined: money. */
  readonly unit: Unit | undefined;
  readonly palette: Palette;
}

export function chartOption({ breakdown, resolution, previous, unit, palette }: ChartInput): ChartOption {
  const bars = breakdown.series.map(
    (series, rank): BarSeriesOption => ({
      type: 'bar',
      name: series.label,
      stack: 'all',
      data: series.points.map(approximateDecimal),
      color: seriesColor(series, rank, palette),
      barCategoryGap: '22%',
      barMaxWidth: 56,
      emphasis: { focus: 'series' },
      blur: { itemStyle: { opacity: 0.28 } },
    }),
  );
  const line: LineSeriesOption = {
    type: 'line',
    name: 'Previous period',
    data: (previous ?? []).slice(0, breakdown.buckets.length).map(approximateDecimal),
    color: palette.previous,
    lineStyle: { width: 1.5, type: [4, 3] },
    symbol: 'none',
    silent: true,
    emphasis: { disabled: true },
  };
  return {
    animation: false,
    textStyle: { fontFamily: CHART_FONT, fontSize: 12 },
    grid: { ...PLOT, outerBoundsMode: 'none' },
    xAxis: {
      type: 'category',
      data: breakdown.buckets.map((bucket) => tickText(bucket, resolution)),
      axisLine: { lineStyle: { color: palette.axis } },
      axisTick: { show: false },
      axisLabel: { color: palette.text, hideOverlap: true, margin: 10 },
    },
    yAxis: {
      type: 'value',
      splitNumber: 4,
      axisLabel: { color: palette.text, margin: 12, formatter: (value: number) => axisText(value, unit) },
      splitLine: { lineStyle: { color: palette.grid } },
    },
    series: previous ? [...bars, line] : bars,
  };
}
