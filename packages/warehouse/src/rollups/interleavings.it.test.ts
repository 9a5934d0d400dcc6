/**
 * A writer with a sealer or another writer, and a sealer with a recomputer, in every order of their statements; in the long run also three at
 * a time.
 */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { Actor, CHANGES_OF_TWO, pausing } from '../../../../test/harness/interleaving.js';
import { storeEvents } from '../../../../test/harness/late-events.js';
import { itLong, LONG } from '../../../../test/harness/long.js';
import {
  allowed,
  ask,
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

jest.setTimeout(TIMEOUT_MS);

/**
 * How many orders each test plays. A recomputer that reads the days' watermark too early shows with two changes: it reads, the sealer
 * seals the day, it writes.
 */
const ORDERS = LONG
  ? { sealerWriter: 48, sealerRecomputer: 35, writers: 18 }
  : { sealerWriter: 8, sealerRecomputer: 7, writers: 6 };
/** Of three: those with more changes from one to another are left out. */
const CHANGES_OF_THREE = 3;
const ORDERS_OF_THREE = { sealerWriterRecomputer: 43, writerRecomputerQuery: 48, recomputersWriter: 58 };
const QUERY = ['read_dirty_hours', 'read_metrics'];

let stage: RollupStage;

describe('in every order of their statements', () => {
  beforeAll(async () => {
    stage = await RollupStage.open(CHANGES_OF_TWO);
  });
  afterAll(() => stage.close());

  it('a sealer and a writer of an hour that is just being sealed agree', async () => {
    const firstDay = Date.UTC(2000, 0, 1);
    await stage.storeOnEachDay(firstDay);
    const { played, pausePoints } = await stage.play(firstDay, 2, async (day) => ({
      ...{ actors: [stage.writer(lateEvent(day)), stage.sealer(day + MS_PER_DAY)] },
      ...{ usage: 1, effects: [1, 0] },
    }));
    expect(played).toBe(ORDERS.sealerWriter);
    expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(WRITER)));
    expect(stopsOf(pausePoints, 1)).toEqual(distinct([SEALER]));
  });

  it('a sealer of a day and a recomputer of one of its hours agree', async () => {
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
  });

  it('two writers of one sealed hour agree, one of them with a void', async () => {
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
  });
});

describe('in orders of the statements of three', () => {
  beforeAll(async () => {
    stage = await RollupStage.open(CHANGES_OF_THREE);
  });
  afterAll(() => stage.close());

  itLong('a sealer, a writer and a recomputer of an hour that is just being sealed agree', async () => {
    const firstDay = Date.UTC(2005, 0, 1);
    await stage.storeOnEachDay(firstDay);
    const { played, pausePoints } = await stage.play(firstDay, 3, async (day) => ({
      ...{ actors: [stage.writer(lateEvent(day)), stage.recomputer(), stage.sealer(day + MS_PER_DAY)] },
      ...{ usage: 1, effects: [1, 0, 0] },
    }));
    expect(played).toBe(ORDERS_OF_THREE.sealerWriterRecomputer);
    expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(WRITER)));
    expect(stopsOf(pausePoints, 1)).toEqual(distinct(Object.values(RECOMPUTER)));
    expect(stopsOf(pausePoints, 2)).toEqual(distinct([SEALER]));
  });

  itLong('a writer and a recomputer of one sealed hour, and a query, agree', async () => {
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
    expect(played).toBe(ORDERS_OF_THREE.writerRecomputerQuery);
    expect(stopsOf(pausePoints, 0)).toEqual(distinct([WRITER['the hour is']]));
    expect(stopsOf(pausePoints, 1)).toEqual(distinct([RECOMPUTER['a mark, and the day is']]));
    expect(stopsOf(pausePoints, 2)).toEqual(distinct([QUERY]));
  });

  itLong('two recomputers of one sealed hour and a writer agree', async () => {
    const firstDay = Date.UTC(2020, 0, 1);
    await stage.storeOnEachDay(firstDay);
    await stage.sealAll(firstDay);
    const { played, pausePoints } = await stage.play(firstDay, 3, async (day) => {
      await storeEvents(stage.warehouse, [lateEvent(day)]);
      const actors = [stage.writer(lateEvent(day)), stage.recomputer(), stage.recomputer()];
      return { actors, usage: 2, effects: [1, 0, 0] };
    });
    expect(played).toBe(ORDERS_OF_THREE.recomputersWriter);
    expect(stopsOf(pausePoints, 0)).toEqual(distinct([WRITER['the hour is']]));
    const found = distinct([RECOMPUTER['no mark'], RECOMPUTER['a mark, and the day is']]);
    expect([stopsOf(pausePoints, 1), stopsOf(pausePoints, 2)]).toEqual([found, found]);
  });
});
