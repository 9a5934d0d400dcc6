/**
 * A query beside a sealer that cannot compute a rollup row, in every order of their statements: nothing is missing from any
 * answer.
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import { insertUsageEvents, readMetrics, rollupStateReader, sealNext, type Warehouse } from '@meterline/warehouse';
import { pricedEvent } from '../harness/events.js';
import { Actor, CHANGES_OF_TWO, pausing, playOrders } from '../harness/interleaving.js';
import { LONG } from '../harness/long.js';
import { createTestDatabase, type TestDatabase } from '../harness/stack.js';

/** With no hour there is no day to compute. */
const ORDERS = LONG ? { hour: 54, day: 70 } : { hour: 9, day: 10 };
const TIMEOUT_MS = 600_000;

let database: TestDatabase;
let warehouse: Warehouse;
beforeAll(async () => {
  database = await createTestDatabase();
  warehouse = database.warehouse;
});
afterAll(() => database.drop());

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

function sealer(until: number, cannot: string): Actor {
  return new Actor(async (pause) => {
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
  const question = { accounts, window, filters: {}, groupBy: [], resolution: 'daily', limit: 1, rollups } as const;
  return (await readMetrics(asker, question)).totals.usage;
}

function question(day: number): Actor {
  return new Actor(async (pause) => {
    // Read beside the watermarks; it says the same all the time.
    const stop = async (name: string) => (name === 'read_retention_bounds' ? undefined : pause(name));
    expect(await usageOf(day, pausing(warehouse, stop))).toBe('1');
  });
}

const ROLLUPS = [
  ['an hour', 'recompute_usage_hourly', Date.UTC(2020, 0, 1), ORDERS.hour],
  ['a day', 'recompute_usage_daily', Date.UTC(2024, 0, 1), ORDERS.day],
] as const;

it.each(LONG ? ROLLUPS : ROLLUPS.slice(0, 1))(
  'an answer holds what is acknowledged beside a sealer for whom the rollup row of %s is too large',
  async (_what, cannot, firstDay, orders) => {
    const days = Array.from({ length: orders }, (_, order) => firstDay + order * MS_PER_DAY);
    await insertUsageEvents(
      warehouse,
      days.map((timestamp) => pricedEvent({ timestamp })),
    );
    while (await sealNext([warehouse], firstDay));
    let order = 0;
    const played = await playOrders(2, CHANGES_OF_TWO, async (next, turns) => {
      const day = days[order] ?? Number.NaN;
      order += 1;
      const actors = [sealer(day + MS_PER_DAY, cannot), question(day)];
      for (let move = await next(actors); move; move = await next(actors)) {
        expect({ turns, usage: await usageOf(day, warehouse) }).toEqual({ turns, usage: '1' });
      }
    });
    expect(played).toBe(orders);
  },
  TIMEOUT_MS,
);
