/** A writer with a sealer or another writer, and a sealer with a recomputer, in every order of their statements. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { CHANGES_OF_TWO } from '../../../../test/harness/interleaving.js';
import { storeEvents } from '../../../../test/harness/late-events.js';
import { LONG } from '../../../../test/harness/long.js';
import {
  daysFrom,
  distinct,
  lateEvent,
  RECOMPUTER,
  RollupStage,
  SEALER,
  stopsOf,
  TIMEOUT_MS,
  WRITER,
} from '../../../../test/harness/rollup-orders.js';
import { insertUsageEvents } from '../events/usage-events.js';

/**
 * How many orders each test plays. A recomputer that reads the days' watermark too early shows with two changes: it reads, the sealer
 * seals the day, it writes.
 */
const ORDERS = LONG
  ? { sealerWriter: 48, sealerRecomputer: 35, writers: 18 }
  : { sealerWriter: 8, sealerRecomputer: 7, writers: 6 };

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
      const { played, pausePoints } = await stage.play(firstDay, 2, async (day) => ({
        ...{ actors: [stage.writer(lateEvent(day)), stage.sealer(day + MS_PER_DAY)] },
        ...{ usage: 1, effects: [1, 0] },
      }));
      expect(played).toBe(ORDERS.sealerWriter);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(WRITER)));
      expect(stopsOf(pausePoints, 1)).toEqual(distinct([SEALER]));
    },
    TIMEOUT_MS,
  );

  it(
    'a sealer of a day and a recomputer of one of its hours agree',
    async () => {
      const firstDay = Date.UTC(2003, 0, 1);
      await stage.storeOnEachDay(firstDay);
      const { played, pausePoints } = await stage.play(firstDay, 2, async (day) => {
        const end = day + MS_PER_DAY;
        await stage.sealHours(end);
        await storeEvents(stage.warehouse, [lateEvent(day)]);
        return { actors: [stage.recomputer(), stage.sealer(end)], usage: 2, effects: [0, 0] };
      });
      expect(played).toBe(ORDERS.sealerRecomputer);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(RECOMPUTER).slice(1)));
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
      const { played, pausePoints } = await stage.play(firstDay, 2, async (day) => {
        const voided = { ...(voidable.get(day) ?? pricedEvent({ timestamp: day })), revision: 1, voided: true };
        const actors = [stage.writer(lateEvent(day)), stage.writer(voided)];
        return { actors, usage: 2, effects: [1, -1] };
      });
      expect(played).toBe(ORDERS.writers);
      expect(distinct(pausePoints.flat())).toEqual(distinct([WRITER['the hour is']]));
    },
    TIMEOUT_MS,
  );
});
