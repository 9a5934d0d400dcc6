/** A writer and a recomputer with a sealer, a question or another repairer, in orders of their statements. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import { Actor, pausing } from '../../../../test/harness/interleaving.js';
import { storeEvents } from '../../../../test/harness/late-events.js';
import {
  allowed,
  ask,
  distinct,
  lateEvent,
  RECOMPUTER,
  RollupStage,
  SEALER,
  stopsOf,
  TIMEOUT_MS,
  WRITER,
} from '../../../../test/harness/rollup-orders.js';

/** Orders with more changes from one actor to another are left out. */
const CHANGES = 3;
/** How many orders each test plays. */
const ORDERS = { sealerWriterRecomputer: 43, writerRecomputerQuery: 48, recomputersWriter: 58 };
const QUERY = ['read_dirty_hours', 'read_metrics'];

let stage: RollupStage;
beforeAll(async () => {
  stage = await RollupStage.open(CHANGES);
});
afterAll(() => stage.close());

describe('in orders of their statements', () => {
  it(
    'a sealer, a writer and a recomputer of an hour that is just being sealed agree',
    async () => {
      const firstDay = Date.UTC(2005, 0, 1);
      await stage.storeOnEachDay(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 3, async (day) => ({
        ...{ actors: [stage.writer(lateEvent(day)), stage.recomputer(), stage.sealer(day + MS_PER_DAY)] },
        ...{ usage: 1, effects: [1, 0, 0] },
      }));
      expect(played).toBe(ORDERS.sealerWriterRecomputer);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(WRITER)));
      expect(stopsOf(pausePoints, 1)).toEqual(distinct(Object.values(RECOMPUTER)));
      expect(stopsOf(pausePoints, 2)).toEqual(distinct([SEALER]));
    },
    TIMEOUT_MS,
  );

  it(
    'a writer and a recomputer of one sealed hour, and a query, agree',
    async () => {
      const firstDay = Date.UTC(2015, 0, 1);
      await stage.storeOnEachDay(firstDay);
      await stage.sealAll(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 3, async (day) => {
        // There is a mark already, and the rollup rows lack its event.
        await storeEvents(stage.warehouse, [lateEvent(day)]);
        const sealed = await stage.sealedUntil();
        const [writes, repairs] = [stage.writer(lateEvent(day)), stage.recomputer()];
        const asks = new Actor(async (pause) => {
          let ended: boolean[] | undefined;
          const paused = pausing(stage.warehouse, async (name) => {
            await pause(name);
            ended ??= scene.actors.map(({ hasEnded }) => hasEnded);
          });
          const usage = await ask(paused, day, sealed);
          expect([...allowed(scene, ended ?? [])]).toContain(usage);
        });
        const scene = { actors: [writes, repairs, asks], usage: 2, effects: [1, 0, 0] };
        return scene;
      });
      expect(played).toBe(ORDERS.writerRecomputerQuery);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct([WRITER['the hour is']]));
      expect(stopsOf(pausePoints, 1)).toEqual(distinct([RECOMPUTER['a mark, and the day is']]));
      expect(stopsOf(pausePoints, 2)).toEqual(distinct([QUERY]));
    },
    TIMEOUT_MS,
  );

  it(
    'two recomputers of one sealed hour and a writer agree',
    async () => {
      const firstDay = Date.UTC(2020, 0, 1);
      await stage.storeOnEachDay(firstDay);
      await stage.sealAll(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 3, async (day) => {
        await storeEvents(stage.warehouse, [lateEvent(day)]);
        const actors = [stage.writer(lateEvent(day)), stage.recomputer(), stage.recomputer()];
        return { actors, usage: 2, effects: [1, 0, 0] };
      });
      expect(played).toBe(ORDERS.recomputersWriter);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct([WRITER['the hour is']]));
      const found = distinct([RECOMPUTER['no mark'], RECOMPUTER['a mark, and the day is']]);
      expect([stopsOf(pausePoints, 1), stopsOf(pausePoints, 2)]).toEqual([found, found]);
    },
    TIMEOUT_MS,
  );
});
