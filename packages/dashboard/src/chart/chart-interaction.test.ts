import { describe, expect, it } from '@jest/globals';
import { type ChartInput, type ChartState, IDLE, interact, type Point } from './chart-interaction.js';

/** Ten buckets, of which the last two have not begun, and three series. */
const BOUNDS = { buckets: 10, lastBegun: 7, series: 3 };

const at = (bucket: number, series?: number, isInside = true): Point => ({ bucket, series, isInside });
const press = (point: Point): ChartInput => ({ type: 'press', at: point, isTouch: false, startsRange: true });
const tap = (point: Point): ChartInput => ({ type: 'press', at: point, isTouch: true, startsRange: false });
const move = (point: Point, isPressed = true): ChartInput => ({ type: 'move', at: point, isPressed });
const click = (point: Point): ChartInput => ({ type: 'click', at: point });
const key = (name: string): ChartInput => {
  const [, shift, pressed = name] = /^(Shift\+)?(.*)$/.exec(name) ?? [];
  return { type: 'key', key: pressed, hasShift: shift !== undefined };
};
const RELEASE: ChartInput = { type: 'release' };
const LEAVE: ChartInput = { type: 'leave' };

/** Returns the last state and all actions. */
function run(...inputs: ChartInput[]) {
  let state: ChartState = IDLE;
  const actions = inputs.flatMap((input) => {
    const outcome = interact(state, input, BOUNDS);
    state = outcome.state;
    return outcome.action ?? [];
  });
  return { state, actions };
}
const zoom = (first: number, last: number) => ({ type: 'zoom', first, last });
const open = (bucket: number, series?: number) => ({ type: 'open', bucket, series });

describe('the mouse', () => {
  it('a movement highlights the bar under the pointer, and leaving ends the highlight', () => {
    expect(run(move(at(4, 1), false)).state).toMatchObject({ bucket: 4, series: 1 });
    expect(run(move(at(4, 1), false), LEAVE).state).toBe(IDLE);
    expect(run(move(at(4, undefined, false), false)).state.bucket).toBeUndefined();
  });

  it('a click opens the bar, even after a small movement within its bucket', () => {
    expect(run(press(at(4, 1)), move(at(4, 1)), RELEASE, click(at(4, 1))).actions).toEqual([open(4, 1)]);
  });

  it.each<[string, number[], object]>([
    ['to the right', [5, 6], zoom(4, 6)],
    ['to the left', [3, 2], zoom(2, 4)],
    ['and back to the first bucket', [6, 4], zoom(4, 4)],
    ['past the right edge', [99], zoom(4, 7)],
    ['past the left edge', [-3], zoom(0, 4)],
  ])('dragging %s zooms into the range, and the click that ends the drag opens nothing', (_where, path, action) => {
    const moves = path.map((bucket) => move(at(bucket)));
    const { state, actions } = run(press(at(4, 1)), ...moves, RELEASE, click(at(5)));
    expect(actions).toEqual([action]);
    expect(state.range).toBeUndefined();
  });

  it('a range continues above the chart', () => {
    expect(run(press(at(4)), move(at(6, undefined, false))).state.range).toEqual({ from: 4, to: 6 });
  });

  it('future buckets do nothing', () => {
    expect(run(press(at(8)), RELEASE, click(at(8)), press(at(8)), move(at(9)), RELEASE).actions).toEqual([]);
  });
});

it('the first tap highlights a bar, and the second tap opens it', () => {
  const bar = at(4, 1);
  const first = run(tap(bar), RELEASE, click(bar));
  expect(first).toMatchObject({ actions: [], state: { bucket: 4, series: 1, gesture: 'Tap again' } });
  expect(run(tap(bar), RELEASE, click(bar), tap(bar), RELEASE, click(bar)).actions).toEqual([open(4, 1)]);
  expect(run(tap(bar), click(bar), tap(at(4, 2)), click(at(4, 2))).actions).toEqual([]);
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
  ])('%s moves to bucket %s', (keys, bucket) => {
    expect(run(...keys.split(' ').map(key)).state.bucket).toBe(bucket);
  });

  it.each<[string, number | undefined]>([
    ['ArrowDown', 0],
    ['ArrowDown ArrowDown ArrowDown', 2],
    ['ArrowDown ArrowDown ArrowDown ArrowDown', undefined],
    ['ArrowUp', 2],
  ])('End %s moves to series %s', (keys, series) => {
    expect(run(...`End ${keys}`.split(' ').map(key)).state.series).toBe(series);
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
  ])('%s performs %j', (keys, actions) => {
    expect(run(...keys.split(' ').map(key)).actions).toEqual(actions);
  });

  it('an unrelated key returns the same state, so that the browser handles the key', () => {
    expect(interact(IDLE, key('Tab'), BOUNDS).state).toBe(IDLE);
    expect(interact(IDLE, key('Enter'), BOUNDS).state).toBe(IDLE);
  });
});

it('a highlight that the new data no longer has is ignored', () => {
  const state: ChartState = { ...IDLE, bucket: 12 };
  expect(interact(state, key('Enter'), BOUNDS).action).toBeUndefined();
  expect(interact(state, key('ArrowRight'), BOUNDS).state.bucket).toBe(0);
});
