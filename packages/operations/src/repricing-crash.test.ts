/** Re-pricing that dies after each of its steps, on a real ClickHouse. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE, END_OF_TIME, PriceBook } from '@meterline/catalog';
import { readMetrics, sealNext } from '@meterline/warehouse';
import { event } from '../../../test/contract/fixture.js';
import { repairAll, storeEvents } from '../../../test/late-events.js';
import { createTestDatabase, type TestDatabase, uniquePrefix } from '../../../test/stack.js';
import { auditCells } from './audit.js';
import { CostChanges, reprice } from './repricing.js';

const WINDOW = { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 3) };
const EVENTS = 6;
const STEP = 2;
const { signal } = new AbortController();

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function costOfAll(accountId: string): Promise<string> {
  const question = { accountId, window: WINDOW, resolution: 'daily', groupBy: [], filters: {}, limit: 1 } as const;
  return (await readMetrics(database.warehouse, question)).totals.cost;
}

/** One dollar for each unit of everything. */
const BOOK = new PriceBook({
  ...DEFAULT_PRICE_BOOK_FILE,
  version: 1,
  prices: DEFAULT_PRICE_BOOK_FILE.prices.map((price) => ({ ...price, amount: '1', per: '1' })),
});

it('a re-pricing that dies after each of its steps is finished by the next one, with no cell left behind', async () => {
  for (let dieAt = 0; ; dieAt += 1) {
    const accountId = uniquePrefix();
    const at = (n: number) => `2025-10-0${1 + (n % 2)}T0${n}:00:00Z`;
    const events = Array.from({ length: EVENTS }, (_, n) => event({ accountId, at: at(n), usage: '2', cost: '7' }));
    await storeEvents(database.warehouse, events);
    await repairAll(database.warehouse);
    while (await sealNext(database.warehouse, WINDOW.endTime));
    const scope = { accountId, window: WINDOW };
    /** What all events cost when stamps were renewed last: what was kept before is not used any more. */
    let renewed = '';
    const renewStamps = async () => {
      renewed = await costOfAll(accountId);
    };
    const run = async (onProgress: () => void) => {
      const changes = new CostChanges();
      const { shards } = database;
      const options = { shards, renewStamps, scope, book: BOOK, dryRun: false, step: STEP, signal, onProgress };
      await reprice(options, changes);
      return changes.total();
    };
    let steps = 0;
    const first = await run(() => {
      if (steps === dieAt) throw new Error('died');
      steps += 1;
    }).catch((error: Error) => error);
    const second = await run(() => undefined);
    const left = first instanceof Error ? Math.max(0, EVENTS - STEP * dieAt) : 0;
    expect(second).toMatchObject({ events: EVENTS, changed: left, after: '12' });
    expect(renewed).toBe('12');
    const audited = await auditCells({
      ...{ shards: database.shards, accountId, signal, repair: undefined, recheckMs: 1 },
      window: { startTime: 0, endTime: END_OF_TIME },
      onProgress: () => undefined,
    });
    expect(audited).toMatchObject({ days: 2, differences: [] });
    // Not begun, three steps, and the one that finds no more.
    if (!(first instanceof Error)) return void expect(dieAt).toBe(2 + EVENTS / STEP);
  }
});
