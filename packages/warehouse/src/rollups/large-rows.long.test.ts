/** Rollup rows that need more memory than ClickHouse allows a statement: they are marked as dirty, and nothing else waits for them. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { playEveryOrder } from '../../../../test/harness/interleaving.js';
import { rollupRace } from '../../../../test/harness/rollup-races.js';
import { execute, select, storeEvents } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { readBounds } from '../bounds.js';
import { createWarehouse, type Warehouse } from '../clickhouse/connection.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from '../metrics/read.js';
import { readDirtyHours, readOpenMarks } from './dirty-hours.js';
import { recomputeDirtyHours, sealNext } from './maintenance.js';
import { GRAINS } from './rollup-rows.js';

const DAY = Date.UTC(2025, 9, 1);
const END = DAY + MS_PER_DAY;
const WINDOW = { startTime: DAY, endTime: END };
/** Events of which each has another name: hundreds of bytes of memory for each. */
const EVENTS = 30_000;
const LARGE_HOUR = { accountId: 'large', bucket: DAY + 3 * MS_PER_HOUR };

const at = (accountId: string, hour: number, resourceUuid = '') =>
  pricedEvent({ accountId, resourceUuid, timestamp: DAY + hour * MS_PER_HOUR });

const database = testDatabase('each test');
let warehouse: Warehouse;
/** A connection to the same database, where each statement may use little memory. */
let small: Warehouse;
beforeEach(async () => {
  warehouse = database.warehouse;
  small = createWarehouse({ ...database.options, maxMemoryBytes: 16 * 2 ** 20 });
  const large = Array.from({ length: EVENTS }, (_, box) => at('large', 3, `box-${box}`));
  const others = ['acme', 'zeta'].flatMap((accountId) => [2, 3, 4].map((hour) => at(accountId, hour)));
  await insertUsageEvents(warehouse, [...large, ...others, at('large', 5)]);
});
afterEach(async () => {
  await small.close();
});

/** The usage of an account in the day, read from rollup rows as far as they may be read, of hours or of days. */
async function usage(accountId: string): Promise<string> {
  const { hourly, daily } = await readBounds(warehouse);
  expect([hourly.sealedUntil, daily.sealedUntil]).toEqual([END, END]);
  const dirtyHours = await readDirtyHours(warehouse, [accountId], WINDOW);
  const about = { accounts: [accountId], window: WINDOW, filters: {}, groupBy: [], limit: 1 } as const;
  const query = { ...about, rollups: { hourly: END, daily: END, dirtyHours } };
  const results = await Promise.all(GRAINS.map((resolution) => readMetrics(warehouse, { ...query, resolution })));
  const [first, second] = results.map(({ totals }) => totals.usage);
  expect(first).toBe(second);
  return `${first}`;
}

const usages = () => Promise.all(['acme', 'large', 'zeta'].map(usage));

it('a rollup row of an hour that is too large for a statement is marked, and all others are sealed', async () => {
  expect(await sealNext([small], END)).toMatchObject({ grain: 'hourly', to: END, tooLarge: [LARGE_HOUR] });
  expect(await sealNext([small], END)).toMatchObject({ grain: 'daily', to: END, tooLarge: [] });
  expect(await readDirtyHours(warehouse, ['large'], WINDOW)).toEqual([LARGE_HOUR]);
  expect(await usages()).toEqual(['3', `${EVENTS + 1}`, '3']);
  const computed = `SELECT concat(account_id, ' ', toString(toHour(bucket))) AS hour FROM usage_hourly FINAL ORDER BY hour`;
  expect((await select<{ hour: string }>(warehouse, computed)).map(({ hour }) => hour)).toEqual([
    ...['acme 2', 'acme 3', 'acme 4', 'large 5'],
    ...['zeta 2', 'zeta 3', 'zeta 4'],
  ]);
});

it('a rollup row of a day that is too large for a statement is marked, so that its hours are read', async () => {
  expect(await sealNext([warehouse], END)).toMatchObject({ grain: 'hourly', tooLarge: [] });
  const day = { accountId: 'large', bucket: DAY };
  expect(await sealNext([small], END)).toMatchObject({ grain: 'daily', to: END, tooLarge: [day] });
  expect(await usages()).toEqual(['3', `${EVENTS + 1}`, '3']);
});

it('a rollup row that is too large for a statement stays dirty, and is tried again after an hour; the others are cleared at once', async () => {
  while (await sealNext([warehouse], END));
  await storeEvents(warehouse, [at('acme', 3), at('large', 3), at('zeta', 3)]);
  const tooLarge = expect.arrayContaining([LARGE_HOUR]);
  expect(await recomputeDirtyHours(small)).toMatchObject({ marks: 3, tooLarge });
  expect(await readOpenMarks(small)).toMatchObject({ hours: 1 });
  await storeEvents(warehouse, [at('large', 5)]);
  expect(await recomputeDirtyHours(small)).toMatchObject({ marks: 0, tooLarge: [] });
  expect(await usages()).toEqual(['4', `${EVENTS + 3}`, '4']);
  await execute(warehouse, 'ALTER TABLE dirty_hours UPDATE marked_at = marked_at - INTERVAL 1 HOUR WHERE true');
  expect(await recomputeDirtyHours(warehouse)).toMatchObject({ marks: 2, hourly: 2, daily: 1, tooLarge: [] });
  expect(await usages()).toEqual(['4', `${EVENTS + 3}`, '4']);
});

/** How many orders of at most four switches each race has at least. If an hour cannot be computed, there is no day to compute. */
it.each([
  ['a sealer of an hour that is too large, and a query', 54],
  ['a sealer of a day that is too large, and a query', 70],
] as const)('%s agree in every order of their statements', async (name, orders) => {
  const explored = await playEveryOrder(4, (index) => rollupRace(warehouse, name, index));
  expect(explored.paths).toEqual([1, 1]);
  expect(explored.orders).toBeGreaterThanOrEqual(orders);
});
