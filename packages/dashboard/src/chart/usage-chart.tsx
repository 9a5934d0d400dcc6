/**
 * Stacked bars over time, with tooltip and legend. The pointer and the arrow keys do the same: they move through the
 * buckets and through the groups of a bucket. A click or Enter goes into the group, or else into the bucket's time;
 * dragging, or the arrow keys with Shift, choose a range of buckets to zoom into.
 */
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
import { amountText } from '../breakdown/texts.js';
import { navigate } from '../view/address.js';
import { type ChartDrawing, drawChart, type Label, type Size } from './chart-drawing.js';
import type { ChartFigures, TargetOf } from './chart-figures.js';
import { BucketTooltip, bucketSentence, Legend } from './chart-text.js';

/** As in chart.css. */
const WIDEST_TOOLTIP_PX = 400;
const TOOLTIP_GAP_PX = 12;

/** Marks when the first view is drawn; benchmarks and tests read it. */
const FIRST_VIEW = 'meterline:first-view';

interface UsageChartProps {
  readonly figures: ChartFigures;
  readonly targetOf: TargetOf;
  /** The first and the last bucket of a range. */
  readonly onZoom: (first: number, last: number) => void;
}

/** Buckets from the one where it began to the one where it is now. */
interface Range {
  readonly from: number;
  readonly to: number;
}

