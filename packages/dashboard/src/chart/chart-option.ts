/** The options of ECharts: stacked bars, the forecast above them, and lines for the period before and the budget. */
import { approximateDecimal, type DecimalText, ZERO } from '@meterline/catalog';
import type { BarSeriesOption, LineSeriesOption } from 'echarts/charts';
import type { GridComponentOption } from 'echarts/components';
import type { ComposeOption } from 'echarts/core';
import type { Quantity } from '../breakdown/quantities.js';
import { axisText } from '../breakdown/texts.js';
import { tickText } from '../period/period-text.js';
import type { ChartFigures } from './chart-figures.js';
import { type Palette, seriesColor } from './palette.js';

export type ChartOption = ComposeOption<BarSeriesOption | LineSeriesOption | GridComponentOption>;

const CHART_FONT = "'Inter Variable', system-ui, sans-serif";
const STACK = 'all';
/** A bar that is not over. */
const UNFINISHED_OPACITY = 0.55;

export interface ChartInput {
  readonly figures: ChartFigures;
  /** Series that the person has switched off, by key. */
  readonly hidden: ReadonlySet<string>;
  readonly palette: Palette;
}

export interface DrawnChart {
  readonly option: ChartOption;
  readonly plot: Plot;
}

export function chartOption({ figures, hidden, palette }: ChartInput): DrawnChart {
  const { breakdown, buckets, resolution, unit, unfinished } = figures;
  const size = unit ? approximateDecimal(unit.size) : 1;
  const numberOf = (amount: DecimalText) => approximateDecimal(amount) / size;
  const bars = breakdown.series.map(
    (series, rank): BarSeriesOption => ({
      ...BAR,
      name: series.label,
      data: hidden.has(series.key)
        ? []
        : series.points.map((point, bucket) =>
            bucket === unfinished
              ? { value: numberOf(point), itemStyle: { opacity: UNFINISHED_OPACITY } }
              : numberOf(point),
          ),
      color: seriesColor(series, rank, palette),
      emphasis: { focus: 'series' },
      blur: { itemStyle: { opacity: 0.28 } },
    }),
  );
  // All of these are about all groups together.
  const isWhole = hidden.size === 0;
  const forecast = (isWhole && figures.toCome?.map(numberOf)) || [];
  const previous = (isWhole && figures.previous?.points.slice(0, buckets.length).map(numberOf)) || [];
  const budget = isWhole && figures.budget ? buckets.map(() => numberOf(figures.budget?.amount ?? ZERO)) : [];

  const shown = breakdown.series.filter(({ key }) => !hidden.has(key));
  const heights = buckets.map((_, bucket) => {
    const sum = shown.reduce((height, { points }) => height + numberOf(points[bucket] ?? ZERO), 0);
    return sum + (forecast[bucket] ?? 0);
  });
  const scale = scaleOf(Math.max(0, ...heights, ...previous, ...budget), unit);
  const plot = plotOf(scale);
  return {
    plot,
    option: {
      animation: false,
      textStyle: { fontFamily: CHART_FONT, fontSize: 12 },
      grid: { ...plot, outerBoundsMode: 'none' },
      xAxis: {
        type: 'category',
        data: buckets.map((bucket) => tickText(bucket, resolution)),
        axisLine: { lineStyle: { color: palette.axis } },
        axisTick: { show: false },
        axisLabel: { color: palette.text, hideOverlap: true, margin: 10 },
      },
      yAxis: amountAxis(scale, palette),
      series: [
        ...bars,
        ...(forecast.length > 0 ? [forecastBars(forecast, palette)] : []),
        ...(previous.length > 0 ? previousLines(previous, palette) : []),
        ...(budget.length > 0 ? [budgetLine(budget, palette)] : []),
      ],
    },
  };
}

const BAR = { type: 'bar', stack: STACK, barCategoryGap: '22%', barMaxWidth: 56 } as const;
const QUIET_LINE = { type: 'line', symbol: 'none', silent: true, emphasis: { disabled: true } } as const;

function amountAxis({ top, step, labels }: Scale, palette: Palette) {
  return {
    type: 'value',
    min: 0,
    max: top,
    interval: step,
    axisLabel: {
      color: palette.text,
      margin: 12,
      formatter: (_value: number, index: number) => labels[index] ?? '',
    },
    splitLine: { lineStyle: { color: palette.grid } },
  } as const;
}

function forecastBars(data: number[], palette: Palette): BarSeriesOption {
  return {
    ...BAR,
    name: 'Forecast',
    data,
    silent: true,
    itemStyle: { color: palette.forecast, borderColor: palette.forecastEdge, borderType: 'dashed', borderWidth: 1 },
    emphasis: { disabled: true },
  };
}

/** A thin line with an edge in the colour of the page, so that it can be seen on every bar without covering it. */
function previousLines(data: number[], palette: Palette): LineSeriesOption[] {
  const edge = { ...QUIET_LINE, data, z: 4, color: palette.surface, lineStyle: { width: 4, opacity: 0.75 } };
  return [
    edge,
    { ...QUIET_LINE, name: 'Period before', data, z: 5, color: palette.previous, lineStyle: { width: 1.5 } },
  ];
}

function budgetLine(data: number[], palette: Palette): LineSeriesOption {
  return { ...QUIET_LINE, name: 'Budget', data, z: 6, color: palette.budget, lineStyle: { width: 1.5, type: [6, 4] } };
}

/** Of the scale of amounts, which has so many parts at most. */
const STEPS = [1, 2, 2.5, 5, 10] as const;
const PARTS = 4;
/** The widest digit at the chart's size of type, and what is kept free on both sides. */
const CHARACTER_PX = 7;
const MARGIN_PX = 22;
const LEAST_PX = 44;

export interface Scale {
  readonly top: number;
  readonly step: number;
  readonly labels: readonly string[];
}

/** Round steps up to at least the largest amount; up to 1 when there is none. */
export function scaleOf(largest: number, unit: Quantity | undefined): Scale {
  const most = largest > 0 ? largest : 1;
  const magnitude = 10 ** Math.floor(Math.log10(most / PARTS));
  const step = rounded((STEPS.find((each) => each * magnitude * PARTS >= most * (1 - 1e-9)) ?? 10) * magnitude);
  const count = Math.max(1, Math.ceil((most / step) * (1 - 1e-9)));
  const labels = Array.from({ length: count + 1 }, (_, index) => axisText(rounded(index * step), unit));
  return { top: rounded(count * step), step, labels };
}

/** Without the noise of doubles. */
function rounded(value: number): number {
  return Number(value.toPrecision(12));
}

/** Where the bars are, in pixels from the edges of the chart. */
export interface Plot {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** The bars begin as far right as the longest label needs. */
export function plotOf({ labels }: Scale): Plot {
  const longest = Math.max(...labels.map((label) => label.length));
  return { left: Math.max(LEAST_PX, longest * CHARACTER_PX + MARGIN_PX), right: 8, top: 22, bottom: 28 };
}
