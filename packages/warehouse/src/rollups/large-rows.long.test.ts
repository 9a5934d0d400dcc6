/**
 * Rollup rows that need more than ClickHouse's limits for a statement allow: they are marked, and nothing else waits for them; and a query
 * beside their sealer, in every order of their statements.
 */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { pausing, playOrders, SteppedTask } from '../../../../test/harness/interleaving.js';
import { CHANGES_OF_TWO, RollupFixture, TIMEOUT_MS } from '../../../../test/harness/rollup-interleaving.js';
import { execute, select, storeEvents } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { createWarehouse, type Warehouse } from '../clickhouse/connection.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from '../metrics/read.js';
import { readDirtyHours, readOpenMarks } from './dirty-hours.js';
import { recomputeDirtyHours, sealNext } from './maintenance.js';
import { rollupStateReader } from './readable.js';
import { GRAINS } from './rollup-rows.js';
import { readWatermarks } from './watermarks.js';

jest.setTimeout(TIMEOUT_MS);

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
  const { hourly, daily } = await readWatermarks(warehouse);
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
  expect(await readDirtyHours(warehouse, ['large'], WINDOW)).toEqual([{ bucket: LARGE_HOUR.bucket }]);
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
  expect(await recomputeDirtyHours(warehouse)).toEqual({ marks: 2, hourly: 2, daily: 1, tooLarge: [] });
  expect(await usages()).toEqual(['4', `${EVENTS + 3}`, '4']);
});

/** ClickHouse has no memory for this statement. */
function starving(inner: Warehouse, name: string): Warehouse {
  const settings = { max_memory_usage: '1', max_untracked_memory: '1' };
  return {
    read: (statement, row) => inner.read(statement, row),
    run: (statement, body) => inner.run(statement.name === name ? { ...statement, settings } : statement, body),
    within: (scope) => starving(inner.within(scope), name),
    ping: () => inner.ping(),
    close: () => inner.close(),
  };
}

const LIMITS = { stepRows: 1_000, statementRows: 1_000, largeRows: 1 };

function sealer(until: number, cannot: string): SteppedTask {
  return new SteppedTask(async (pause) => {
    const starved = starving(pausing(warehouse, pause, ['run']), cannot);
    const found: number[] = [];
    for (let step = await sealNext([starved], until, LIMITS); step; step = await sealNext([starved], until, LIMITS)) {
      found.push(step.tooLarge.length);
    }
    expect(found.sort()).toEqual([0, 1]);
  });
}

/** As a query process that has just begun reads it. */
async function usageOf(day: number, asker: Warehouse): Promise<string> {
  const [accounts, window] = [['acme'], { startTime: day, endTime: day + MS_PER_DAY }];
  const rollups = await rollupStateReader()({ accounts, warehouse: asker }, window);
  const metricsQuery = { accounts, window, filters: {}, groupBy: [], resolution: 'daily', limit: 1, rollups } as const;
  return (await readMetrics(asker, metricsQuery)).totals.usage;
}

function metricsQuery(day: number): SteppedTask {
  return new SteppedTask(async (pause) => {
    // Read beside the watermarks; it says the same all the time.
    const stop = async (name: string) => (name === 'read_retention_bounds' ? undefined : pause(name));
    expect(await usageOf(day, pausing(warehouse, stop))).toBe('1');
  });
}

const FIRST_DAY = Date.UTC(2022, 0, 1);
/** With how many orders. With no hour there is no day to compute. */
const ROLLUPS = [
  ['an hour', 'recompute_usage_hourly', 54],
  ['a day', 'recompute_usage_daily', 70],
] as const;

it.each(ROLLUPS)(
  'a response holds what is acknowledged beside a sealer for whom the rollup row of %s is too large',
  async (_what, cannot, orders) => {
    const fixture = new RollupFixture(database);
    const days = Array.from({ length: orders }, (_, order) => FIRST_DAY + order * MS_PER_DAY);
    await fixture.storeOnEachDay(FIRST_DAY);
    while (await sealNext([warehouse], FIRST_DAY));
    let order = 0;
    const played = await playOrders(2, CHANGES_OF_TWO, async (next, turns) => {
      const day = days[order] ?? Number.NaN;
      order += 1;
      const tasks = [sealer(day + MS_PER_DAY, cannot), metricsQuery(day)];
      for (let move = await next(tasks); move; move = await next(tasks)) {
        expect({ turns, usage: await usageOf(day, warehouse) }).toEqual({ turns, usage: '1' });
      }
    });
    expect(played).toBe(orders);
  },
);