export function UsageChart({ figures, targetOf, onZoom }: UsageChartProps) {
  const [bucket, setBucket] = useState<number>();
  const [current, setCurrent] = useState<number>();
  /** What opens the bar that is shown. */
  const [gesture, setGesture] = useState('A click');
  /** The series under the pointer in the legend. */
  const [pointed, setPointed] = useState<number>();
  const [range, setRange] = useState<Range>();
  /** Keys of series, perhaps of a breakdown that was shown before. */
  const [switchedOff, setSwitchedOff] = useState<ReadonlySet<string>>(new Set());
  const hidden = useMemo(() => {
    const keys = figures.breakdown.series.map(({ key }) => key);
    return new Set(keys.filter((key) => switchedOff.has(key)));
  }, [figures.breakdown, switchedOff]);
  const { element, size } = useSize();
  const { width } = size;
  const drawing = useMemo(() => drawChart(figures, hidden, size), [figures, hidden, size]);
  const { plot, band } = drawing;
  /** Touch has no hover: the first tap shows the bar, the second goes into it. A click that ends a drag chooses nothing. */
  const chooses = useRef(true);
  const pressed = useRef<number>(undefined);
  useEffect(() => {
    if (width > 0 && performance.getEntriesByName(FIRST_VIEW).length === 0) performance.mark(FIRST_VIEW);
  }, [width]);

  const { breakdown, buckets, unit, unfinished } = figures;
  const count = buckets.length;
  /** Buckets that have begun. */
  const last = unfinished ?? breakdown.buckets.length - 1;
  const shown = bucket !== undefined && bucket < count ? bucket : undefined;

  const placeUnder = ({ clientX, clientY, currentTarget }: MouseEvent<HTMLDivElement>) => {
    const box = currentTarget.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    const under = Math.floor((x - plot.left) / band);
    const bar = drawing.barAt(x, y);
    // A range goes on outside the chart, to its edge.
    if (pressed.current !== undefined) return { bar, under: Math.max(0, Math.min(count - 1, under)) };
    const isInside = under >= 0 && under < count && y >= 0 && y < box.height;
    return { bar, under: isInside ? under : undefined };
  };
  const onPointerDown = (event: PointerEvent<HTMLDivElement>) => {
    const { bar, under } = placeUnder(event);
    const isTouch = event.pointerType === 'touch';
    setGesture(isTouch ? 'A second tap' : 'A click');
    chooses.current = !isTouch || (under === shown && bar?.series === current);
    if (isTouch) setCurrent(bar?.series);
    if (event.pointerType === 'mouse' && event.button === 0 && under !== undefined) {
      pressed.current = under;
      event.currentTarget.setPointerCapture(event.pointerId);
    }
    setBucket(under);
  };
  const onPointerMove = (event: PointerEvent<HTMLDivElement>) => {
    if (event.pointerType === 'touch') return;
    const { bar, under } = placeUnder(event);
    setGesture('A click');
    setBucket(under);
    setCurrent(bar?.series);
    const from = pressed.current;
    if (from === undefined || under === undefined || event.buttons === 0) return;
    if (!range && under === from) return;
    chooses.current = false;
    setRange({ from, to: under });
  };
  const onPointerUp = () => {
    pressed.current = undefined;
    if (range) zoom(range);
  };
  const onClick = (event: MouseEvent<HTMLDivElement>) => {
    const { bar, under } = placeUnder(event);
    if (under !== undefined && chooses.current) open(bar?.series, under);
  };
  const open = (series: number | undefined, of: number) => {
    const target = of > last ? undefined : targetOf(series, of);
    if (target) navigate(target.view);
  };
  const zoom = ({ from, to }: Range) => {
    setRange(undefined);
    const first = Math.min(from, to);
    if (first <= last) onZoom(first, Math.min(last, Math.max(from, to)));
  };
  const hide = () => {
    setBucket(undefined);
    setCurrent(undefined);
    setRange(undefined);
    pressed.current = undefined;
  };
  const stepSeries = (step: number) => {
    const positions = breakdown.series.length + 1;
    // Position 0 is the whole bucket, which has no series.
    const position = ((current ?? -1) + 1 + step + positions) % positions;
    setCurrent(position === 0 ? undefined : position - 1);
  };
  const step = (to: number, extend: boolean) => {
    const next = Math.max(0, Math.min(count - 1, to));
    setRange(extend && shown !== undefined ? { from: range?.from ?? shown, to: next } : undefined);
    setBucket(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { key, shiftKey } = event;
    setGesture('Enter');
    if (key === 'ArrowRight') step(shown === undefined ? 0 : shown + 1, shiftKey);
    else if (key === 'ArrowLeft') step(shown === undefined ? last : shown - 1, shiftKey);
    else if (key === 'Home') step(0, shiftKey);
    else if (key === 'End') step(last, shiftKey);
    else if (key === 'ArrowDown') stepSeries(1);
    else if (key === 'ArrowUp') stepSeries(-1);
    else if (key === 'Escape') hide();
    else if (key === 'Enter' && range) zoom(range);
    else if (key === 'Enter' && shown !== undefined) open(current, shown);
    else return;
    event.preventDefault();
  };
  const toggle = (key: string) => {
    const next = new Set(hidden);
    if (!next.delete(key)) next.add(key);
    setSwitchedOff(next);
  };

  const target = shown === undefined || shown > last ? undefined : targetOf(current, shown);
  const hint = target && `${gesture} ${target.hint}`;
  const tooltip = shown === undefined ? undefined : { figures, bucket: shown, current, hidden, hint };
  const placeOf = (from: number, to: number) => ({
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
        aria-label={`Bars over time, ${amountText(breakdown.total, unit)} in total. Left and right move through time, up and down through the groups, Enter opens one; with Shift, left and right choose a range, and Enter zooms into it. The same figures are under Table.`}
        aria-valuemin={1}
        aria-valuemax={count}
        aria-valuenow={(shown ?? 0) + 1}
        aria-valuetext={tooltip ? bucketSentence(tooltip) : 'No bar chosen'}
        tabIndex={0}
        onPointerMove={onPointerMove}
        onPointerDown={onPointerDown}
        onPointerUp={onPointerUp}
        onPointerCancel={hide}
        onPointerLeave={({ pointerType }) => pointerType !== 'touch' && hide()}
        onClick={onClick}
        onKeyDown={onKeyDown}
        onBlur={hide}
      >
        {shown !== undefined && !range && <div className="chart-band" style={placeOf(shown, shown)} />}
        {unfinished !== undefined && width > 0 && (
          <div className="chart-unfinished" style={{ ...placeOf(unfinished, unfinished), top: 0 }}>
            <span>so far</span>
          </div>
        )}
        <div
          ref={element}
          className="chart-canvas"
          data-testid="chart"
          data-left={plot.left}
          data-over={current !== undefined || undefined}
        >
          {width > 0 && <ChartShapes drawing={drawing} breakdown={breakdown} lit={pointed ?? current} />}
        </div>
        {range && <div className="chart-range" style={placeOf(range.from, range.to)} />}
        {tooltip && !range && (
          <div className="tooltip" style={tooltipPlace(plot.left + (tooltip.bucket + 0.5) * band, band, width)}>
            <BucketTooltip {...tooltip} />
          </div>
        )}
      </div>
      <Legend {...{ figures, hidden }} onToggle={toggle} onPoint={setPointed} />
    </>
  );
}

/** The size of the element in CSS pixels; 0 before it is laid out. */
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

/** Next to the bar, on the side with more room; over the whole chart where neither has enough. */
function tooltipPlace(center: number, band: number, width: number) {
  const offset = band / 2 + TOOLTIP_GAP_PX;
  if (width < 2 * (offset + WIDEST_TOOLTIP_PX)) return { left: 0, right: 0, width: 'auto', maxWidth: 'none' };
  return center < width / 2 ? { left: center + offset } : { right: width - center + offset };
}

interface ChartShapesProps {
  readonly drawing: ChartDrawing;
  readonly breakdown: Breakdown;
  /** The series that stands out; undefined: all look the same. */
  readonly lit: number | undefined;
}

/** The drawing as SVG. Screen readers have the slider around it. */
const ChartShapes = memo(function ChartShapes({ drawing, breakdown, lit }: ChartShapesProps) {
  return (
    <svg aria-hidden="true">
      <path className="chart-grid" d={drawing.grid} />
      <path className="chart-axis" d={drawing.axis} />
      {drawing.bars.map(({ closed, open }, rank) => {
        const series = breakdown.series[rank];
        if (!series) return null;
        const isQuiet = lit !== undefined && lit !== rank;
        return (
          <g
            key={series.key}
            className={`chart-bars${isQuiet ? ' quiet' : ''}`}
            style={{ color: seriesColor(series, rank) }}
          >
            <path d={closed} />
            <path className="open" d={open} />
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
