/** A question, whose answer is kept, and a writer, in every order of their steps. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import { CHANGES_OF_TWO, ordersOfTwo } from '../interleaving.js';
import { execute } from '../stack.js';
import { type Allowed, openStage, type Stage } from './kept-answers-stage.js';

const TIMEOUT_MS = 1_800_000;

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

/** `played`: how many orders. */
const HOURS = [
  {
    hour: 'a sealed hour',
    day: Date.UTC(2022, 0, 1),
    isSealed: true,
    played: ordersOfTwo({ 2: 9, 4: 66, 20: 141 }),
  },
  {
    hour: 'an hour that is not sealed',
    day: Date.UTC(2025, 0, 1),
    isSealed: false,
    played: ordersOfTwo({ 2: 8, 4: 44, 20: 70 }),
  },
];

/** The second event is the writer's. */
const allowed: Allowed = ([hasEnded]) => (hasEnded ? ['2'] : ['1', '2']);

it.each(HOURS)(
  'in every order, an answer has what was acknowledged before it was asked for, beside a writer of $hour',
  async ({ day, isSealed, played }) => {
    const accountOf = await stage.accounts(() => day);
    if (isSealed) await stage.sealUntil(day + MS_PER_DAY);
    const orders = await stage.play(1, CHANGES_OF_TWO, (order) => {
      const account = accountOf(order);
      return { account, day, actors: [stage.writer(account, day + 1)], figure: 'totalUsage', allowed };
    });
    expect(orders).toBe(played);
  },
  TIMEOUT_MS,
);

it(
  'so has it beside watermarks that fall while no worker runs, and the first writer after it',
  async () => {
    // After the hour that is sealed above: all before it is sealed once more, in each order.
    const day = Date.UTC(2022, 0, 15);
    const accountOf = await stage.accounts(() => day);
    const orders = await stage.play(1, Math.min(CHANGES_OF_TWO, 3), async (order) => {
      await stage.sealUntil(day + MS_PER_DAY);
      const account = accountOf(order);
      const fall = () => execute(stage.warehouse, 'TRUNCATE TABLE rollup_seals');
      return { account, day, actors: [stage.firstWriter(account, day + 1, fall)], figure: 'totalUsage', allowed };
    });
    expect(orders).toBe(CHANGES_OF_TWO === 2 ? 10 : 45);
  },
  TIMEOUT_MS,
);
