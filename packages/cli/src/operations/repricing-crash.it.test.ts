/** Re-pricing that dies after each of its steps, on a real ClickHouse. */
import { expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE, END_OF_TIME, PriceBook } from '@meterline/catalog';
import { insertUsageEvents, readMetrics, sealNext } from '@meterline/warehouse';
import { event } from '../../../../test/harness/events.js';
import { recomputeAll, storeEvents, uniquePrefix } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { auditRollups } from './audit.js';
import { CostChanges, reprice, repricedEvent } from './repricing.js';

const WINDOW = { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 3) };
const EVENTS = 6;
const STEP = 2;
const { signal } = new AbortController();

const database = testDatabase();

async function costOfAll(accountId: string): Promise<string> {
  const accounts = [accountId];
  const question = { accounts, window: WINDOW, resolution: 'daily', groupBy: [], filters: {}, limit: 1 } as const;
  return (await readMetrics(database.warehouse, question)).totals.cost;
}

function audited(accountId: string) {
  return auditRollups({
    ...{ shards: database.shards, accountId, signal, repair: false, recheckMs: 1 },
    window: { startTime: 0, endTime: END_OF_TIME },
    onProgress: () => undefined,
  });
}

/** @returns what has changed */
async function repriced(accountId: string, onProgress: () => void = () => undefined) {
  const changes = new CostChanges();
  const { shards } = database;
  const scope = { accountId, window: WINDOW };
  await reprice({ shards, scope, book: BOOK, dryRun: false, step: STEP, signal, onProgress }, changes);
  return changes.total();
}

/** One dollar for each unit of everything. */
const BOOK = new PriceBook({
  ...DEFAULT_PRICE_BOOK_FILE,
  version: 1,
  prices: DEFAULT_PRICE_BOOK_FILE.prices.map((price) => ({ ...price, amount: '1', per: '1' })),
});

it('a re-pricing that dies after each of its steps is finished by the next one, with no rollup row left behind', async () => {
  for (let dieAt = 0; ; dieAt += 1) {
    const accountId = uniquePrefix();
    const at = (n: number) => `2025-10-0${1 + (n % 2)}T0${n}:00:00Z`;
    const events = Array.from({ length: EVENTS }, (_, n) => event({ accountId, at: at(n), usage: '2', cost: '7' }));
    await storeEvents(database.warehouse, events);
    await recomputeAll(database.warehouse);
    while (await sealNext(database.shards.all, WINDOW.endTime));
    let steps = 0;
    const first = await repriced(accountId, () => {
      if (steps === dieAt) throw new Error('died');
      steps += 1;
    }).catch((error: Error) => error);
    const second = await repriced(accountId);
    const left = first instanceof Error ? Math.max(0, EVENTS - STEP * dieAt) : 0;
    expect(second).toMatchObject({ events: EVENTS, changed: left, after: '12' });
    expect(await costOfAll(accountId)).toBe('12');
    expect(await audited(accountId)).toMatchObject({ days: 2, differences: [] });
    // Not begun, three steps, and the one that finds no more.
    if (!(first instanceof Error)) return void expect(dieAt).toBe(2 + EVENTS / STEP);
  }
});

it('a re-pricing that dies between a step and its marks is found by an audit, and the next one leaves the new prices alone', async () => {
  const accountId = uniquePrefix();
  const events = Array.from({ length: EVENTS }, () => event({ accountId, usage: '2', cost: '7' }));
  await storeEvents(database.warehouse, events);
  while (await sealNext(database.shards.all, WINDOW.endTime));
  await recomputeAll(database.warehouse);
  const step = events.slice(0, STEP).flatMap((one) => repricedEvent(one, BOOK) ?? []);
  await insertUsageEvents(database.warehouse, step);
  expect((await audited(accountId)).differences).not.toEqual([]);
  expect(await costOfAll(accountId)).toBe('32');
  await repriced(accountId);
  expect(await costOfAll(accountId)).toBe('12');
  await recomputeAll(database.warehouse);
  expect((await audited(accountId)).differences).toEqual([]);
  expect(await costOfAll(accountId)).toBe('12');
});
