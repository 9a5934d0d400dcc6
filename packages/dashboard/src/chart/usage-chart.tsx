/**
 * Stacked bars over time, with tooltip and legend. The pointer and the arrow keys do the same: they move through the
 * buckets and through the groups of a bucket. A click or Enter goes into the group, or else into the bucket's time.
 */
import { compareDecimals, type DecimalText, type Resolution, type Unit, ZERO } from '@meterline/catalog';
import { type KeyboardEvent, type PointerEvent, useMemo, useRef, useState } from 'react';
import type { Breakdown } from '../breakdown/breakdown.js';
import { amountText, changeFrom, changePercentText, differenceText } from '../breakdown/texts.js';
import { bucketText } from '../period/period.js';
import { useTheme } from '../shell/theme.js';
import { chartOption, PLOT } from './chart-option.js';
import { type Palette, paletteOf, seriesColor } from './palette.js';
import { useECharts } from './use-echarts.js';

const TOOLTIP_GAP_PX = 12;

export interface UsageChartProps {
  readonly breakdown: Breakdown;
  readonly resolution: Resolution;
  readonly previous: readonly DecimalText[] | undefined;
  readonly unit: Unit | undefined;
  /** @param series undefined: the whole bucket */
  readonly onChoose: (series: number | undefined, bucket: number) => void;
  /** What choosing does; undefined when it does nothing. */
  readonly hintOf: (series: number | undefined, bucket: number) => string | undefined;
  readonly onDrawn: () => void;
}

export function UsageChart({ breakdown, resolution, previous, unit, onChoose, hintOf, onDrawn }: UsageChartProps) {
  const palette = paletteOf(useTheme());
  const [bucket, setBucket] = useState<number>();
  const [current, setCurrent] = useState<number>();
  const option = useMemo(
    () => chartOption({ breakdown, resolution, previous, unit, palette }),
    [breakdown, resolution, previous, unit, palette],
  );
  /** Touch has no hover: the first tap shows the bar, the second goes into it. */
  const chooses = useRef(true);
  const onBar = (series: number, of: number) => chooses.current && onChoose(series, of);
  const { element, width, highlight } = useECharts(option, { onBar, onHover: setCurrent, onDrawn });

  const count = breakdown.buckets.length;
  const band = Math.max(0, width - PLOT.left - PLOT.right) / count;
  const shown = bucket !== undefined && bucket < count ? bucket : undefined;

  const bucketUnder = (event: PointerEvent<HTMLDivElement>) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left - PLOT.left;
    const under = Math.floor(x / band);
    return under >= 0 && under < count ? under : undefined;
  };
  const onPointerDown = (event: PointerEvent<HTMLDivElement>) => {
    const under = bucketUnder(event);
    chooses.current = event.pointerType !== 'touch' || under === shown;
    setBucket(under);
  };
  const hide = () => {
    setBucket(undefined);
    setCurrent(undefined);
    highlight(undefined);
  };
  const walkSeries = (step: number) => {
    const positions = breakdown.series.length + 1;
    // Position 0 is the whole bucket, which has no series.
    const position = ((current ?? -1) + 1 + step + positions) % positions;
    const next = position === 0 ? undefined : position - 1;
    setCurrent(next);
    highlight(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const last = count - 1;
    if (event.key === 'ArrowRight') setBucket(shown === undefined ? 0 : Math.min(last, shown + 1));
    else if (event.key === 'ArrowLeft') setBucket(shown === undefined ? last : Math.max(0, shown - 1));
    else if (event.key === 'Home') setBucket(0);
    else if (event.key === 'End') setBucket(last);
    else if (event.key === 'ArrowDown') walkSeries(1);
    else if (event.key === 'ArrowUp') walkSeries(-1);
    else if (event.key === 'Escape') hide();
    else if (event.key === 'Enter' && shown !== undefined) onChoose(current, shown);
    else return;
    event.preventDefault();
  };

  const tooltip =
    shown === undefined
      ? undefined
      : {
          breakdown,
          bucket: shown,
          current,
          previous: previous?.[shown],
          resolution,
          unit,
          palette,
          hint: hintOf(current, shown),
        };
  return (
    <>
      <div
        className="chart"
        role="slider"
        aria-roledescription="chart"
        aria-label={`Bars over time, ${amountText(breakdown.total, unit)} in total. Left and right move through time, up and down through the groups, Enter opens one. The same figures are under Table.`}
        aria-valuemin={1}
        aria-valuemax={count}
        aria-valuenow={(shown ?? 0) + 1}
        aria-valuetext={tooltip ? bucketSentence(tooltip) : 'No bar chosen'}
        tabIndex={0}
        onPointerMove={(event) => event.pointerType !== 'touch' && setBucket(bucketUnder(event))}
        onPointerDown={onPointerDown}
        onPointerLeave={hide}
        onKeyDown={onKeyDown}
        onBlur={hide}
      >
        {shown !== undefined && (
          <div
            className="chart-band"
            style={{ left: PLOT.left + shown * band, width: band, top: PLOT.top, bottom: PLOT.bottom }}
          />
        )}
        <div ref={element} className="chart-canvas" data-testid="chart" />
        {tooltip && (
          <div className="tooltip" style={tooltipPlace(PLOT.left + (tooltip.bucket + 0.5) * band, band, width)}>
            <BucketTooltip {...tooltip} />
          </div>
        )}
      </div>
      <Legend breakdown={breakdown} palette={palette} hasPrevious={previous !== undefined} onPoint={highlight} />
    </>
  );
}

