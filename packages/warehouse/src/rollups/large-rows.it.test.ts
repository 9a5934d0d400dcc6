/**
 * Rollup rows that need more than ClickHouse's limits for a statement allow: they are marked, and nothing else waits for them.
 */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { event } from '../../../../test/harness/events.js';
import { storeEvents } from '../../../../test/harness/late-events.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { createWarehouse, type Warehouse } from '../clickhouse/connection.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from '../metrics/read.js';
import { readDirtyHours, readOpenMarks } from './dirty-hours.js';
import { recomputeDirtyHours, sealNext } from './maintenance.js';
import { readWatermarks } from './watermarks.js';

const DAY = Date.UTC(2025, 9, 1);
const END = DAY + MS_PER_DAY;
const WINDOW = { startTime: DAY, endTime: END };
/** Each has another name: hundreds of bytes of memory for each. */
const EVENTS = 30_000;

const at = (hour: number) => new Date(DAY + hour * MS_PER_HOUR).toISOString();
const late = (accountId: string) => event({ accountId, at: at(3) });

let database: TestDatabase;
let warehouse: Warehouse;
beforeEach(async () => {
  database = await createTestDatabase();
  warehouse = database.warehouse;
  const large = Array.from({ length: EVENTS }, (_, box) =>
    event({ accountId: 'large', at: at(3), resourceUuid: `box-${box}` }),
  );
  const others = ['acme', 'zeta'].flatMap((accountId) => [2, 3, 4].map((hour) => event({ accountId, at: at(hour) })));
  await insertUsageEvents(warehouse, [...large, ...others, event({ accountId: 'large', at: at(5) })]);
});
afterEach(() => database.drop());

/** The same database, where each statement may use so much memory. */
async function within<T>(megabytes: number, work: (small: Warehouse) => Promise<T>): Promise<T> {
  const small = createWarehouse({ ...database.options, maxMemoryBytes: megabytes * 2 ** 20 });
  return work(small).finally(() => small.close());
}

/** The usage of an account in the day, read from rollup rows as far as they may be read. */
async function usage(accountId: string): Promise<string> {
  const { hourly, daily } = await readWatermarks(warehouse);
  expect([hourly.sealedUntil, daily.sealedUntil]).toEqual([END, END]);
  const dirtyHours = await readDirtyHours(warehouse, [accountId], WINDOW);
  const rollups = { hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours };
  const question = { accounts: [accountId], window: WINDOW, filters: {}, groupBy: [], limit: 1, rollups } as const;
  const answers = (['hourly', 'daily'] as const).map((resolution) =>
    readMetrics(warehouse, { ...question, resolution }),
  );
  const [first, second] = (await Promise.all(answers)).map(({ totals }) => totals.usage);
  expect(first).toBe(second);
  return `${first}`;
}

const answers = () => Promise.all(['acme', 'large', 'zeta'].map(usage));

describe('a rollup row that is too large for a statement', () => {
  it('of an hour is marked, and all others are sealed', async () => {
    const rollup = { accountId: 'large', bucket: DAY + 3 * MS_PER_HOUR };
    await within(16, async (small) => {
      expect(await sealNext([small], END)).toMatchObject({ grain: 'hourly', to: END, tooLarge: [rollup] });
      expect(await sealNext([small], END)).toMatchObject({ grain: 'daily', to: END, tooLarge: [] });
    });
    expect(await readDirtyHours(warehouse, ['large'], WINDOW)).toEqual([{ bucket: rollup.bucket }]);
    expect(await answers()).toEqual(['3', `${EVENTS + 1}`, '3']);
    const computed = 'SELECT account_id, toHour(bucket) AS hour FROM usage_hourly FINAL ORDER BY ALL';
    expect((await select(warehouse, computed)).map((row) => Object.values(row).join(' '))).toEqual([
      ...[2, 3, 4].map((hour) => `acme ${hour}`),
      ...['large 5', ...[2, 3, 4].map((hour) => `zeta ${hour}`)],
    ]);
  });

  it('of a day is marked, so that its hours are read', async () => {
    expect(await sealNext([warehouse], END)).toMatchObject({ grain: 'hourly', tooLarge: [] });
    const day = { accountId: 'large', bucket: DAY };
    await within(16, async (small) => {
      expect(await sealNext([small], END)).toMatchObject({ grain: 'daily', to: END, tooLarge: [day] });
    });
    expect(await answers()).toEqual(['3', `${EVENTS + 1}`, '3']);
  });

  it('stays dirty when it is to be recomputed, and is tried again after an hour; the others are cleared at once', async () => {
    while (await sealNext([warehouse], END));
    await storeEvents(warehouse, [late('acme'), late('large'), late('zeta')]);
    const rollup = { accountId: 'large', bucket: DAY + 3 * MS_PER_HOUR };
    await within(16, async (small) => {
      expect(await recomputeDirtyHours(small)).toMatchObject({ marks: 3, tooLarge: expect.arrayContaining([rollup]) });
      expect(await readOpenMarks(small)).toMatchObject({ hours: 1 });
      await storeEvents(warehouse, [event({ accountId: 'large', at: at(5) })]);
      expect(await recomputeDirtyHours(small)).toMatchObject({ marks: 0, tooLarge: [] });
    });
    expect(await answers()).toEqual(['4', `${EVENTS + 3}`, '4']);
    await execute(
      warehouse,
      'ALTER TABLE dirty_hours UPDATE marked_at = marked_at - INTERVAL 1 HOUR WHERE true SETTINGS mutations_sync = 2',
    );
    expect(await recomputeDirtyHours(warehouse)).toEqual({ marks: 2, hourly: 2, daily: 1, tooLarge: [] });
    expect(await answers()).toEqual(['4', `${EVENTS + 3}`, '4']);
  });
});
