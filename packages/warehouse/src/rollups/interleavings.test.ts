/**
 * Sealers and writers stopped before each of their calls to ClickHouse and resumed in every order: after each call an
 * answer holds everything that is acknowledged, and in the end cells and truth agree, and so does every answer that
 * trusts watermarks read at any moment before.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { Actor, orders, pausing } from '../../../../test/interleaving.js';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import type { Warehouse } from '../clickhouse/connection.js';
import { type MetricsAnswer, readMetrics } from '../statements/metrics.js';
import { insertUsageEvents, type PricedEvent } from '../statements/usage-events.js';

import { repairCells } from './repair.js';
import { sealNext } from './sealing.js';
import { readSeals } from './seals.js';
import type { SealedUntil } from './segments.js';

const FIRST_DAY = Date.UTC(2010, 0, 1);
/** Orders with more changes between the actors are left out; 11 leaves none out. */
const CHANGES = Number(process.env.METERLINE_TEST_CHANGES ?? 3);
/** Of all orders, every so many-th; 1 and 11 changes are all 532, which take a quarter of an hour. */
const STRIDE = Number(process.env.METERLINE_TEST_STRIDE ?? 3);

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
    const paused = pausing(warehouse, pause, ['read', 'run']);
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
  const { hourly, daily } = await readSeals(warehouse);
  return { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
}

interface Scene {
  /** A sealer, if there is one, is the last. */
  readonly actors: readonly Actor[];
  /** The day's usage before they begin, and what each of them does to it. */
  readonly usage: number;
  readonly effects: readonly number[];
}

/** What an answer may say: all of those who have ended is in it, and any of those who have not. */
function allowed({ actors, usage, effects }: Scene): Set<string> {
  let sums = [usage];
  for (const [index, { hasEnded }] of actors.entries()) {
    const after = sums.map((sum) => sum + (effects[index] ?? 0));
    sums = hasEnded ? after : [...sums, ...after];
  }
  return new Set(sums.map(String));
}

/** @returns the watermarks that a query could have read on the way */
async function run(day: number, scene: Scene, order: readonly number[]): Promise<SealedUntil[]> {
  const known = new Map<string, SealedUntil>();
  for (const turn of order) {
    await scene.actors[turn]?.advance();
    const sealed = await sealedUntil();
    known.set(JSON.stringify(sealed), sealed);
    const { daily } = await answers(day, ['daily'], sealed);
    const answer = daily?.totals?.usage ?? '';
    const isExact = allowed(scene).has(answer);
    expect({ order, turn, sealed, answer, isExact }).toMatchObject({ isExact: true });
  }
  // An order that is too short would leave some out.
  expect(scene.actors.map(({ hasEnded }) => hasEnded)).toEqual([true, true]);
  return [...known.values()];
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

/** Every order on a day of its own, because watermarks never fall. */
async function tryAll(
  firstDay: number,
  calls: readonly [number, number],
  begin: (day: number) => Promise<Scene>,
): Promise<number> {
  let tried = 0;
  for (const [index, order] of [...orders(...calls, CHANGES)].entries()) {
    if (index % STRIDE > 0) continue;
    const day = firstDay + tried * MS_PER_DAY;
    const scene = await begin(day);
    const known = await run(day, scene, order);
    const truth = await answers(day, BOTH);
    expect(truth.daily?.totals?.usage).toBe(String(scene.effects.reduce((sum, effect) => sum + effect, scene.usage)));
    for (const sealed of known)
      expect({ order, sealed, ...(await answers(day, BOTH, sealed)) }).toEqual({ order, sealed, ...truth });
    tried += 1;
  }
  return tried;
}

describe('in every order of their calls', () => {
  it('a sealer and a writer of an hour that is just being sealed agree', async () => {
    const tried = await tryAll(FIRST_DAY, [5, 6], async (day) => {
      await insertUsageEvents(warehouse, [event(day)]);
      const late = writer(event(day + 1_000, { workspace: 'late' }));
      return { actors: [late, sealer(day + MS_PER_DAY)], usage: 1, effects: [1, 0] };
    });
    expect(tried).toBeGreaterThan(50 / STRIDE);
  }, 600_000);

  it('two writers of one sealed cell agree, one of them with a void', async () => {
    const firstDay = Date.UTC(2015, 0, 1);
    const tried = await tryAll(firstDay, [4, 4], async (day) => {
      const first = event(day);
      await insertUsageEvents(warehouse, [first, event(day + MS_PER_HOUR)]);
      while (await sealNext(warehouse, day + MS_PER_DAY));
      const voiding = writer({ ...first, revision: 1, voided: true });
      const late = writer(event(day + 1_000, { workspace: 'late' }));
      return { actors: [late, voiding], usage: 2, effects: [1, -1] };
    });
    expect(tried).toBeGreaterThan(25 / STRIDE);
  }, 600_000);
});
