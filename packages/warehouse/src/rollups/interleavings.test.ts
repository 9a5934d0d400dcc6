/**
 * Sealers and writers stopped before each of their statements and resumed in every order: after each statement an answer
 * holds everything that is acknowledged, and in the end cells and events agree, and so does every answer that trusts
 * watermarks read at any moment before.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { Actor, pausing, playOrders } from '../../../../test/interleaving.js';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import type { Warehouse } from '../clickhouse/connection.js';
import { insertUsageEvents, type PricedEvent } from '../events/usage-events.js';
import { type MetricsAnswer, readMetrics } from '../metrics/read.js';
import { repairCells } from './repair.js';
import { sealNext } from './sealing.js';
import { readWatermarks, type SealedUntil } from './watermarks.js';

/**
 * Orders with more changes between the actors are left out. A writer that reads both watermarks too early takes three to
 * show: the sealer seals the hour, the writer stores and reads, the sealer seals the day, the writer repairs. 11 leaves
 * none out.
 */
const CHANGES = Number(process.env.METERLINE_TEST_CHANGES ?? 3);
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

let events = 0;
function event(timestamp: number, changes: Partial<PricedEvent> = {}): PricedEvent {
  events += 1;
  return {
    eventId: `0190c5e4-7b1a-7def-8abc-${events.toString(16).padStart(12, '0')}`,
    accountId: 'acme',
    workspace: 'production',
    resourceType: 'sandbox',
    resourceName: 'builder',
    resourceUuid: '',
    billingDimension: 'sandbox_compute_runtime_gbs',
    usage: 10n ** 9n,
    timestamp,
    revision: 0,
    voided: false,
    cost: 10n ** 12n,
    priceRevision: 0,
    priceBook: 0,
    ...changes,
  };
}

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

type Resolution = 'daily' | 'hourly';
const BOTH = ['daily', 'hourly'] as const;
const GROUPED_BY = { daily: 'workspace', hourly: 'resource_name' } as const;

async function answers(day: number, resolutions: readonly Resolution[], sealed?: SealedUntil) {
  const window = { startTime: day, endTime: day + MS_PER_DAY };
  const question = { accountId: 'acme', window, filters: {}, limit: 100, ...(sealed && { sealed }) };
  const found: Partial<Record<Resolution, MetricsAnswer>> = {};
  for (const resolution of resolutions) {
    found[resolution] = await readMetrics(warehouse, { ...question, resolution, groupBy: [GROUPED_BY[resolution]] });
  }
  return found;
}

/** @returns how many orders were played, and how often the actors stopped before which statements */
async function playAll(firstDay: number, begin: (day: number) => Scene) {
  const pausePoints: string[][][] = [];
  const played = await playOrders(CHANGES, async (next, order) => {
    const day = firstDay + pausePoints.length * MS_PER_DAY;
    const scene = begin(day);
    /** Watermarks that a query could have read on the way. */
    const known = new Map<string, SealedUntil>();
    for (let turn = await next(scene.actors); turn !== undefined; turn = await next(scene.actors)) {
      const sealed = await sealedUntil();
      known.set(JSON.stringify(sealed), sealed);
      const { daily } = await answers(day, ['daily'], sealed);
      const answer = daily?.totals?.usage ?? '';
      const isExact = allowed(scene).has(answer);
      expect({ order, sealed, answer, isExact }).toMatchObject({ isExact: true });
    }
    const truth = await answers(day, BOTH);
    expect(truth.daily?.totals?.usage).toBe(String(scene.effects.reduce((sum, effect) => sum + effect, scene.usage)));
    for (const sealed of known.values()) {
      expect({ order, sealed, ...(await answers(day, BOTH, sealed)) }).toEqual({ order, sealed, ...truth });
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
  it('a sealer and a writer of an hour that is just being sealed agree', async () => {
    const firstDay = Date.UTC(2010, 0, 1);
    await insertUsageEvents(
      warehouse,
      Array.from({ length: DAYS }, (_, day) => event(firstDay + day * MS_PER_DAY)),
    );
    const { played, pausePoints } = await playAll(firstDay, (day) => {
      const late = writer(event(day + 1_000, { workspace: 'late' }));
      return { actors: [late, sealer(day + MS_PER_DAY)], usage: 1, effects: [1, 0] };
    });
    expect(played).toBe({ 3: 28, 11: 267 }[CHANGES]);
    expect(distinct(pausePoints.map(([ofWriter = []]) => ofWriter))).toEqual(distinct(Object.values(WRITER)));
    expect(distinct(pausePoints.map(([, ofSealer = []]) => ofSealer))).toEqual(distinct([SEALER]));
  }, 600_000);

  it('two writers of one sealed cell agree, one of them with a void', async () => {
    const firstDay = Date.UTC(2015, 0, 1);
    const lastDay = firstDay + DAYS * MS_PER_DAY;
    const voidable = new Map<number, PricedEvent>();
    for (let day = firstDay; day < lastDay; day += MS_PER_DAY) voidable.set(day, event(day));
    const others = [...voidable.keys()].map((day) => event(day + MS_PER_HOUR));
    await insertUsageEvents(warehouse, [...voidable.values(), ...others]);
    while (await sealNext(warehouse, lastDay));
    const { played, pausePoints } = await playAll(firstDay, (day) => {
      const voiding = writer({ ...(voidable.get(day) ?? event(day)), revision: 1, voided: true });
      const late = writer(event(day + 1_000, { workspace: 'late' }));
      return { actors: [late, voiding], usage: 2, effects: [1, -1] };
    });
    expect(played).toBe({ 3: 26, 11: 70 }[CHANGES]);
    expect(distinct(pausePoints.flat())).toEqual(distinct([WRITER['both are']]));
  }, 600_000);
});
