/**
 * Handles the input of the chart as a pure function, so that its rules can be tested without a browser. The pointer and the arrow keys move
 * through the buckets and through the series of a bucket. A click or Enter opens a series or a bucket. Dragging, or Shift with the arrow
 * keys, selects a range of buckets to zoom into.
 */

/** The first and the last bucket of a selection, in the order of the selection: `to` may be smaller than `from`. */
interface Range {
  readonly from: number;
  readonly to: number;
}

export interface ChartState {
  /** The highlighted bucket, whose tooltip is visible. */
  readonly bucket?: number | undefined;
  /** The highlighted series; undefined for the whole bucket. */
  readonly series?: number | undefined;
  readonly range?: Range | undefined;
  /** The bucket where the mouse button was pressed. */
  readonly pressedAt?: number | undefined;
  /** How the user opens the highlighted bar. */
  readonly gesture: 'Click' | 'Tap again' | 'Press Enter';
  /**
   * Whether the next click opens a bar. Touch screens have no hover, so the first tap only highlights a bar. A click that ends a drag
   * opens nothing.
   */
  readonly opensOnClick: boolean;
}

export const IDLE: ChartState = { gesture: 'Click', opensOnClick: true };

/** A position of the pointer. */
export interface Point {
  /** The bucket at the horizontal position. It may be outside the range of buckets. */
  readonly bucket: number;
  /** The series whose bar is under the pointer. */
  readonly series: number | undefined;
  /** Whether the vertical position is inside the chart. */
  readonly isInside: boolean;
}

export type ChartInput =
  | { readonly type: 'press'; readonly at: Point; readonly isTouch: boolean; readonly startsRange: boolean }
  | { readonly type: 'move'; readonly at: Point; readonly isPressed: boolean }
  | { readonly type: 'release' }
  | { readonly type: 'click'; readonly at: Point }
  | { readonly type: 'key'; readonly key: string; readonly hasShift: boolean }
  | { readonly type: 'leave' };

/** Numbers of buckets and series. */
export interface Bounds {
  readonly buckets: number;
  /** The position of the last bucket that has begun. Later buckets cannot be opened. */
  readonly lastBegun: number;
  readonly series: number;
}

type ChartAction =
  | { readonly type: 'open'; readonly bucket: number; readonly series: number | undefined }
  | { readonly type: 'zoom'; readonly first: number; readonly last: number };

interface Outcome {
  /** The same object if the input has no meaning for the chart. */
  readonly state: ChartState;
  readonly action?: ChartAction | undefined;
}

/** Returns the highlighted bucket; undefined if it no longer exists because the data has changed. */
export function highlighted({ bucket }: ChartState, { buckets }: Bounds): number | undefined {
  return bucket !== undefined && bucket < buckets ? bucket : undefined;
}

export function interact(state: ChartState, input: ChartInput, bounds: Bounds): Outcome {
  switch (input.type) {
    case 'press':
      return { state: pressed(state, input, bounds) };
    case 'move':
      return { state: moved(state, input, bounds) };
    case 'release':
      return zoom({ ...state, pressedAt: undefined }, bounds);
    case 'click': {
      const bucket = bucketAt(state, input.at, bounds);
      return { state, action: state.opensOnClick ? openAction(bucket, input.at.series, bounds) : undefined };
    }
    case 'key':
      return keyPressed(state, input, bounds);
    case 'leave':
      return { state: IDLE };
  }
}

/** While the mouse button is down, a range continues outside the chart and ends at its edge. */
function bucketAt({ pressedAt }: ChartState, { bucket, isInside }: Point, bounds: Bounds): number | undefined {
  if (pressedAt !== undefined) return clamped(bucket, bounds);
  return isInside && bucket >= 0 && bucket < bounds.buckets ? bucket : undefined;
}

function clamped(bucket: number, { buckets }: Bounds): number {
  return Math.max(0, Math.min(buckets - 1, bucket));
}

function pressed(state: ChartState, input: Extract<ChartInput, { type: 'press' }>, bounds: Bounds): ChartState {
  const { at, isTouch, startsRange } = input;
  const bucket = bucketAt(state, at, bounds);
  const isSecondTap = bucket === highlighted(state, bounds) && at.series === state.series;
  return {
    ...state,
    bucket,
    series: isTouch ? at.series : state.series,
    pressedAt: startsRange ? bucket : state.pressedAt,
    gesture: isTouch ? 'Tap again' : 'Click',
    opensOnClick: !isTouch || isSecondTap,
  };
}

function moved(state: ChartState, input: Extract<ChartInput, { type: 'move' }>, bounds: Bounds): ChartState {
  const bucket = bucketAt(state, input.at, bounds);
  const next: ChartState = { ...state, bucket, series: input.at.series, gesture: 'Click' };
  const from = state.pressedAt;
  if (from === undefined || bucket === undefined || !input.isPressed) return next;
  // A small movement within the pressed bucket is still a click.
  if (!state.range && bucket === from) return next;
  return { ...next, range: { from, to: bucket }, opensOnClick: false };
}

function keyPressed(state: ChartState, input: Extract<ChartInput, { type: 'key' }>, bounds: Bounds): Outcome {
  const { key, hasShift } = input;
  const current = highlighted(state, bounds);
  const focused: ChartState = { ...state, gesture: 'Press Enter' };
  const moveTo = (bucket: number): Outcome => {
    const to = clamped(bucket, bounds);
    const range = hasShift && current !== undefined ? { from: state.range?.from ?? current, to } : undefined;
    return { state: { ...focused, bucket: to, range } };
  };
  switch (key) {
    case 'ArrowRight':
      return moveTo(current === undefined ? 0 : current + 1);
    case 'ArrowLeft':
      return moveTo(current === undefined ? bounds.lastBegun : current - 1);
    case 'Home':
      return moveTo(0);
    case 'End':
      return moveTo(bounds.lastBegun);
    case 'ArrowDown':
      return { state: { ...focused, series: steppedSeries(state, 1, bounds) } };
    case 'ArrowUp':
      return { state: { ...focused, series: steppedSeries(state, -1, bounds) } };
    case 'Escape':
      return { state: IDLE };
    case 'Enter':
      if (state.range) return zoom(focused, bounds);
      return current === undefined ? { state } : { state: focused, action: openAction(current, state.series, bounds) };
    default:
      return { state };
  }
}

/** Returns the next or previous series. The whole bucket, which has no series, is one more stop of the cycle. */
function steppedSeries({ series = -1 }: ChartState, step: number, bounds: Bounds): number | undefined {
  const stops = bounds.series + 1;
  const stop = (series + 1 + step + stops) % stops;
  return stop === 0 ? undefined : stop - 1;
}

function openAction(bucket: number | undefined, series: number | undefined, bounds: Bounds): ChartAction | undefined {
  return bucket === undefined || bucket > bounds.lastBegun ? undefined : { type: 'open', bucket, series };
}

/** Ends the selection, and zooms into the part of it that has begun. */
function zoom(state: ChartState, { lastBegun }: Bounds): Outcome {
  if (!state.range) return { state };
  const { from, to } = state.range;
  const first = Math.min(from, to);
  const last = Math.min(lastBegun, Math.max(from, to));
  const ended = { ...state, range: undefined };
  return first > lastBegun ? { state: ended } : { state: ended, action: { type: 'zoom', first, last } };
}
