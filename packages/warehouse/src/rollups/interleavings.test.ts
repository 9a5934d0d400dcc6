/**
 * Sealers and writers stopped before each of their statements and resumed in every order: after each statement an answer
 * holds everything that is acknowledged, and in the end cells and events agree, and so does every answer that trusts
 * watermarks read at any moment before.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { Actor, pausing, playOrders } from '../../../../test/interleaving.js';
import { pricedEvent } from '../../../../test/priced-event.js';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import type { Warehouse } from '../clickhouse/connection.js';
import type { PricedEvent } from '../events/event-rows.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from '../metrics/read.js';
import { metricsStatement } from '../metrics/statement.js';
import { repairCells } from './repair.js';
import { sealNext } from './sealing.js';
import { readWatermarks, type SealedUntil } from './watermarks.js';

/**
 * Orders with more changes between the actors are left out. A writer that reads both watermarks too early takes three to
 * show: the sealer seals the hour, the writer stores and reads, the sealer seals the day, the writer repairs. 11 leaves
 * none out.
 */
const CHANGES = Number(process.env.METERLINE_TEST_CHANGES ?? 3);
/** All orders take minutes. */
const TIMEOUT_MS = 1_800_000;
/** Each order has a day of its own, because watermarks never fall. */
const DAYS = 400;

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
  'the hour is, and the day is not': [
    'insert_usage_events',
    'read_rollup_seals',
    'recompute_usage_hourly',
    'read_rollup_seals',
  ],
  'the hour is, and then the day': [
    'insert_usage_events',
    'read_rollup_seals',
    'recompute_usage_hourly',
    'read_rollup_seals',
    'recompute_usage_daily',
  ],
  'both are': ['insert_usage_events', 'read_rollup_seals', 'recompute_usage_hourly', 'recompute_usage_daily'],
};

let database: TestDatabase;
let warehouse: Warehouse;
beforeAll(async () => {
  database = await createTestDatabase();
  warehouse = database.warehouse;
});
afterAll(() => database.drop());

/** As the ingest worker does it. */
function writer(stored: PricedEvent): Actor {
  return new Actor(async (pause) => {
    const paused = pausing(warehouse, pause);
    await insertUsageEvents(paused, [stored]);
    await repairCells(paused, [stored]);
  });
}

/** One hour step and one day step; only what changes something is worth a pause. */
function sealer(due: number): Actor {
  return new Actor(async (pause) => {
    const paused = pausing(warehouse, pause, ['run']);
    while (await sealNext(paused, due));
  });
}

