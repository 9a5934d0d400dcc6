import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { event } from '../../../../test/contract/fixture.js';
import { repairAll, storeEvents, WRITER } from '../../../../test/late-events.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/stack.js';
import { createWarehouse, type StatementObserver } from '../clickhouse/connection.js';
import type { PricedEvent } from '../events/event-rows.js';
import { readMetrics } from '../metrics/read.js';
import { readOpenMarks, readStaleHours, removeMarks } from './marks.js';
import { REPAIR_LIMITS, repairNext } from './repair.js';
import { raiseWatermarks } from './watermarks.js';

const DAY = Date.UTC(2025, 9, 1);
const SEALED = { hourly: DAY + 100 * MS_PER_DAY, daily: DAY + 100 * MS_PER_DAY };
const WINDOW = { startTime: DAY, endTime: SEALED.daily };
const OTHER_WRITER = '0190c5e4-0000-7000-8000-000000000002';

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

/** The hours that are marked, counted from the first. */
async function staleHours(accountId = 'acme', window = WINDOW): Promise<number[]> {
  const { staleHours } = await readStaleHours(database.warehouse, accountId, window);
  return staleHours.map((hour) => (hour - DAY) / MS_PER_HOUR);
}

/** Answers from cells as far as they may be read, and from the events, are the same. */
async function agrees(accountId: string): Promise<void> {
  for (const resolution of ['hourly', 'daily'] as const) {
    const question = { accountId, window: WINDOW, filters: {}, resolution, groupBy: ['workspace'], limit: 9 } as const;
    const truth = await readMetrics(database.warehouse, question);
    expect(truth.groups).toHaveLength(1);
    const { staleHours } = await readStaleHours(database.warehouse, accountId, WINDOW);
    const cells = { ...SEALED, staleHours };
    // Cells do not tell which blocks their events came from.
    const mark = { ...truth.mark, newest_block: expect.any(String) };
    expect(await readMetrics(database.warehouse, { ...question, cells })).toEqual({ ...truth, mark });
  }
}

describe('marks', () => {
  it('are set where hours are sealed or being sealed, and nowhere else', async () => {
    await raiseWatermarks(database.warehouse, 'hourly', { sealingUntil: SEALED.hourly + MS_PER_HOUR });
    const afterwards = 100 * 24;
    await storeEvents(database.warehouse, [at(afterwards + 1), at(afterwards), at(5), at(3), at(5)]);
    expect(await staleHours('acme', { ...WINDOW, endTime: WINDOW.endTime + MS_PER_DAY })).toEqual([3, 5, afterwards]);
  });

  it('are those of the window and of the account, those of the hours at its edges included', async () => {
    await storeEvents(database.warehouse, [at(2), at(3), at(4), at(5), at(3, 'globex')]);
    const window = { startTime: DAY + 3.5 * MS_PER_HOUR, endTime: DAY + 4.5 * MS_PER_HOUR };
    expect(await staleHours('acme', window)).toEqual([3, 4]);
    expect(await staleHours('globex', window)).toEqual([3]);
    expect(await staleHours('nobody', window)).toEqual([]);
    expect(await staleHours('acme', { startTime: Date.UTC(1, 0), endTime: Date.UTC(9999, 0) })).toEqual([2, 3, 4, 5]);
  });

  it('have answers read from the events until they are removed, and stay removed whatever is merged', async () => {
    await storeEvents(database.warehouse, [at(1), at(2), at(30)]);
    await storeEvents(database.warehouse, [at(2), at(50)]);
    await agrees('acme');
    await repairAll(database.warehouse);
    expect(await staleHours()).toEqual([]);
    await agrees('acme');
    await execute(database.warehouse, 'OPTIMIZE TABLE stale_hours FINAL');
    expect(await staleHours()).toEqual([]);
    expect(await select(database.warehouse, 'SELECT * FROM stale_hours')).toEqual([]);
  });

  it('that are set or removed twice are open only until they are removed', async () => {
    await storeEvents(database.warehouse, [at(1)]);
    const twice = `INSERT INTO stale_hours SELECT * FROM stale_hours`;
    await execute(database.warehouse, twice);
    await execute(database.warehouse, 'OPTIMIZE TABLE stale_hours FINAL');
    expect(await staleHours()).toEqual([1]);
    const [mark] = await select<{ markId: string }>(database.warehouse, 'SELECT mark_id AS markId FROM stale_hours');
    for (let time = 0; time < 2; time += 1) {
      await removeMarks(database.warehouse, [{ accountId: 'acme', hours: [], markId: mark?.markId ?? '' }]);
      expect(await staleHours()).toEqual([]);
    }
  });
});

