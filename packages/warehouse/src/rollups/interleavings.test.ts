/**
 * Sealers, writers, repairers and questions stopped before each of their statements and resumed in every order: after each
 * statement an answer holds everything that is acknowledged, and in the end cells and events agree, and so does every answer
 * that trusts watermarks read at any moment before.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { Actor, pausing, playOrders } from '../../../../test/interleaving.js';
import { repairAll, storeEvents } from '../../../../test/late-events.js';
import { pricedEvent } from '../../../../test/priced-event.js';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import type { Warehouse } from '../clickhouse/connection.js';
import type { PricedEvent } from '../events/event-rows.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from '../metrics/read.js';
import { metricsStatement } from '../metrics/statement.js';
import { readOpenMarks, readStaleHours } from './marks.js';
import { repairNext } from './repair.js';
import { sealNext } from './sealing.js';
import { readWatermarks, type SealedUntil } from './watermarks.js';

/**
 * Of three actors orders with more than three changes from one to another are left out; of two, none is. The short form has two
 * changes, and two actors. A repairer that reads the days' watermark too early shows with them: it reads, the sealer seals the day, it writes.
 */
const IS_SHORT = process.env.METERLINE_TEST_SHORT !== undefined;
const CHANGES = { ofTwo: IS_SHORT ? 2 : 20, ofThree: 3 };
/** With two changes three actors would only run one after the other. */
const long = IS_SHORT ? it.skip : it;
/** How many orders each test plays, in the short form and in all. */
const ORDERS = {
  sealerWriter: IS_SHORT ? 8 : 78,
  sealerRepairer: IS_SHORT ? 7 : 50,
  sealerWriterRepairer: 43,
  writers: IS_SHORT ? 6 : 20,
  writerRepairerQuestion: 48,
  repairersWriter: 58,
};
/** All orders take minutes. */
const TIMEOUT_MS = 1_800_000;
/** Each order has a day of its own, because watermarks never fall. */
const DAYS = 100;

const SEALER = [
  'raise_rollup_seal',
  'recompute_usage_hourly',
  'raise_rollup_seal',
  'raise_rollup_seal',
  'recompute_usage_daily',
  'raise_rollup_seal',
];
/** What a writer does depends on how far the sealer is when it reads the watermarks. */
const WRITER = {
  'nothing is being sealed': ['insert_usage_events', 'read_rollup_seals'],
  'the hour is': ['insert_usage_events', 'read_rollup_seals', 'mark_stale_hours'],
};
/** What a repairer does, by what it finds. */
const REPAIRER = {
  'no mark': ['read_due_marks'],
  'a mark, and the day is not being sealed': [
    'read_due_marks',
    'recompute_usage_hourly',
    'read_rollup_seals',
    'remove_marks',
  ],
  'a mark, and the day is': [
    'read_due_marks',
    'recompute_usage_hourly',
    'read_rollup_seals',
    'recompute_usage_daily',
    'remove_marks',
  ],
};
const QUESTION = ['read_stale_hours', 'read_metrics'];

let database: TestDatabase;
let warehouse: Warehouse;
beforeAll(async () => {
  database = await createTestDatabase();
  warehouse = database.warehouse;
});
afterAll(() => database.drop());

/** As an ingest process does it. */
function writer(stored: PricedEvent, id: string): Actor {
  return new Actor((pause) => storeEvents(pausing(warehouse, pause), [stored], id));
}

function repairer(id: string): Actor {
  return new Actor(async (pause) => {
    await repairNext(pausing(warehouse, pause), id);
  });
}

/** One hour step and one day step; only what changes something is worth a pause. */
function sealer(due: number): Actor {
  return new Actor(async (pause) => {
    const paused = pausing(warehouse, pause, ['run']);
    while (await sealNext(paused, due));
  });
}

/** One step, of hours. */
async function sealHours(due: number): Promise<void> {
  const step = await sealNext(warehouse, due);
  expect(step).toMatchObject({ grain: 'hourly', to: due });
}

