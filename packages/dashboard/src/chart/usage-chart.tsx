/**
 * Stacked bars over time. The pointer and the arrow keys do the same: walk the buckets, walk the groups of one, and with a
 * click or Enter go into the group or, where there is none to go into, into the bucket's time.
 */
import type { DecimalText, Resolution, Unit } from '@meterline/catalog';
import { type KeyboardEvent, type PointerEvent, useMemo, useRef, useState } from 'react';
import { amountText } from '../breakdown/amount-text.js';
import type { Breakdown } from '../breakdown/breakdown.js';
import { useTheme } from '../theme/theme.js';
import { BucketTooltip, bucketSentence } from './bucket-tooltip.js';
import { chartOption, PLOT } from './chart-option.js';
import { Legend } from './legend.js';
import { paletteOf } from './palette.js';
import { useECharts } from './use-echarts.js';

const TOOLTIP_GAP_PX = 12;

export interface UsageChartProps {
  readonly breakdown: Breakdown;
  readonly resolution: Resolution;
  readonly previous: readonly DecimalText[] | undefined;
  readonly unit: Unit | undefined;
  /** @param series undefined: the bucket as a whole */
  readonly onChoose: (series: number | undefined, bucket: number) => void;
  /** What choosing does; undefined when nothing. */
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
  /** A finger has no hover: its first tap shows the bar, its second goes into it. */
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
    // Undefined, the bucket as a whole, is the position before the first series.
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
        aria-label={`Bars over time, ${amountText(breakdown.total, unit)} in all. Left and right walk through time, up and down through the groups, Enter goes into one. The same figures are under Table.`}
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

/** Beside the bar, on the side where there is more room. */
function tooltipPlace(center: number, band: number, width: number) {
  const offset = band / 2 + TOOLTIP_GAP_PX;
  return center < width / 2 ? { left: center + offset } : { right: width - center + offset };
}