/** Next to the bar, on the side with more room. */
function tooltipPlace(center: number, band: number, width: number) {
  const offset = band / 2 + TOOLTIP_GAP_PX;
  return center < width / 2 ? { left: center + offset } : { right: width - center + offset };
}

interface BucketTooltipProps {
  readonly breakdown: Breakdown;
  readonly bucket: number;
  /** The series under the pointer. */
  readonly current: number | undefined;
  readonly previous: DecimalText | undefined;
  readonly resolution: Resolution;
  readonly unit: Unit | undefined;
  readonly palette: Palette;
  /** What a click does. */
  readonly hint: string | undefined;
}

function BucketTooltip(props: BucketTooltipProps) {
  const { breakdown, bucket, current, previous, resolution, unit, palette, hint } = props;
  const total = breakdown.totals[bucket] ?? ZERO;
  const lines = breakdown.series
    .map((series, rank) => ({ series, rank, amount: series.points[bucket] ?? ZERO }))
    .filter(({ amount }) => amount !== ZERO)
    .sort((a, b) => compareDecimals(b.amount, a.amount));
  const change = previous === undefined ? undefined : changeFrom(previous, total);
  return (
    <>
      <p className="tooltip-title">{bucketText(breakdown.buckets[bucket] ?? 0, resolution)} UTC</p>
      <p className="tooltip-total">
        <span>Total</span>
        <strong>{amountText(total, unit)}</strong>
      </p>
      {change && previous !== undefined && (
        <p className="tooltip-previous">
          <span>Period before</span>
          <span>
            {amountText(previous, unit)} ({differenceText(change, unit)}, {changePercentText(change)})
          </span>
        </p>
      )}
      {breakdown.series.length > 1 && (
        <ul>
          {lines.map(({ series, rank, amount }) => (
            <li key={series.key} data-current={rank === current || undefined}>
              <span className="swatch" style={{ background: seriesColor(series, rank, palette) }} />
              <span className="tooltip-name">{series.label}</span>
              <span>{amountText(amount, unit)}</span>
            </li>
          ))}
        </ul>
      )}
      {hint && <p className="tooltip-hint">{hint}</p>}
    </>
  );
}

/** The same as one sentence, for screen readers. */
function bucketSentence({ breakdown, bucket, current, resolution, unit }: BucketTooltipProps): string {
  const name = bucketText(breakdown.buckets[bucket] ?? 0, resolution);
  const total = amountText(breakdown.totals[bucket] ?? ZERO, unit);
  const series = current === undefined ? undefined : breakdown.series[current];
  return series
    ? `${name}: ${series.label} ${amountText(series.points[bucket] ?? ZERO, unit)} of ${total}`
    : `${name}: ${total}`;
}

interface LegendProps {
  readonly breakdown: Breakdown;
  readonly palette: Palette;
  readonly hasPrevious: boolean;
  readonly onPoint: (series: number | undefined) => void;
}

function Legend({ breakdown, palette, hasPrevious, onPoint }: LegendProps) {
  return (
    <ul className="legend" aria-label="Legend">
      {breakdown.series.map((series, rank) => (
        <li key={series.key} onPointerEnter={() => onPoint(rank)} onPointerLeave={() => onPoint(undefined)}>
          <span className="swatch" style={{ background: seriesColor(series, rank, palette) }} />
          <span className="legend-name">{series.label}</span>
        </li>
      ))}
      {hasPrevious && (
        <li>
          <span className="swatch-line" />
          <span className="legend-name">Previous period</span>
        </li>
      )}
    </ul>
  );
}
