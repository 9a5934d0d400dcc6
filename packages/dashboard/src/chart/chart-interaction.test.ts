import { describe, expect, it } from '@jest/globals';
import {
  type ChartState,
  click,
  IDLE,
  move,
  type Outcome,
  type Point,
  press,
  pressKey,
  release,
} from './chart-interaction.js';

/** Ten buckets and three series. The last two buckets have not begun. */
const BOUNDS = { buckets: 10, lastBegun: 7, series: 3 };

type Input = (state: ChartState) => Outcome;
const at = (bucket: number, series?: number, isInside = true): Point => ({ bucket, series, isInside });
const mouseDown =
  (point: Point): Input =>
  (state) => ({ state: press(state, point, 'mouse', BOUNDS) });
const tap =
  (point: Point): Input =>
  (state) => ({ state: press(state, point, 'touch', BOUNDS) });
const drag =
  (point: Point): Input =>
  (state) => ({ state: move(state, point, true, BOUNDS) });
const hover =
  (point: Point): Input =>
  (state) => ({ state: move(state, point, false, BOUNDS) });
const mouseUp: Input = (state) => release(state, BOUNDS);
const clickAt =
  (point: Point): Input =>
  (state) =>
    click(state, point, BOUNDS);
const keys = (text: string) =>
  text.split(' ').map((name): Input => {
    const key = name.replace('Shift+', '');
    return (state) => pressKey(state, key, key !== name, BOUNDS) ?? { state };
  });

/** Returns the last state and all actions. */
function run(...inputs: Input[]) {
  let state: ChartState = IDLE;
  const actions = inputs.flatMap((input) => {
    const { state: next, ...action } = input(state);
    state = next;
    return Object.keys(action).length > 0 ? action : [];
  });
  return { state, actions };
}
const zoom = (from: number, to: number) => ({ zoom: { from, to } });
const open = (bucket: number, series?: number) => ({ open: { bucket, series } });

describe('the mouse', () => {
  it('a movement highlights the bar under the pointer', () => {
    expect(run(hover(at(4, 1))).state).toMatchObject({ bucket: 4, series: 1 });
    expect(run(hover(at(4, undefined, false))).state.bucket).toBeUndefined();
  });

  it('a click opens the bar, even after a small movement within its bucket', () => {
    expect(run(mouseDown(at(4, 1)), drag(at(4, 1)), mouseUp, clickAt(at(4, 1))).actions).toEqual([open(4, 1)]);
  });

  it.each<[string, number[], object]>([
    ['to the right', [5, 6], zoom(4, 6)],
    ['to the left', [3, 2], zoom(2, 4)],
    ['and back to the first bucket', [6, 4], zoom(4, 4)],
    ['past the right edge', [99], zoom(4, 7)],
    ['past the left edge', [-3], zoom(0, 4)],
  ])('dragging %s zooms into the range, and the click that ends the drag opens nothing', (_where, path, action) => {
    const moves = path.map((bucket) => drag(at(bucket)));
    const { state, actions } = run(mouseDown(at(4, 1)), ...moves, mouseUp, clickAt(at(5)));
    expect(actions).toEqual([action]);
    expect(state.range).toBeUndefined();
  });

  it('a range continues above the chart', () => {
    expect(run(mouseDown(at(4)), drag(at(6, undefined, false))).state.range).toEqual({ from: 4, to: 6 });
  });

  it('future buckets do nothing', () => {
    expect(run(mouseDown(at(8)), mouseUp, clickAt(at(8)), mouseDown(at(8)), drag(at(9)), mouseUp).actions).toEqual([]);
  });
});

it('the first tap highlights a bar, and the second tap opens it', () => {
  const bar = at(4, 1);
  const first = run(tap(bar), mouseUp, clickAt(bar));
  expect(first).toMatchObject({ actions: [], state: { bucket: 4, series: 1, gesture: 'Tap again' } });
  expect(run(tap(bar), mouseUp, clickAt(bar), tap(bar), mouseUp, clickAt(bar)).actions).toEqual([open(4, 1)]);
  expect(run(tap(bar), clickAt(bar), tap(at(4, 2)), clickAt(at(4, 2))).actions).toEqual([]);
});

describe('the keyboard', () => {
  it.each<[string, number | undefined]>([
    ['ArrowRight', 0],
    ['ArrowLeft', 7],
    ['Home', 0],
    ['End', 7],
    ['Home ArrowLeft', 0],
    ['End ArrowRight ArrowRight ArrowRight', 9],
    ['End ArrowLeft', 6],
    ['End Escape', undefined],
  ])('%s moves to bucket %s', (names, bucket) => {
    expect(run(...keys(names)).state.bucket).toBe(bucket);
  });

  it.each<[string, number | undefined]>([
    ['ArrowDown', 0],
    ['ArrowDown ArrowDown ArrowDown', 2],
    ['ArrowDown ArrowDown ArrowDown ArrowDown', undefined],
    ['ArrowUp', 2],
  ])('End %s moves to series %s', (names, series) => {
    expect(run(...keys(`End ${names}`)).state.series).toBe(series);
  });

  it.each<[string, object[]]>([
    ['Enter', []],
    ['End Enter', [open(7)]],
    ['End ArrowDown Enter', [open(7, 0)]],
    ['End ArrowRight Enter', []],
    ['End Shift+ArrowLeft Shift+ArrowLeft Enter', [zoom(5, 7)]],
    ['End Shift+ArrowRight Enter', [zoom(7, 7)]],
    ['End ArrowRight Shift+ArrowRight Enter', []],
    ['End Shift+ArrowLeft ArrowLeft Enter', [open(5)]],
  ])('%s performs %j', (names, actions) => {
    expect(run(...keys(names)).actions).toEqual(actions);
  });

  it('an unrelated key has no outcome, so that the browser handles the key', () => {
    expect(pressKey(IDLE, 'Tab', false, BOUNDS)).toBeUndefined();
    expect(pressKey(IDLE, 'Enter', false, BOUNDS)).toBeUndefined();
  });
});

it('a highlight that the new data no longer has is ignored', () => {
  const state: ChartState = { ...IDLE, bucket: 12 };
  expect(pressKey(state, 'Enter', false, BOUNDS)).toBeUndefined();
  expect(pressKey(state, 'ArrowRight', false, BOUNDS)?.state.bucket).toBe(0);
});
