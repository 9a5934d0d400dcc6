/**
 * Computes the geometry of the chart in pixels: stacked bars, the forecast above the bars, and lines for the previous period and the
 * budget. All bars of a series form one path, so that the number of SVG nodes does not depend on the number of buckets.
 */
import { type DecimalText, ZERO } from '@meterline/catalog/plain';
import type { Quantity } from '../format/texts.js';
import { axisText } from '../format/texts.js';
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

/** The strings are values of the SVG attribute `d`. A string is empty if there is nothing to draw. */
export interface ChartDrawing {
  readonly plot: Plot;
  /** The width of a bucket, including the gap between two bars. */
  readonly band: number;
  /** One entry for each series. `unfinished` is the bar of the bucket in progress. */
  readonly bars: readonly { readonly finished: string; readonly unfinished: string }[];
  readonly forecast: string;
  readonly previous: string;
  readonly budget: string;
  readonly grid: string;
  readonly axis: string;
  readonly amounts: readonly Label[];
  readonly times: readonly Label[];
  barAt(x: number, y: number): { readonly series: number; readonly bucket: number } | undefined;
}

const BAR_SHARE = 0.78;
const MAX_BAR_PX = 56;

/** Computes the drawing. @param hidden keys of the series that the user has hidden */
export function drawChart(figures: ChartFigures, hidden: ReadonlySet<string>, size: Size): ChartDrawing {
  const { breakdown, buckets, resolution, unit, unfinished } = figures;
  const unitSize = unit ? Number(unit.size) : 1;
  const numberOf = (amount: DecimalText | undefined) => Number(amount ?? ZERO) / unitSize;
  // The forecast, the previous period and the budget refer to all groups together, so draw them only if no group is hidden.
  const isComplete = hidden.size === 0;
  const forecast = (isComplete && figures.expected?.map(numberOf)) || [];
  const previous = (isComplete && figures.previous?.points.slice(0, buckets.length).map(numberOf)) || [];
  const budgetLine = isComplete ? figures.budget : undefined;
  const budget = numberOf(budgetLine?.amount);

  /** The height of the stack in each bucket so far. The first series is at the bottom. */
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
  const scale = scaleOf(Math.max(0, ...tops, ...previous, budget), unit);
  const plot = plotOf(scale);
  const right = size.width - plot.right;
  const base = size.height - plot.bottom;
  const band = Math.max(0, right - plot.left) / buckets.length;
  const barWidth = Math.min(MAX_BAR_PX, band * BAR_SHARE);

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
        finished: paths.filter((_, bucket) => bucket !== unfinished).join(''),
        unfinished: paths[unfinished ?? -1] ?? '',
      };
    }),
    forecast: forecast.map((_, bucket) => bar(bucket, heights[bucket] ?? 0, tops[bucket] ?? 0)).join(''),
    previous: line(previous),
    budget: budgetLine ? `M${px(plot.left + budgetLine.from * band)} ${px(level(budget))}H${px(right)}` : '',
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

function px(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** Keeps every n-th label, so that labels do not overlap. */
function thinned(labels: readonly Label[], band: number): Label[] {
  const widest = Math.max(...labels.map(({ text }) => text.length)) * CHARACTER_PX + LABEL_GAP_PX;
  const every = Math.max(1, Math.ceil(widest / band));
  return labels.filter((_, index) => index % every === 0);
}

/** Possible steps of the scale. Each step can be multiplied by a power of ten. */
const STEPS = [1, 2, 2.5, 5, 10] as const;
const MAX_STEPS = 4;
/** The width of the widest digit in the font size of the chart. */
const CHARACTER_PX = 7;
const MARGIN_PX = 22;
const MIN_LEFT_PX = 44;
const LABEL_GAP_PX = 12;
const TIME_GAP_PX = 19;

export interface Scale {
  readonly top: number;
  readonly step: number;
  readonly labels: readonly string[];
}

/** Returns a scale with round steps that covers the largest amount. If the largest amount is zero, the scale ends at 1 or above. */
export function scaleOf(largest: number, unit: Quantity | undefined): Scale {
  const needed = largest > 0 ? largest : 1;
  const magnitude = 10 ** Math.floor(Math.log10(needed / MAX_STEPS));
  const step = rounded((STEPS.find((each) => each * magnitude * MAX_STEPS >= needed * (1 - 1e-9)) ?? 10) * magnitude);
  const count = Math.max(1, Math.ceil((needed / step) * (1 - 1e-9)));
  const labels = Array.from({ length: count + 1 }, (_, index) => axisText(rounded(index * step), unit));
  return { top: rounded(count * step), step, labels };
}

/** Removes floating-point noise. */
function rounded(value: number): number {
  return Number(value.toPrecision(12));
}

/** The margins of the plot, which contains the bars, in pixels from the edges of the chart. */
export interface Plot {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export function plotOf({ labels }: Scale): Plot {
  const longest = Math.max(...labels.map((label) => label.length));
  return { left: Math.max(MIN_LEFT_PX, longest * CHARACTER_PX + MARGIN_PX), right: 8, top: 22, bottom: 28 };
}
