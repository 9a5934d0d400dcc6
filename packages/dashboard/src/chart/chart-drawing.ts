/**
 * The geometry of the chart, in pixels: stacked bars, the forecast above them, and lines for the period before and the budget. One path
 * for all bars of a series, so that a year of hours is as few nodes as a week.
 */
import { type DecimalText, ZERO } from '@meterline/catalog/plain';
import type { Quantity } from '../breakdown/texts.js';
import { axisText } from '../breakdown/texts.js';
import { tickText } from '../period/period.js';
import type { ChartFigures } from './chart-figures.js';

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Label {
  readonly text: string;
  readonly x: number;
  readonly y: number;
}

/** Values of the attribute `d` of SVG; empty where nothing is drawn. */
export interface ChartDrawing {
  readonly plot: Plot;
  /** The width of a bucket, of which the bar takes most. */
  readonly band: number;
  /** By series; `open` is the bar of the bucket that is not over. */
  readonly bars: readonly { readonly closed: string; readonly open: string }[];
  readonly forecast: string;
  readonly previous: string;
  readonly budget: string;
  /** Lines across the chart at each step of the axis of amounts, and the axis itself. */
  readonly grid: string;
  readonly axis: string;
  readonly amounts: readonly Label[];
  readonly times: readonly Label[];
  /** The bar at a point. */
  barAt(x: number, y: number): { readonly series: number; readonly bucket: number } | undefined;
}

const BAR_SHARE = 0.78;
const LARGEST_BAR_PX = 56;

/** @param hidden the keys of series that the person has switched off */
export function drawChart(figures: ChartFigures, hidden: ReadonlySet<string>, size: Size): ChartDrawing {
  const { breakdown, buckets, resolution, unit, unfinished } = figures;
  const unitSize = unit ? Number(unit.size) : 1;
  const numberOf = (amount: DecimalText | undefined) => Number(amount ?? ZERO) / unitSize;
  // All of these are about all groups together.
  const isWhole = hidden.size === 0;
  const forecast = (isWhole && figures.toCome?.map(numberOf)) || [];
  const previous = (isWhole && figures.previous?.points.slice(0, buckets.length).map(numberOf)) || [];
  const budget = isWhole && figures.budget ? numberOf(figures.budget.amount) : undefined;

  /** Where the bars upon each other end so far: the first series is at the bottom. */
  const heights = buckets.map(() => 0);
  const edges = breakdown.series.map(({ key, points }) =>
    (hidden.has(key) ? [] : points).map((point, bucket) => {
      const from = heights[bucket] ?? 0;
      const to = from + numberOf(point);
      heights[bucket] = to;
      return { from, to };
    }),
  );
  const tops = heights.map((height, bucket) => height + (forecast[bucket] ?? 0));
  const scale = scaleOf(Math.max(0, ...tops, ...previous, budget ?? 0), unit);
  const plot = plotOf(scale);
  const right = size.width - plot.right;
  const base = size.height - plot.bottom;
  const band = Math.max(0, right - plot.left) / buckets.length;
  const barWidth = Math.min(LARGEST_BAR_PX, band * BAR_SHARE);

  const middle = (bucket: number) => plot.left + (bucket + 0.5) * band;
  const level = (amount: number) => base - (amount / scale.top) * Math.max(0, base - plot.top);
  const bar = (bucket: number, from: number, to: number) =>
    to > from
      ? `M${px(middle(bucket) - barWidth / 2)} ${px(level(from))}V${px(level(to))}h${px(barWidth)}V${px(level(from))}z`
      : '';
  const line = (amounts: readonly number[]) =>
    amounts.map((amount, bucket) => `${bucket === 0 ? 'M' : 'L'}${px(middle(bucket))} ${px(level(amount))}`).join('');
  const across = (amount: number) => `M${px(plot.left)} ${px(level(amount))}H${px(right)}`;
  const steps = scale.labels.map((_, index) => index * scale.step);

  return {
    plot,
    band,
    bars: edges.map((bars) => {
      const paths = bars.map(({ from, to }, bucket) => bar(bucket, from, to));
      return {
        closed: paths.filter((_, bucket) => bucket !== unfinished).join(''),
        open: paths[unfinished ?? -1] ?? '',
      };
    }),
    forecast: forecast.map((_, bucket) => bar(bucket, heights[bucket] ?? 0, tops[bucket] ?? 0)).join(''),
    previous: line(previous),
    budget: budget === undefined ? '' : across(budget),
    grid: steps.slice(1).map(across).join(''),
    axis: across(0),
    amounts: scale.labels.map((text, index) => ({ text, x: plot.left - LABEL_GAP_PX, y: level(steps[index] ?? 0) })),
    times: thinned(
      buckets.map((bucket, index) => ({ text: tickText(bucket, resolution), x: middle(index), y: base + TIME_GAP_PX })),
      band,
    ),
    barAt: (x, y) => {
      const bucket = Math.floor((x - plot.left) / band);
      if (!(bucket >= 0 && bucket < buckets.length) || Math.abs(x - middle(bucket)) > barWidth / 2) return undefined;
      const series = edges.findIndex((bars) => {
        const { from = 0, to = 0 } = bars[bucket] ?? {};
        return y <= level(from) && y >= level(to) && to > from;
      });
      return series === -1 ? undefined : { series, bucket };
    },
  };
}

/** A hundredth of a pixel is less than anybody sees. */
function px(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** Every second, third … label, so that none touches the next. */
function thinned(labels: readonly Label[], band: number): Label[] {
  const widest = Math.max(...labels.map(({ text }) => text.length)) * CHARACTER_PX + LABEL_GAP_PX;
  const every = Math.max(1, Math.ceil(widest / band));
  return labels.filter((_, index) => index % every === 0);
}

/** The steps of the scale of amounts, times a power of ten; it has `PARTS` of them at most. */
const STEPS = [1, 2, 2.5, 5, 10] as const;
const PARTS = 4;
/** The widest digit at the chart's size of type, and what is kept free on both sides. */
const CHARACTER_PX = 7;
const MARGIN_PX = 22;
const LEAST_PX = 44;
const LABEL_GAP_PX = 12;
const TIME_GAP_PX = 19;

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