async function sealedUntil(): Promise<SealedUntil> {
  const { hourly, daily } = await readWatermarks(warehouse);
  return { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
}

interface Scene {
  readonly actors: readonly Actor[];
  /** Of the process whose marks the scene's repairers repair. */
  readonly id: string;
  /** The day's usage before they begin, and what each of them does to it. */
  readonly usage: number;
  readonly effects: readonly number[];
}

/**
 * What an answer may say: everything of actors that had ended when it was asked for is in it, and anything of those that
 * had not.
 */
function allowed({ usage, effects }: Scene, ended: readonly boolean[]): Set<string> {
  let sums = [usage];
  for (const [index, effect] of effects.entries()) {
    const after = sums.map((sum) => sum + effect);
    sums = ended[index] ? after : [...sums, ...after];
  }
  return new Set(sums.map(String));
}

/** The day's usage from the cells of days or of hours, by a dimension that the small or the large arrays have. */
const QUESTIONS = [
  { resolution: 'daily', groupBy: ['workspace'] },
  { resolution: 'hourly', groupBy: ['resource_name'] },
] as const;

function aboutDay(day: number) {
  return { accountId: 'acme', window: { startTime: day, endTime: day + MS_PER_DAY }, filters: {}, limit: 100 } as const;
}

/** The day's usage in all, as a question that begins now and trusts these watermarks. */
async function ask(asker: Warehouse, day: number, sealed: SealedUntil): Promise<string> {
  const about = aboutDay(day);
  const staleHours = await readStaleHours(asker, about.accountId, about.window);
  const cells = { ...sealed, staleHours };
  return (await readMetrics(asker, { ...about, resolution: 'daily', groupBy: [], cells })).totals.usage;
}

/** @returns how many orders were played, and before which statements their actors have stopped */
async function playAll(firstDay: number, count: 2 | 3, begin: (day: number, id: string) => Promise<Scene>) {
  const pausePoints: string[][][] = [];
  let sealed = await sealedUntil();
  const played = await playOrders(count, count === 2 ? CHANGES.ofTwo : CHANGES.ofThree, async (next, order) => {
    const day = firstDay + pausePoints.length * MS_PER_DAY;
    const scene = await begin(day, randomUUID());
    const { actors } = scene;
    /** Watermarks that a query could have read on the way. */
    const known = new Map<string, SealedUntil>();
    for (let move = await next(actors); move; move = await next(actors)) {
      if (move.statement === 'raise_rollup_seal') sealed = await sealedUntil();
      known.set(JSON.stringify(sealed), sealed);
      // A statement that only reads changes no answer, nor what may be in it, unless its actor has ended with it.
      const isRead = move.statement.startsWith('read_') && !actors[move.turn]?.hasEnded;
      if (isRead || !move.isNew) continue;
      const ended = actors.map(({ hasEnded }) => hasEnded);
      const usage = await ask(warehouse, day, sealed);
      expect({ order, sealed, usage, isExact: allowed(scene, ended).has(usage) }).toMatchObject({ isExact: true });
    }
    await agreesInTheEnd(scene, day, order, [...known.values()]);
    await repairAll(warehouse, scene.id);
    await agreesInTheEnd(scene, day, order, [...known.values()]);
    pausePoints.push(actors.map((actor) => actor.pausePoints));
  });
  expect(await readOpenMarks(warehouse, randomUUID())).toMatchObject({ hours: 0 });
  return { played, pausePoints };
}

async function agreesInTheEnd({ usage, effects }: Scene, day: number, order: unknown, known: readonly SealedUntil[]) {
  const about = aboutDay(day);
  const staleHours = await readStaleHours(warehouse, about.accountId, about.window);
  const total = effects.reduce((sum, effect) => sum + effect, usage);
  for (const question of QUESTIONS) {
    const truth = await readMetrics(warehouse, { ...about, ...question });
    expect(truth.totals.usage).toBe(String(total));
    // Watermarks that lead to the same statement have the same answer by now.
    const asked = new Set([JSON.stringify(metricsStatement({ ...about, ...question }))]);
    for (const sealed of known) {
      const trusting = { ...about, ...question, cells: { ...sealed, staleHours } };
      const statement = JSON.stringify(metricsStatement(trusting));
      if (asked.has(statement)) continue;
      asked.add(statement);
      const answer = await readMetrics(warehouse, trusting);
      // Cells do not tell which blocks their events came from.
      const mark = { ...truth.mark, newest_block: expect.any(String) };
      expect({ order, sealed, answer }).toEqual({ order, sealed, answer: { ...truth, mark } });
    }
  }
}

/** Lists without repetitions, in an order of their own. */
function distinct(lists: readonly (readonly string[])[]): string[] {
  return [...new Set(lists.map((list) => list.join(' ')))].sort();
}

/** Of the actor with this index. */
function stopsOf(pausePoints: readonly string[][][], actor: number): string[] {
  return distinct(pausePoints.map((ofActors) => ofActors[actor] ?? []));
}

function daysFrom(firstDay: number): number[] {
  return Array.from({ length: DAYS }, (_, day) => firstDay + day * MS_PER_DAY);
}

async function storeOnEachDay(firstDay: number): Promise<void> {
  await insertUsageEvents(
    warehouse,
    daysFrom(firstDay).map((timestamp) => pricedEvent({ timestamp })),
  );
}

async function sealAll(firstDay: number): Promise<void> {
  while (await sealNext(warehouse, firstDay + DAYS * MS_PER_DAY));
}

function lateEvent(day: number): PricedEvent {
  return pricedEvent({ timestamp: day + 1_000, workspace: 'late' });
}

describe('in every order of their statements', () => {
  it(
    'a sealer and a writer of an hour that is just being sealed agree',
    async () => {
      const firstDay = Date.UTC(2000, 0, 1);
      await storeOnEachDay(firstDay);
      const { played, pausePoints } = await playAll(firstDay, 2, async (day, id) => ({
        ...{ actors: [writer(lateEvent(day), id), sealer(day + MS_PER_DAY)], id },
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
      await storeOnEachDay(firstDay);
      const { played, pausePoints } = await playAll(firstDay, 2, async (day, id) => {
        const end = day + MS_PER_DAY;
        await sealHours(end);
        await storeEvents(warehouse, [lateEvent(day)], id);
        return { actors: [repairer(id), sealer(end)], id, usage: 2, effects: [0, 0] };
      });
      expect(played).toBe(ORDERS.sealerRepairer);
      expect(stopsOf(pausePoints, 0)).toEqual(distinct(Object.values(REPAIRER).slice(1)));
      expect(stopsOf(pausePoints, 1)).toEqual(distinct([SEALER.slice(3)]));
    },
    TIMEOUT_MS,
  );

  long(
    'a sealer, a writer and a repairer of an hour that is just being sealed agree',
    async () => {
      const firstDay = Date.UTC(2005, 0, 1);
      await storeOnEachDay(firstDay);
      const { played, pausePoints } = await playAll(firstDay, 3, async (day, id) => ({
        ...{ actors: [writer(lateEvent(day), id), repairer(id), sealer(day + MS_PER_DAY)], id },
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
    'two writers of one sealed hour agree, one of them with a void',
    async () => {
      const firstDay = Date.UTC(2010, 0, 1);
      const voidable = new Map(daysFrom(firstDay).map((day) => [day, pricedEvent({ timestamp: day })]));
      const others = [...voidable.keys()].map((day) => pricedEvent({ timestamp: day + MS_PER_HOUR }));
      await insertUsageEvents(warehouse, [...voidable.values(), ...others]);
      await sealAll(firstDay);
      const { played, pausePoints } = await playAll(firstDay, 2, async (day, id) => {
        const voided = { ...(voidable.get(day) ?? pricedEvent({ timestamp: day })), revision: 1, voided: true };
        const actors = [writer(lateEvent(day), id), writer(voided, id)];
        return { actors, id, usage: 2, effects: [1, -1] };
      });
      expect(played).toBe(ORDERS.writers);
      expect(distinct(pausePoints.flat())).toEqual(distinct([WRITER['the hour is']]));
    },
    TIMEOUT_MS,
  );

  long(
    'a writer and a repairer of one sealed hour, and a question, agree',
    async () => {
      const firstDay = Date.UTC(2015, 0, 1);
      await storeOnEachDay(firstDay);
      await sealAll(firstDay);
      const { played, pausePoints } = await playAll(firstDay, 3, async (day, id) => {
        // There is a mark already, and the cells lack its event.
        await storeEvents(warehouse, [lateEvent(day)], id);
        const sealed = await sealedUntil();
        const [writes, repairs] = [writer(lateEvent(day), id), repairer(id)];
        const asks = new Actor(async (pause) => {
          let ended: boolean[] | undefined;
          const paused = pausing(warehouse, async (name) => {
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

  long(
    'two repairers of one sealed hour and a writer agree',
    async () => {
      const firstDay = Date.UTC(2020, 0, 1);
      await storeOnEachDay(firstDay);
      await sealAll(firstDay);
      const { played, pausePoints } = await playAll(firstDay, 3, async (day, id) => {
        await storeEvents(warehouse, [lateEvent(day)], id);
        const actors = [writer(lateEvent(day), id), repairer(id), repairer(id)];
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
