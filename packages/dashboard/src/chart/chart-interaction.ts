/**
 * Handles the input of the chart. The functions are pure, so that tests need no browser. The pointer and the arrow keys move through the
 * buckets, and through the series of a bucket. A click or Enter opens a series or a bucket. Dragging, or Shift with the arrow keys, selects
 * a range of buckets to zoom into.
 */

interface Range {
  readonly from: number;
  readonly to: number;
}

export interface ChartState {
  readonly bucket?: number | undefined;
  /** The highlighted series, or undefined if the whole bucket is highlighted. */
  readonly series?: number | undefined;
  /** The selected buckets. `to` is smaller than `from` if the user selects from right to left. */
  readonly range?: Range | undefined;
  readonly pressedAt?: number | undefined;
  readonly gesture: 'Click' | 'Tap again' | 'Press Enter';
  /** Whether a click opens the bar. A first tap only highlights the bar, and the click at the end of a drag must open nothing. */
  readonly opensOnClick: boolean;
}

export const IDLE: ChartState = { gesture: 'Click', opensOnClick: true };

export interface Point {
  /** The bucket at the horizontal position. It may be outside the chart. */
  readonly bucket: number;
  readonly series: number | undefined;
  readonly isInside: boolean;
}

/** The number of buckets and series. Buckets after `lastBegun` are in the future and cannot be opened. */
export interface Bounds {
  readonly buckets: number;
  readonly lastBegun: number;
  readonly series: number;
}

export interface Outcome {
  readonly state: ChartState;
  readonly open?: { readonly bucket: number; readonly series: number | undefined } | undefined;
  readonly zoom?: Range | undefined;
}

/** Returns the highlighted bucket. Returns undefined if the current data does not have this bucket. */
export function highlighted({ bucket }: ChartState, { buckets }: Bounds): number | undefined {
  return bucket !== undefined && bucket < buckets ? bucket : undefined;
}

export function press(state: ChartState, at: Point, kind: 'mouse' | 'touch' | 'other', bounds: Bounds): ChartState {
  const bucket = bucketAt(state, at, bounds);
  const isTouch = kind === 'touch';
  const isSecondTap = bucket === highlighted(state, bounds) && at.series === state.series;
  return {
    ...state,
    bucket,
    series: isTouch ? at.series : state.series,
    pressedAt: kind === 'mouse' ? bucket : state.pressedAt,
    gesture: isTouch ? 'Tap again' : 'Click',
    opensOnClick: !isTouch || isSecondTap,
  };
}

export function move(state: ChartState, at: Point, isPressed: boolean, bounds: Bounds): ChartState {
  const bucket = bucketAt(state, at, bounds);
  const next: ChartState = { ...state, bucket, series: at.series, gesture: 'Click' };
  const from = state.pressedAt;
  if (from === undefined || bucket === undefined || !isPressed) return next;
  // A small movement within the pressed bucket still counts as a click.
  if (!state.range && bucket === from) return next;
  return { ...next, range: { from, to: bucket }, opensOnClick: false };
}

export function release(state: ChartState, bounds: Bounds): Outcome {
  return endRange({ ...state, pressedAt: undefined }, bounds);
}

export function click(state: ChartState, at: Point, bounds: Bounds): Outcome {
  return state.opensOnClick ? opened(state, bucketAt(state, at, bounds), at.series, bounds) : { state };
}

/** Handles a key. Returns undefined for a key that the chart does not use. */
export function pressKey(state: ChartState, key: string, hasShift: boolean, bounds: Bounds): Outcome | undefined {
  const bucket = highlighted(state, bounds);
  const next: ChartState = { ...state, gesture: 'Press Enter' };
  const moveTo = (target: number): Outcome => {
    const to = clamped(target, bounds);
    const range = hasShift && bucket !== undefined ? { from: state.range?.from ?? bucket, to } : undefined;
    return { state: { ...next, bucket: to, range } };
  };
  if (key === 'ArrowRight') return moveTo(bucket === undefined ? 0 : bucket + 1);
  if (key === 'ArrowLeft') return moveTo(bucket === undefined ? bounds.lastBegun : bucket - 1);
  if (key === 'Home') return moveTo(0);
  if (key === 'End') return moveTo(bounds.lastBegun);
  if (key === 'ArrowDown') return { state: { ...next, series: steppedSeries(state, 1, bounds) } };
  if (key === 'ArrowUp') return { state: { ...next, series: steppedSeries(state, -1, bounds) } };
  if (key === 'Escape') return { state: IDLE };
  if (key === 'Enter' && state.range) return endRange(next, bounds);
  if (key === 'Enter' && bucket !== undefined) return opened(next, bucket, state.series, bounds);
  return undefined;
}

/** Returns the bucket under the pointer. During a drag, the pointer may leave the chart, and the range then ends at the edge. */
function bucketAt({ pressedAt }: ChartState, { bucket, isInside }: Point, bounds: Bounds): number | undefined {
  if (pressedAt !== undefined) return clamped(bucket, bounds);
  return isInside && bucket === clamped(bucket, bounds) ? bucket : undefined;
}

function clamped(bucket: number, { buckets }: Bounds): number {
  return Math.max(0, Math.min(buckets - 1, bucket));
}

/** Returns the next or previous series, or undefined for the whole bucket. The keys go through the bucket and its series in a circle. */
function steppedSeries({ series = -1 }: ChartState, step: number, bounds: Bounds): number | undefined {
  const stops = bounds.series + 1;
  const stop = (series + 1 + step + stops) % stops;
  return stop === 0 ? undefined : stop - 1;
}

function opened(state: ChartState, bucket: number | undefined, series: number | undefined, bounds: Bounds): Outcome {
  return bucket === undefined || bucket > bounds.lastBegun ? { state } : { state, open: { bucket, series } };
}

/** Ends the selection, and zooms into the part of it that is not in the future. */
function endRange({ range, ...state }: ChartState, { lastBegun }: Bounds): Outcome {
  if (!range) return { state };
  const from = Math.min(range.from, range.to);
  const to = Math.min(lastBegun, Math.max(range.from, range.to));
  return from > lastBegun ? { state } : { state, zoom: { from, to } };
}
