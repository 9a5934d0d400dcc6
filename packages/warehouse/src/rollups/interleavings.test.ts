/**
 * Sealers and writers stopped before each of their calls to ClickHouse and resumed in every order: whatever the order,
 * in the end cells and truth agree, and so does every answer that trusts watermarks read at any moment before.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { Actor, orders, pausing } from '../../../../test/interleaving.js';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import type { Warehouse } from '../client.js';
import { readMetrics } from '../statements/metrics.js';
import { insertUsageEvents, type PricedEvent } from '../statements/usage-events.js';

import { repairCells } from './repair.js';
import { sealNext } from './sealing.js';
import { readSeals } from './seals.js';
import type { SealedUntil } from './segments.js';

const FIRST_DAY = Date.UTC(2010, 0, 1);
/** Of all orders, every so many-th is tried; 1 tries them all, which takes minutes. */
const STRIDE = Number(process.env.METERLINE_TEST_STRIDE ?? 11);

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
    const paused = pausing(warehouse, pause, ['exec', 'query', 'command']);
    await insertUsageEvents(paused, [stored]);
    await repairCells(paused, [stored]);
  });
}

/** One hour step and one day step; only what changes something is worth a pause. */
function sealer(due: number): Actor {
  return new Actor(async (pause) => {
    const paused = pausing(warehouse, pause, ['insert', 'command']);
    while (await sealNext(paused, due));
  });
}

async function sealedUntil(): Promise<SealedUntil> {
  const { hourly, daily } = await readSeals(warehouse);
  return { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
}

/** @returns the watermarks that a query could have read on the way; only a sealer, which is the last actor, moves them */
async function run(actors: readonly Actor[], order: readonly number[]): Promise<SealedUntil[]> {
  const known = new Map<string, SealedUntil>();
  const note = async () => {
    const sealed = await sealedUntil();
    known.set(JSON.stringify(sealed), sealed);
  };
  await note();
  for (const turn of order) {
    await actors[turn]?.advance();
    if (turn === actors.length - 1) await note();
  }
  for (const actor of actors) await actor.finish();
  await note();
  return [...known.values()];
}

async function answers(day: number, sealed?: SealedUntil) {
  const window = { startTime: day, endTime: day + MS_PER_DAY };
  const question = { accountId: 'acme', window, filters: {}, limit: 100, ...(sealed && { sealed }) };
  const daily = await readMetrics(warehouse, { ...question, resolution: 'daily', groupBy: ['workspace'] });
  const hourly = await readMetrics(warehouse, { ...question, resolution: 'hourly', groupBy: ['resource_name'] });
  return { daily, hourly };
}

/** Every order on a day of its own, because watermarks never fall. */
async function tryAll(
  firstDay: number,
  calls: readonly [number, number],
  scene: (day: number) => Promise<{ actors: readonly Actor[]; usage: string }>,
): Promise<number> {
  let tried = 0;
  for (const [index, order] of [...orders(...calls)].entries()) {
    if (index % STRIDE > 0) continue;
    const day = firstDay + tried * MS_PER_DAY;
    const { actors, usage } = await scene(day);
    const known = await run(actors, order);
    const truth = await answers(day);
    expect(truth.daily.totals.usage).toBe(usage);
    for (const sealed of known)
      expect({ order, sealed, ...(await answers(day, sealed)) }).toEqual({ order, sealed, ...truth });
    tried += 1;
  }
  return tried;
}

describe('in every order of their calls', () => {
  it('a sealer and a writer of an hour that is just being sealed agree', async () => {
    const tried = await tryAll(FIRST_DAY, [5, 6], async (day) => {
      await insertUsageEvents(warehouse, [event(day)]);
      return { actors: [writer(event(day + 1_000, { workspace: 'late' })), sealer(day + MS_PER_DAY)], usage: '2' };
    });
    expect(tried).toBe(Math.ceil(462 / STRIDE));
  }, 300_000);

  it('two writers of one sealed cell agree, one of them with a void', async () => {
    const firstDay = Date.UTC(2015, 0, 1);
    const tried = await tryAll(firstDay, [5, 5], async (day) => {
      const first = event(day);
      await insertUsageEvents(warehouse, [first, event(day + MS_PER_HOUR)]);
      while (await sealNext(warehouse, day + MS_PER_DAY));
      const voiding = { ...first, revision: 1, voided: true };
      return { actors: [writer(event(day + 1_000, { workspace: 'late' })), writer(voiding)], usage: '2' };
    });
    expect(tried).toBe(Math.ceil(252 / STRIDE));
  }, 300_000);
});