async function sealedUntil(): Promise<SealedUntil> {
  const { hourly, daily } = await readWatermarks(warehouse);
  return { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
}

interface Scene {
  readonly actors: readonly [Actor, Actor];
  /** The day's usage before they begin, and what each of them does to it. */
  readonly usage: number;
  readonly effects: readonly [number, number];
}

/** What an answer may say: everything of actors that have ended is in it, and anything of those that have not. */
function allowed({ actors, usage, effects }: Scene): Set<string> {
  let sums = [usage];
  for (const [index, { hasEnded }] of actors.entries()) {
    const after = sums.map((sum) => sum + (effects[index] ?? 0));
    sums = hasEnded ? after : [...sums, ...after];
  }
  return new Set(sums.map(String));
}

/** The day's usage from the cells of days or of hours, by a dimension that the small or the large arrays have. */
const QUESTIONS = [
  { resolution: 'daily', groupBy: ['workspace'] },
  { resolution: 'hourly', groupBy: ['resource_name'] },
] as const;

/** @returns how many orders were played, and before which statements their actors have stopped */
async function playAll(firstDay: number, begin: (day: number) => Scene) {
  const pausePoints: string[][][] = [];
  let sealed = await sealedUntil();
  const played = await playOrders(CHANGES, async (next, order) => {
    const day = firstDay + pausePoints.length * MS_PER_DAY;
    const about = { accountId: 'acme', window: { startTime: day, endTime: day + MS_PER_DAY }, filters: {}, limit: 100 };
    const scene = begin(day);
    /** Watermarks that a query could have read on the way. */
    const known = new Map<string, SealedUntil>();
    for (let move = await next(scene.actors); move; move = await next(scene.actors)) {
      if (move.statement === 'raise_rollup_seal') sealed = await sealedUntil();
      known.set(JSON.stringify(sealed), sealed);
      // A statement that only reads changes no answer, nor what may be in it, unless its actor has ended with it.
      const isRead = move.statement === 'read_rollup_seals' && !scene.actors[move.turn]?.hasEnded;
      if (isRead || !move.isNew) continue;
      const { totals } = await readMetrics(warehouse, { ...about, resolution: 'daily', groupBy: [], sealed });
      const isExact = allowed(scene).has(totals.usage);
      expect({ order, sealed, totals, isExact }).toMatchObject({ isExact: true });
    }
    const usage = scene.effects.reduce((sum, effect) => sum + effect, scene.usage);
    for (const question of QUESTIONS) {
      const truth = await readMetrics(warehouse, { ...about, ...question });
      expect(truth.totals.usage).toBe(String(usage));
      // Watermarks that lead to the same statement have the same answer by now.
      const asked = new Set([JSON.stringify(metricsStatement({ ...about, ...question }))]);
      for (const sealed of known.values()) {
        const trusting = { ...about, ...question, sealed };
        const statement = JSON.stringify(metricsStatement(trusting));
        if (asked.has(statement)) continue;
        asked.add(statement);
        const answer = await readMetrics(warehouse, trusting);
        // Cells do not tell which blocks their events came from.
        const mark = { ...truth.mark, newest_block: expect.any(String) };
        expect({ order, sealed, answer }).toEqual({ order, sealed, answer: { ...truth, mark } });
      }
    }
    pausePoints.push(scene.actors.map((actor) => actor.pausePoints));
  });
  return { played, pausePoints };
}

/** Lists without repetitions, in an order of their own. */
function distinct(lists: readonly (readonly string[])[]): string[] {
  return [...new Set(lists.map((list) => list.join(' ')))].sort();
}

describe('in every order of their statements', () => {
  it(
    'a sealer and a writer of an hour that is just being sealed agree',
    async () => {
      const firstDay = Date.UTC(2010, 0, 1);
      await insertUsageEvents(
        warehouse,
        Array.from({ length: DAYS }, (_, day) => pricedEvent({ timestamp: firstDay + day * MS_PER_DAY })),
      );
      const { played, pausePoints } = await playAll(firstDay, (day) => {
        const late = writer(pricedEvent({ timestamp: day + 1_000, workspace: 'late' }));
        return { actors: [late, sealer(day + MS_PER_DAY)], usage: 1, effects: [1, 0] };
      });
      expect(played).toBe({ 3: 28, 11: 267 }[CHANGES]);
      expect(distinct(pausePoints.map(([ofWriter = []]) => ofWriter))).toEqual(distinct(Object.values(WRITER)));
      expect(distinct(pausePoints.map(([, ofSealer = []]) => ofSealer))).toEqual(distinct([SEALER]));
    },
    TIMEOUT_MS,
  );

  it(
    'two writers of one sealed cell agree, one of them with a void',
    async () => {
      const firstDay = Date.UTC(2015, 0, 1);
      const lastDay = firstDay + DAYS * MS_PER_DAY;
      const voidable = new Map<number, PricedEvent>();
      for (let day = firstDay; day < lastDay; day += MS_PER_DAY) voidable.set(day, pricedEvent({ timestamp: day }));
      const others = [...voidable.keys()].map((day) => pricedEvent({ timestamp: day + MS_PER_HOUR }));
      await insertUsageEvents(warehouse, [...voidable.values(), ...others]);
      while (await sealNext(warehouse, lastDay));
      const { played, pausePoints } = await playAll(firstDay, (day) => {
        const voiding = writer({
          ...(voidable.get(day) ?? pricedEvent({ timestamp: day })),
          revision: 1,
          voided: true,
        });
        const late = writer(pricedEvent({ timestamp: day + 1_000, workspace: 'late' }));
        return { actors: [late, voiding], usage: 2, effects: [1, -1] };
      });
      expect(played).toBe({ 3: 26, 11: 70 }[CHANGES]);
      expect(distinct(pausePoints.flat())).toEqual(distinct([WRITER['both are']]));
    },
    TIMEOUT_MS,
  );
});
