/** A writer with a sealer or another writer, and a sealer with a repairer, in every order of their statements. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { CHANGES_OF_TWO, ordersOfTwo } from '../../../../test/interleaving.js';
import { storeEvents } from '../../../../test/late-events.js';
import { pricedEvent } from '../../../../test/priced-event.js';
import {
  daysFrom,
  distinct,
  lateEvent,
  REPAIRER,
  RollupStage,
  SEALER,
  stopsOf,
  TIMEOUT_MS,
  WRITER,
} from '../../../../test/rollup-orders.js';
import { insertUsageEvents } from '../events/usage-events.js';

/**
 * How many orders each test plays. A repairer that reads the days' watermark too early shows with two changes: it reads, the sealer
 * seals the day, it writes.
 */
const ORDERS = {
  sealerWriter: ordersOfTwo({ 2: 8, 4: 48, 20: 78 }),
  sealerRepairer: ordersOfTwo({ 2: 7, 4: 35, 20: 50 }),
  writers: ordersOfTwo({ 2: 6, 4: 18, 20: 20 }),
};

let stage: RollupStage;
beforeAll(async () => {
  stage = await RollupStage.open(CHANGES_OF_TWO);
});
afterAll(() => stage.close());

describe('in every order of their statements', () => {
  it(
    'a sealer and a writer of an hour that is just being sealed agree',
    async () => {
      const firstDay = Date.UTC(2000, 0, 1);
      await stage.storeOnEachDay(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 2, async (day, id) => ({
        ...{ actors: [stage.writer(lateEvent(day), id), stage.sealer(day + MS_PER_DAY)], id },
        ...{ usage: 1, effects: [1, 0] },
      }));
      expect(played).toBe(ORDERS.sealerWriter);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(WRITER)));
      expect(stopsOf(pausePoints, 1)).toEqual(distinct([SEALER]));
    },
    TIMEOUT_MS,
  );

  it(
    'a sealer of a day and a repairer of one of its hours agree',
    async () => {
      const firstDay = Date.UTC(2003, 0, 1);
      await stage.storeOnEachDay(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 2, async (day, id) => {
        const end = day + MS_PER_DAY;
        await stage.sealHours(end);
        await storeEvents(stage.warehouse, [lateEvent(day)], id);
        return { actors: [stage.repairer(id), stage.sealer(end)], id, usage: 2, effects: [0, 0] };
      });
      expect(played).toBe(ORDERS.sealerRepairer);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(REPAIRER).slice(1)));
      expect(stopsOf(pausePoints, 1)).toEqual(distinct([SEALER.slice(3)]));
    },
    TIMEOUT_MS,
  );

  it(
    'two writers of one sealed hour agree, one of them with a void',
    async () => {
      const firstDay = Date.UTC(2010, 0, 1);
      const voidable = new Map(daysFrom(firstDay).map((day) => [day, pricedEvent({ timestamp: day })]));
      const others = [...voidable.keys()].map((day) => pricedEvent({ timestamp: day + MS_PER_HOUR }));
      await insertUsageEvents(stage.warehouse, [...voidable.values(), ...others]);
      await stage.sealAll(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 2, async (day, id) => {
        const voided = { ...(voidable.get(day) ?? pricedEvent({ timestamp: day })), revision: 1, voided: true };
        const actors = [stage.writer(lateEvent(day), id), stage.writer(voided, id)];
        return { actors, id, usage: 2, effects: [1, -1] };
      });
      expect(played).toBe(ORDERS.writers);
      expect(distinct(pausePoints.flat())).toEqual(distinct([WRITER['the hour is']]));
    },
    TIMEOUT_MS,
  );
});
