import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { event } from '../../../../test/contract/fixture.js';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import { createWarehouse, type StatementObserver } from '../clickhouse/connection.js';
import type { PricedEvent } from '../events/event-rows.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from '../metrics/read.js';
import { repairCells } from './repair.js';
import { raiseWatermarks } from './watermarks.js';

const DAY = Date.UTC(2025, 9, 1);
const SEALED = { hourly: DAY + 100 * MS_PER_DAY, daily: DAY + 100 * MS_PER_DAY };

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
  const { warehouse } = database;
  await raiseWatermarks(warehouse, 'hourly', { sealingUntil: SEALED.hourly, sealedUntil: SEALED.hourly });
  await raiseWatermarks(warehouse, 'daily', { sealingUntil: SEALED.daily, sealedUntil: SEALED.daily });
});
afterEach(() => database.drop());

function at(hour: number, accountId = 'acme'): PricedEvent {
  return event({ accountId, at: new Date(DAY + hour * MS_PER_HOUR).toISOString() });
}

async function agrees(accountId: string): Promise<void> {
  const window = { startTime: DAY, endTime: SEALED.daily };
  for (const resolution of ['hourly', 'daily'] as const) {
    const question = { accountId, window, filters: {}, resolution, groupBy: ['workspace'], limit: 9 } as const;
    const truth = await readMetrics(database.warehouse, question);
    expect(truth.groups).toHaveLength(1);
    // Cells do not tell which blocks their events came from.
    const mark = { ...truth.mark, newest_block: '0' };
    expect(await readMetrics(database.warehouse, { ...question, sealed: SEALED })).toEqual({ ...truth, mark });
  }
}

describe('the repair of sealed cells', () => {
  it.each([
    ['of three bytes a character', '漢'.repeat(256)],
    ['of four', '😀'.repeat(256)],
    ['of quotes', "'".repeat(256)],
    ['of backslashes', '\\'.repeat(256)],
    ["that looks like a list's end", "a'),('b"],
  ])('takes account names %s, however many cells have them', async (_what, accountId) => {
    const events = Array.from({ length: 200 }, (_, hour) => at(hour, accountId));
    await insertUsageEvents(database.warehouse, events);
    expect(await repairCells(database.warehouse, events)).toEqual({ hourly: 200, daily: 9, accounts: [accountId] });
    await agrees(accountId);
  });

  it('takes many small cells in one statement, and as many statements as large ones need', async () => {
    const events = [0, 1, 2, 24, 25].flatMap((hour) => [at(hour), at(hour), at(hour)]);
    await insertUsageEvents(database.warehouse, events);
    const statements: string[] = [];
    const observe: StatementObserver = (name) => {
      statements.push(name);
      return () => undefined;
    };
    const observed = createWarehouse({ ...database.options, observe });
    const recomputed = (name: string) => statements.filter((statement) => statement === name).length;
    try {
      await repairCells(observed, events, 6);
      // Two hours of three events each fit six rows; five hours of one group each do too.
      expect([recomputed('recompute_usage_hourly'), recomputed('recompute_usage_daily')]).toEqual([3, 1]);
      statements.length = 0;
      await repairCells(observed, events);
      expect([recomputed('recompute_usage_hourly'), recomputed('recompute_usage_daily')]).toEqual([1, 1]);
    } finally {
      await observed.close();
    }
    await agrees('acme');
  });
});
