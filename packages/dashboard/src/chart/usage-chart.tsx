/** Renders the chart: stacked bars over time, the tooltip and the legend. `chart-interaction.ts` has the rules for its input. */
import {
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type PointerEvent,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { type Breakdown, seriesColor } from '../breakdown/breakdown.js';
import { amountText } from '../format/texts.js';
import { navigate } from '../view/address.js';
import { type ChartDrawing, drawChart, type Label, type Size } from './chart-drawing.js';
import type { ChartFigures, TargetOf } from './chart-figures.js';
import {
  click,
  highlighted,
  IDLE,
  move,
  type Outcome,
  type Point,
  press,
  pressKey,
  release,
} from './chart-interaction.js';
import { BucketTooltip, bucketSentence, Legend } from './chart-text.js';

/** This width must match chart.css. */
const MAX_TOOLTIP_PX = 400;
const TOOLTIP_GAP_PX = 12;

/** Performance mark of the first drawing. Benchmarks and tests read the mark. */
const FIRST_VIEW = 'meterline:first-view';

const ARIA_HELP =
  'Use the left and right arrow keys to move through time, the up and down keys to move through the groups, and Enter to open one. Hold Shift with left or right to select a range, and press Enter to zoom in. The Table view has the same data.';

interface UsageChartProps {
  readonly figures: ChartFigures;
  readonly targetOf: TargetOf;
  /** Called with the first and the last bucket of a range. */
  readonly onZoom: (first: number, last: number) => void;
}

export function UsageChart({ figures, targetOf, onZoom }: UsageChartProps) {
  const { breakdown, buckets, unit, unfinished } = figures;
  const bounds = {
    buckets: buckets.length,
    lastBegun: unfinished ?? breakdown.buckets.length - 1,
    series: breakdown.series.length,
  };
  const [state, setState] = useState(IDLE);
  // The reference has the latest state, because several inputs may arrive before React renders.
  const latest = useRef(state);
  const apply = ({ state: next, open, zoom }: Outcome) => {
    const target = open && targetOf(open.series, open.bucket);
    // The next chart has other bars, so it starts without a highlight.
    latest.current = target || zoom ? { ...IDLE, opensOnClick: next.opensOnClick } : next;
    setState(latest.current);
    if (zoom) onZoom(zoom.from, zoom.to);
    if (target) navigate(target.view);
  };
  const { hidden, toggle } = useHiddenSeries(breakdown);
  const [hovered, setHovered] = useState<number>();
  const { element, size } = useSize();
  const { width } = size;
  const drawing = useMemo(() => drawChart(figures, hidden, size), [figures, hidden, size]);
  const { plot, band } = drawing;
  useEffect(() => {
    if (width > 0 && performance.getEntriesByName(FIRST_VIEW).length === 0) performance.mark(FIRST_VIEW);
  }, [width]);

  const pointAt = ({ clientX, clientY, currentTarget }: MouseEvent): Point => {
    const box = currentTarget.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    const bucket = Math.floor((x - plot.left) / band);
    return { bucket, series: drawing.barAt(x, y)?.series, isInside: y >= 0 && y < box.height };
  };
  const onPointerDown = (event: PointerEvent) => {
    const { pointerType, button, currentTarget, pointerId } = event;
    const kind = pointerType === 'touch' ? 'touch' : pointerType === 'mouse' && button === 0 ? 'mouse' : 'other';
    apply({ state: press(latest.current, pointAt(event), kind, bounds) });
    if (latest.current.pressedAt !== undefined) currentTarget.setPointerCapture(pointerId);
  };
  const onPointerMove = (event: PointerEvent) => {
    if (event.pointerType === 'touch') return;
    apply({ state: move(latest.current, pointAt(event), event.buttons !== 0, bounds) });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const outcome = pressKey(latest.current, event.key, event.shiftKey, bounds);
    if (!outcome) return;
    event.preventDefault();
    apply(outcome);
  };
  const leave = () => apply({ state: IDLE });

  const bucket = highlighted(state, bounds);
  const { series, range, gesture } = state;
  const target = bucket === undefined || bucket > bounds.lastBegun ? undefined : targetOf(series, bucket);
  const hint = target && `${gesture} ${target.hint}`;
  const tooltip = bucket === undefined ? undefined : { figures, bucket, series, hidden, hint };
  const columnsOf = (from: number, to: number) => ({
    left: plot.left + Math.min(from, to) * band,
    width: (Math.abs(to - from) + 1) * band,
    top: plot.top,
    bottom: plot.bottom,
  });
  return (
    <>
      <div
        className="chart"
        role="slider"
        aria-roledescription="chart"
        aria-label={`Bar chart, ${amountText(breakdown.total, unit)} in total. ${ARIA_HELP}`}
        aria-valuemin={1}
        aria-valuemax={bounds.buckets}
        aria-valuenow={(bucket ?? 0) + 1}
        aria-valuetext={tooltip ? bucketSentence(tooltip) : 'No bar selected'}
        tabIndex={0}
        onPointerMove={onPointerMove}
        onPointerDown={onPointerDown}
        onPointerUp={() => apply(release(latest.current, bounds))}
        onPointerCancel={leave}
        onPointerLeave={({ pointerType }) => pointerType !== 'touch' && leave()}
        onClick={(event) => apply(click(latest.current, pointAt(event), bounds))}
        onKeyDown={onKeyDown}
        onBlur={leave}
      >
        {bucket !== undefined && !range && <div className="chart-band" style={columnsOf(bucket, bucket)} />}
        {unfinished !== undefined && width > 0 && (
          <div className="chart-unfinished" style={{ ...columnsOf(unfinished, unfinished), top: 0 }}>
            <span>so far</span>
          </div>
        )}
        <div
          ref={element}
          className="chart-canvas"
          data-testid="chart"
          data-left={plot.left}
          data-over={series !== undefined || undefined}
        >
          {width > 0 && <ChartShapes drawing={drawing} breakdown={breakdown} emphasized={hovered ?? series} />}
        </div>
        {range && <div className="chart-range" style={columnsOf(range.from, range.to)} />}
        {tooltip && !range && (
          <div className="tooltip" style={tooltipPosition(plot.left + (tooltip.bucket + 0.5) * band, band, width)}>
            <BucketTooltip {...tooltip} />
          </div>
        )}
      </div>
      <Legend {...{ figures, hidden }} onToggle={toggle} onHover={setHovered} />
    </>
  );
}

/** Keeps the series that the user has hidden. When the breakdown changes, keeps only the series that still exist. */
function useHiddenSeries(breakdown: Breakdown) {
  const [switchedOff, setSwitchedOff] = useState<ReadonlySet<string>>(new Set());
  const hidden = useMemo(() => {
    const keys = breakdown.series.map(({ key }) => key);
    return new Set(keys.filter((key) => switchedOff.has(key)));
  }, [breakdown, switchedOff]);
  const toggle = (key: string) => {
    const next = new Set(hidden);
    if (!next.delete(key)) next.add(key);
    setSwitchedOff(next);
  };
  return { hidden, toggle };
}

/** Returns the size of the element in CSS pixels. The size is 0 before the first layout. */
function useSize() {
  const element = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    if (!element.current) return;
    const observed = element.current;
    const measure = () => {
      const { clientWidth: width, clientHeight: height } = observed;
      setSize((before) => (before.width === width && before.height === height ? before : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(observed);
    return () => observer.disconnect();
  }, []);
  return { element, size };
}

/** Places the tooltip next to the bar, on the side with more space. In a narrow chart, the tooltip covers the full width. */
function tooltipPosition(center: number, band: number, width: number) {
  const offset = band / 2 + TOOLTIP_GAP_PX;
  if (width < 2 * (offset + MAX_TOOLTIP_PX)) return { left: 0, right: 0, width: 'auto', maxWidth: 'none' };
  return center < width / 2 ? { left: center + offset } : { right: width - center + offset };
}

interface ChartShapesProps {
  readonly drawing: ChartDrawing;
  readonly breakdown: Breakdown;
  /** The series to emphasize. The chart dims all other series. */
  readonly emphasized: number | undefined;
}

/** Draws the chart as SVG. The SVG is hidden from screen readers, which use the slider around it. */
const ChartShapes = memo(function ChartShapes({ drawing, breakdown, emphasized }: ChartShapesProps) {
  return (
    <svg aria-hidden="true">
      <path className="chart-grid" d={drawing.grid} />
      <path className="chart-axis" d={drawing.axis} />
      {drawing.bars.map(({ finished, unfinished }, rank) => {
        const series = breakdown.series[rank];
        if (!series) return null;
        const isDimmed = emphasized !== undefined && emphasized !== rank;
        return (
          <g
            key={series.key}
            className={`chart-bars${isDimmed ? ' dimmed' : ''}`}
            style={{ color: seriesColor(series, rank) }}
          >
            <path d={finished} />
            <path className="unfinished" d={unfinished} />
          </g>
        );
      })}
      <path className="chart-forecast" d={drawing.forecast} />
      <path className="chart-previous-edge" d={drawing.previous} />
      <path className="chart-previous" d={drawing.previous} />
      <path className="chart-budget" d={drawing.budget} />
      <Labels className="amounts" labels={drawing.amounts} />
      <Labels className="times" labels={drawing.times} />
    </svg>
  );
});

function Labels({ className, labels }: { readonly className: string; readonly labels: readonly Label[] }) {
  return (
    <g className={className}>
      {labels.map(({ text, x, y }) => (
        <text key={`${x} ${y}`} x={x} y={y}>
          {text}
        </text>
      ))}
    </g>
  );
}