describe('a repair', () => {
  it('leaves marks that were set after it has read its own', async () => {
    await storeEvents(database.warehouse, [at(1)]);
    let isFirst = true;
    const observe: StatementObserver = (name) => {
      if (name === 'recompute_usage_hourly' && isFirst) {
        isFirst = false;
        meanwhile = storeEvents(database.warehouse, [at(1), at(9)]);
      }
      return () => undefined;
    };
    let meanwhile: Promise<void> | undefined;
    const observed = createWarehouse({ ...database.options, observe });
    await repairNext(observed, WRITER);
    await observed.close();
    await meanwhile;
    expect(await staleHours()).toEqual([1, 9]);
    await agrees('acme');
    await repairAll(database.warehouse);
    expect(await staleHours()).toEqual([]);
    await agrees('acme');
  });

  it("leaves others' marks for a minute", async () => {
    const { warehouse } = database;
    await storeEvents(warehouse, [at(1)], OTHER_WRITER);
    await storeEvents(warehouse, [at(2)]);
    expect(await readOpenMarks(warehouse, WRITER)).toMatchObject({ hours: 2, due: 1 });
    await repairAll(warehouse);
    expect(await staleHours()).toEqual([1]);
    await execute(
      warehouse,
      `INSERT INTO stale_hours (account_id, mark_id, hours, writer, marked_at, sign)
       VALUES ('acme', generateUUIDv4(), [toDateTime({hour: UInt32}, 'UTC')], generateUUIDv4(), now() - 61, 1)`,
      { hour: DAY / 1000 },
    );
    expect(await readOpenMarks(warehouse, WRITER)).toMatchObject({ hours: 2, due: 1 });
    expect((await readOpenMarks(warehouse, WRITER)).oldestSeconds).toBeGreaterThan(60);
    await repairAll(warehouse);
    expect(await staleHours()).toEqual([1]);
    await repairAll(warehouse, OTHER_WRITER);
    expect(await readOpenMarks(warehouse, WRITER)).toEqual({ hours: 0, oldestSeconds: 0, due: 0 });
  });

  it('takes at least one mark, and as many as have the hours of a step', async () => {
    const { warehouse } = database;
    await storeEvents(warehouse, [at(1), at(2), at(3)]);
    for (let mark = 0; mark < 3; mark += 1) await storeEvents(warehouse, [at(mark, 'globex')]);
    const marks: number[] = [];
    for (let step = await repairNext(warehouse, WRITER, { ...REPAIR_LIMITS, hours: 2 }); step.marks > 0; ) {
      marks.push(step.marks);
      step = await repairNext(warehouse, WRITER, { ...REPAIR_LIMITS, hours: 2 });
    }
    expect(marks.reduce((sum, count) => sum + count, 0)).toBe(4);
    expect(marks.length).toBeGreaterThan(1);
    await agrees('acme');
    await agrees('globex');
  });

  it('leaves the marks when it fails', async () => {
    const { warehouse } = database;
    await storeEvents(warehouse, [at(1)]);
    await execute(warehouse, 'RENAME TABLE usage_daily TO elsewhere');
    await expect(repairNext(warehouse, WRITER)).rejects.toThrow('usage_daily');
    expect(await staleHours()).toEqual([1]);
    await execute(warehouse, 'RENAME TABLE elsewhere TO usage_daily');
    expect(await repairNext(warehouse, WRITER)).toEqual({ marks: 1, hourly: 1, daily: 1, tooLarge: [] });
    await agrees('acme');
  });

  it.each([
    ['of three bytes a character', '漢'.repeat(256)],
    ['of four', '😀'.repeat(256)],
    ['of quotes', "'".repeat(256)],
    ['of backslashes', '\\'.repeat(256)],
    ["that looks like a list's end", "a'),('b"],
  ])('takes account names %s, however many cells have them', async (_what, accountId) => {
    await storeEvents(
      database.warehouse,
      Array.from({ length: 200 }, (_, hour) => at(hour, accountId)),
    );
    await agrees(accountId);
    expect(await repairNext(database.warehouse, WRITER)).toEqual({ marks: 1, hourly: 200, daily: 9, tooLarge: [] });
    await agrees(accountId);
  });

  it('takes many small cells in one statement, and as many statements as large ones need', async () => {
    const events = [0, 1, 2, 24, 25].flatMap((hour) => [at(hour), at(hour), at(hour)]);
    const statements: string[] = [];
    const observe: StatementObserver = (name) => {
      statements.push(name);
      return () => undefined;
    };
    const observed = createWarehouse({ ...database.options, observe });
    const recomputed = (name: string) => statements.filter((statement) => statement === name).length;
    try {
      await storeEvents(database.warehouse, events);
      await repairNext(observed, WRITER, { ...REPAIR_LIMITS, statementRows: 6 });
      // Two hours of three events each fit six rows; five hours of one group each do too.
      expect([recomputed('recompute_usage_hourly'), recomputed('recompute_usage_daily')]).toEqual([3, 1]);
      statements.length = 0;
      await storeEvents(database.warehouse, events);
      await repairNext(observed, WRITER);
      expect([recomputed('recompute_usage_hourly'), recomputed('recompute_usage_daily')]).toEqual([1, 1]);
    } finally {
      await observed.close();
    }
    await agrees('acme');
  });
});
