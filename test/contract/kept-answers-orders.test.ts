/** A question, whose answer is kept, and a writer, in every order of their steps, with a sealer too. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import { sealNext } from '@meterline/warehouse';
import { Actor, pausing } from '../interleaving.js';
import { execute } from '../stack.js';
import { type Allowed, openStage, type Stage } from './kept-answers-stage.js';

const IS_SHORT = process.env.METERLINE_TEST_SHORT !== undefined;
/** Orders with more changes between the actors are left out: of a question and a writer alone, none is. */
const CHANGES = { ofTwo: IS_SHORT ? 2 : 20, ofFalling: IS_SHORT ? 2 : 3, ofThree: 3 };
/** With two changes a question, a writer and a sealer would only run one after the other. */
const long = IS_SHORT ? it.skip : it;
/** How many orders each test plays, in the short form and in all. */
const ORDERS = IS_SHORT
  ? { sealed: 9, open: 8, falling: 10, sealing: 73 }
  : { sealed: 141, open: 70, falling: 45, sealing: 73 };
const TIMEOUT_MS = 1_800_000;

const SEALED_DAY = Date.UTC(2022, 0, 1);
/** The days that are sealed in an order begin here. */
const FIRST_SEALING = Date.UTC(2022, 1, 1);
/** After what is sealed before, and before what is sealed after it. */
const FALLING_DAY = Date.UTC(2022, 0, 15);
const OPEN_DAY = Date.UTC(2025, 0, 1);

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

/** The second event is the writer's. */
const afterWriter: Allowed = ([hasEnded]) => (hasEnded ? ['2'] : ['1', '2']);

function sealer(until: number): Actor {
  return new Actor(async (pause) => {
    const paused = pausing(stage.warehouse, pause, ['run']);
    while (await sealNext(paused, until));
  });
}

describe('in every order, an answer has what was acknowledged before it was asked for', () => {
  it(
    'beside a writer of a sealed hour',
    async () => {
      const accountOf = await stage.accounts(() => SEALED_DAY);
      await stage.sealUntil(SEALED_DAY + MS_PER_DAY);
      const played = await stage.play(1, CHANGES.ofTwo, (order) => {
        const account = accountOf(order);
        const actors = [stage.writer(account, SEALED_DAY + 1)];
        return { account, day: SEALED_DAY, actors, figure: 'totalUsage', allowed: afterWriter };
      });
      expect(played).toBe(ORDERS.sealed);
    },
    TIMEOUT_MS,
  );

  it(
    'beside a writer of an hour that is not sealed',
    async () => {
      const accountOf = await stage.accounts(() => OPEN_DAY);
      const played = await stage.play(1, CHANGES.ofTwo, (order) => {
        const account = accountOf(order);
        const actors = [stage.writer(account, OPEN_DAY + 1)];
        return { account, day: OPEN_DAY, actors, figure: 'totalUsage', allowed: afterWriter };
      });
      expect(played).toBe(ORDERS.open);
    },
    TIMEOUT_MS,
  );

  it(
    'beside watermarks that fall while no worker runs, and the first writer after it',
    async () => {
      const accountOf = await stage.accounts(() => FALLING_DAY);
      const played = await stage.play(1, CHANGES.ofFalling, async (order) => {
        await stage.sealUntil(FALLING_DAY + MS_PER_DAY);
        const account = accountOf(order);
        const actors = [
          stage.firstWriter(account, FALLING_DAY + 1, () => execute(stage.warehouse, 'TRUNCATE TABLE rollup_seals')),
        ];
        return { account, day: FALLING_DAY, actors, figure: 'totalUsage', allowed: afterWriter };
      });
      expect(played).toBe(ORDERS.falling);
    },
    TIMEOUT_MS,
  );

  long(
    'beside a writer of an hour that is just being sealed, and its sealer',
    async () => {
      const dayOf = (order: number) => FIRST_SEALING + order * MS_PER_DAY;
      const accountOf = await stage.accounts(dayOf);
      await stage.sealUntil(FIRST_SEALING);
      const played = await stage.play(2, CHANGES.ofThree, (order) => {
        const [account, day] = [accountOf(order), dayOf(order)];
        const actors = [stage.writer(account, day + 1), sealer(day + MS_PER_DAY)];
        return { account, day, actors, figure: 'totalUsage', allowed: afterWriter };
      });
      expect(played).toBe(ORDERS.sealing);
    },
    TIMEOUT_MS,
  );
});
