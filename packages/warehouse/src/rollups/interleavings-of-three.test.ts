/** A writer and a repairer with a sealer, a question or another repairer, in orders of their statements. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import { Actor, pausing } from '../../../../test/interleaving.js';
import { storeEvents } from '../../../../test/late-events.js';
import {
  allowed,
  ask,
  distinct,
  lateEvent,
  REPAIRER,
  RollupStage,
  SEALER,
  stopsOf,
  TIMEOUT_MS,
  WRITER,
} from '../../../../test/rollup-orders.js';

/** Orders with more changes from one actor to another are left out. */
const CHANGES = 3;
/** How many orders each test plays. */
const ORDERS = { sealerWriterRepairer: 43, writerRepairerQuestion: 48, repairersWriter: 58 };
const QUESTION = ['read_stale_hours', 'read_metrics'];

let stage: RollupStage;
beforeAll(async () => {
  stage = await RollupStage.open(CHANGES);
});
afterAll(() => stage.close());

describe('in orders of their statements', () => {
  it(
    'a sealer, a writer and a repairer of an hour that is just being sealed agree',
    async () => {
      const firstDay = Date.UTC(2005, 0, 1);
      await stage.storeOnEachDay(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 3, async (day, id) => ({
        ...{ actors: [stage.writer(lateEvent(day), id), stage.repairer(id), stage.sealer(day + MS_PER_DAY)], id },
        ...{ usage: 1, effects: [1, 0, 0] },
      }));
      expect(played).toBe(ORDERS.sealerWriterRepairer);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(WRITER)));
      expect(stopsOf(pausePoints, 1)).toEqual(distinct(Object.values(REPAIRER)));
      expect(stopsOf(pausePoints, 2)).toEqual(distinct([SEALER]));
    },
    TIMEOUT_MS,
  );

  it(
    'a writer and a repairer of one sealed hour, and a question, agree',
    async () => {
      const firstDay = Date.UTC(2015, 0, 1);
      await stage.storeOnEachDay(firstDay);
      await stage.sealAll(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 3, async (day, id) => {
        // There is a mark already, and the cells lack its event.
        await storeEvents(stage.warehouse, [lateEvent(day)], id);
        const sealed = await stage.sealedUntil();
        const [writes, repairs] = [stage.writer(lateEvent(day), id), stage.repairer(id)];
        const asks = new Actor(async (pause) => {
          let ended: boolean[] | undefined;
          const paused = pausing(stage.warehouse, async (name) => {
            await pause(name);
            ended ??= scene.actors.map(({ hasEnded }) => hasEnded);
          });
          const usage = await ask(paused, day, sealed);
          expect([...allowed(scene, ended ?? [])]).toContain(usage);
        });
        const scene = { actors: [writes, repairs, asks], id, usage: 2, effects: [1, 0, 0] };
        return scene;
      });
      expect(played).toBe(ORDERS.writerRepairerQuestion);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct([WRITER['the hour is']]));
      expect(stopsOf(pausePoints, 1)).toEqual(distinct([REPAIRER['a mark, and the day is']]));
      expect(stopsOf(pausePoints, 2)).toEqual(distinct([QUESTION]));
    },
    TIMEOUT_MS,
  );

  it(
    'two repairers of one sealed hour and a writer agree',
    async () => {
      const firstDay = Date.UTC(2020, 0, 1);
      await stage.storeOnEachDay(firstDay);
      await stage.sealAll(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 3, async (day, id) => {
        await storeEvents(stage.warehouse, [lateEvent(day)], id);
        const actors = [stage.writer(lateEvent(day), id), stage.repairer(id), stage.repairer(id)];
        return { actors, id, usage: 2, effects: [1, 0, 0] };
      });
      expect(played).toBe(ORDERS.repairersWriter);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct([WRITER['the hour is']]));
      const found = distinct([REPAIRER['no mark'], REPAIRER['a mark, and the day is']]);
      expect([stopsOf(pausePoints, 1), stopsOf(pausePoints, 2)]).toEqual([found, found]);
    },
    TIMEOUT_MS,
  );
});
