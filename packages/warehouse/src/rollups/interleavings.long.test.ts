/**
 * Sealers, writers, recomputers and queries, in every order of their statements: two at a time, and in the long form three. The days of
 * each test come after those of the test before: watermarks never fall.
 */
import { expect, it, jest } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { pausing, SteppedTask } from '../../../../test/harness/interleaving.js';
import {
  allowed,
  ask,
  daysFrom,
  distinct,
  lateEvent,
  RECOMPUTER,
  RollupFixture,
  SEALER,
  stopsOf,
  TIMEOUT_MS,
  WRITER,
} from '../../../../test/harness/rollup-interleaving.js';
import { storeEvents } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { insertUsageEvents } from '../events/usage-events.js';

jest.setTimeout(TIMEOUT_MS);

/**
 * How many orders each test plays. A recomputer that reads the days' watermark too early shows with two changes: it reads, the sealer
 * seals the day, it writes.
 */
const ORDERS = { sealerWriter: 48, sealerRecomputer: 35, writers: 18 };
const ORDERS_OF_THREE = { sealerWriterRecomputer: 43, writerRecomputerQuery: 48, recomputersWriter: 58 };

const fixture = new RollupFixture(testDatabase());

it('a sealer and a writer of an hour that is just being sealed agree in every order of their statements', async () => {
  const firstDay = Date.UTC(2000, 0, 1);
  await fixture.storeOnEachDay(firstDay);
  const { played, pausePoints } = await fixture.play(firstDay, 2, async (day) => ({
    ...{ tasks: [fixture.writer(lateEvent(day)), fixture.sealer(day + MS_PER_DAY)] },
    ...{ usage: 1, effects: [1, 0] },
  }));
  expect(played).toBe(ORDERS.sealerWriter);
  expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(WRITER)));
  expect(stopsOf(pausePoints, 1)).toEqual(distinct([SEALER]));
});

it('a sealer of a day and a recomputer of one of its hours agree in every order of their statements', async () => {
  const firstDay = Date.UTC(2003, 0, 1);
  await fixture.storeOnEachDay(firstDay);
  const { played, pausePoints } = await fixture.play(firstDay, 2, async (day) => {
    const end = day + MS_PER_DAY;
    await fixture.sealHours(end);
    await storeEvents(fixture.warehouse, [lateEvent(day)]);
    return { tasks: [fixture.recomputer(), fixture.sealer(end)], usage: 2, effects: [0, 0] };
  });
  expect(played).toBe(ORDERS.sealerRecomputer);
  expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(RECOMPUTER).slice(1)));
  expect(stopsOf(pausePoints, 1)).toEqual(distinct([SEALER.slice(3)]));
});

it('a sealer, a writer and a recomputer of an hour that is just being sealed agree in orders of their statements', async () => {
  const firstDay = Date.UTC(2005, 0, 1);
  await fixture.storeOnEachDay(firstDay);
  const { played, pausePoints } = await fixture.play(firstDay, 3, async (day) => ({
    ...{ tasks: [fixture.writer(lateEvent(day)), fixture.recomputer(), fixture.sealer(day + MS_PER_DAY)] },
    ...{ usage: 1, effects: [1, 0, 0] },
  }));
  expect(played).toBe(ORDERS_OF_THREE.sealerWriterRecomputer);
  expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(WRITER)));
  expect(stopsOf(pausePoints, 1)).toEqual(distinct(Object.values(RECOMPUTER)));
  expect(stopsOf(pausePoints, 2)).toEqual(distinct([SEALER]));
});

it('two writers of one sealed hour, one of them with a void, agree in every order of their statements', async () => {
  const firstDay = Date.UTC(2010, 0, 1);
  const voidable = new Map(daysFrom(firstDay).map((day) => [day, pricedEvent({ timestamp: day })]));
  const others = [...voidable.keys()].map((day) => pricedEvent({ timestamp: day + MS_PER_HOUR }));
  await insertUsageEvents(fixture.warehouse, [...voidable.values(), ...others]);
  await fixture.sealAll(firstDay);
  const { played, pausePoints } = await fixture.play(firstDay, 2, async (day) => {
    const voided = { ...(voidable.get(day) ?? pricedEvent({ timestamp: day })), revision: 1, voided: true };
    const tasks = [fixture.writer(lateEvent(day)), fixture.writer(voided)];
    return { tasks, usage: 2, effects: [1, -1] };
  });
  expect(played).toBe(ORDERS.writers);
  expect(distinct(pausePoints.flat())).toEqual(distinct([WRITER['the hour is']]));
});

it('a writer and a recomputer of one sealed hour, and a query, agree in orders of their statements', async () => {
  const firstDay = Date.UTC(2015, 0, 1);
  await fixture.storeOnEachDay(firstDay);
  await fixture.sealAll(firstDay);
  const { played, pausePoints } = await fixture.play(firstDay, 3, async (day) => {
    // There is a mark already, and the rollup rows lack its event.
    await storeEvents(fixture.warehouse, [lateEvent(day)]);
    const sealed = await fixture.sealedUntil();
    const [writes, recomputes] = [fixture.writer(lateEvent(day)), fixture.recomputer()];
    const asks = new SteppedTask(async (pause) => {
      let ended: boolean[] | undefined;
      const paused = pausing(fixture.warehouse, async (name) => {
        await pause(name);
        ended ??= race.tasks.map(({ hasEnded }) => hasEnded);
      });
      const usage = await ask(paused, day, sealed);
      expect([...allowed(race, ended ?? [])]).toContain(usage);
    });
    const race = { tasks: [writes, recomputes, asks], usage: 2, effects: [1, 0, 0] };
    return race;
  });
  expect(played).toBe(ORDERS_OF_THREE.writerRecomputerQuery);
  expect(stopsOf(pausePoints, 0)).toEqual(distinct([WRITER['the hour is']]));
  expect(stopsOf(pausePoints, 1)).toEqual(distinct([RECOMPUTER['a mark, and the day is']]));
  expect(stopsOf(pausePoints, 2)).toEqual(distinct([['read_dirty_hours', 'read_metrics']]));
});

it('two recomputers of one sealed hour and a writer agree in orders of their statements', async () => {
  const firstDay = Date.UTC(2020, 0, 1);
  await fixture.storeOnEachDay(firstDay);
  await fixture.sealAll(firstDay);
  const { played, pausePoints } = await fixture.play(firstDay, 3, async (day) => {
    await storeEvents(fixture.warehouse, [lateEvent(day)]);
    const tasks = [fixture.writer(lateEvent(day)), fixture.recomputer(), fixture.recomputer()];
    return { tasks, usage: 2, effects: [1, 0, 0] };
  });
  expect(played).toBe(ORDERS_OF_THREE.recomputersWriter);
  expect(stopsOf(pausePoints, 0)).toEqual(distinct([WRITER['the hour is']]));
  const found = distinct([RECOMPUTER['no mark'], RECOMPUTER['a mark, and the day is']]);
  expect([stopsOf(pausePoints, 1), stopsOf(pausePoints, 2)]).toEqual([found, found]);
});
