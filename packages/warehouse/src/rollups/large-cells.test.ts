/** Cells that need more than ClickHouse's limits for a statement allow: they are marked, and nothing else waits for them. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { event } from '../../../../test/contract/fixture.js';
import { storeEvents, WRITER } from '../../../../test/late-events.js';
import { createTestDatabase, select, type TestDatabase } from '../../../../test/stack.js';
import { createWarehouse, type Warehouse } from '../clickhouse/connection.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from '../metrics/read.js';
import { readOpenMarks, readStaleHours } from './marks.js';
import { REPAIR_LIMITS, repairNext } from './repair.js';
import { sealNext } from './sealing.js';
import { readWatermarks } from './watermarks.js';

/** The short form has an hour, and the repair of it. */
const long = process.env.METERLINE_TEST_SHORT === undefined ? it : it.skip;

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

/** The usage of an account in the day, read from cells as far as they may be read. */
async function usage(accountId: string): Promise<string> {
  const { hourly, daily } = await readWatermarks(warehouse);
  expect([hourly.sealedUntil, daily.sealedUntil]).toEqual([END, END]);
  const { staleHours } = await readStaleHours(warehouse, accountId, WINDOW);
  const cells = { hourly: hourly.sealedUntil, daily: daily.sealedUntil, staleHours };
  const question = { accountId, window: WINDOW, filters: {}, groupBy: [], limit: 1, cells } as const;
  const answers = (['hourly', 'daily'] as const).map((resolution) =>
    readMetrics(warehouse, { ...question, resolution }),
  );
  const [first, second] = (await Promise.all(answers)).map(({ totals }) => totals.usage);
  expect(first).toBe(second);
  return `${first}`;
}

const answers = () => Promise.all(['acme', 'large', 'zeta'].map(usage));

describe('a cell that is too large for a statement', () => {
  it('of an hour is marked, and all others are sealed', async () => {
    const cell = { accountId: 'large', bucket: DAY + 3 * MS_PER_HOUR };
    await within(16, async (small) => {
      expect(await sealNext(small, END)).toMatchObject({ grain: 'hourly', to: END, tooLarge: [cell] });
      expect(await sealNext(small, END)).toMatchObject({ grain: 'daily', to: END, tooLarge: [] });
    });
    expect((await readStaleHours(warehouse, 'large', WINDOW)).staleHours).toEqual([cell.bucket]);
    expect(await answers()).toEqual(['3', `${EVENTS + 1}`, '3']);
    const computed = 'SELECT account_id, toHour(bucket) AS hour FROM usage_hourly FINAL ORDER BY ALL';
    expect((await select(warehouse, computed)).map((row) => Object.values(row).join(' '))).toEqual([
      ...[2, 3, 4].map((hour) => `acme ${hour}`),
      ...['large 5', ...[2, 3, 4].map((hour) => `zeta ${hour}`)],
    ]);
  });

  long('of a day is marked, so that its hours are read', async () => {
    expect(await sealNext(warehouse, END)).toMatchObject({ grain: 'hourly', tooLarge: [] });
    const day = { accountId: 'large', bucket: DAY };
    await within(16, async (small) => {
      expect(await sealNext(small, END)).toMatchObject({ grain: 'daily', to: END, tooLarge: [day] });
    });
    expect(await answers()).toEqual(['3', `${EVENTS + 1}`, '3']);
  });

  it('keeps its mark when it is to be repaired, and those of others are removed', async () => {
    while (await sealNext(warehouse, END));
    await storeEvents(warehouse, [late('acme'), late('large'), late('zeta')]);
    const cell = { accountId: 'large', bucket: DAY + 3 * MS_PER_HOUR };
    await within(16, async (small) => {
      expect(await repairNext(small, WRITER)).toMatchObject({ marks: 2, tooLarge: expect.arrayContaining([cell]) });
      expect(await readOpenMarks(small, WRITER)).toMatchObject({ hours: 1, due: 1 });
      expect(await readOpenMarks(small, WRITER, ['large'])).toMatchObject({ hours: 1, due: 0 });
      expect(await repairNext(small, WRITER, REPAIR_LIMITS, ['large'])).toMatchObject({ marks: 0, tooLarge: [] });
    });
    expect(await answers()).toEqual(['4', `${EVENTS + 2}`, '4']);
    expect(await repairNext(warehouse, WRITER)).toEqual({ marks: 1, hourly: 1, daily: 1, tooLarge: [] });
    expect(await answers()).toEqual(['4', `${EVENTS + 2}`, '4']);
  });
});
