import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { event } from '../../../../test/harness/events.js';
import { recomputeAll, storeEvents } from '../../../../test/harness/late-events.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { createWarehouse, type StatementObserver } from '../clickhouse/connection.js';
import type { PricedEvent } from '../events/event-rows.js';
import { readMetrics } from '../metrics/read.js';
import { clearMarks, readDirtyHours, readOpenMarks } from './dirty-hours.js';
import { DIRTY_LIMITS, recomputeDirtyHours } from './maintenance.js';
import { raiseWatermarks } from './watermarks.js';

const DAY = Date.UTC(2025, 9, 1);
const SEALED = { hourly: DAY + 100 * MS_PER_DAY, daily: DAY + 100 * MS_PER_DAY };
const WINDOW = { startTime: DAY, endTime: SEALED.daily };

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
  const { warehouse } = database;
  await raiseWatermarks([warehouse], 'hourly', { sealingUntil: SEALED.hourly, sealedUntil: SEALED.hourly });
  await raiseWatermarks([warehouse], 'daily', { sealingUntil: SEALED.daily, sealedUntil: SEALED.daily });
});
afterEach(() => database.drop());

function at(hour: number, accountId = 'acme'): PricedEvent {
  return event({ accountId, at: new Date(DAY + hour * MS_PER_HOUR).toISOString() });
}

/** The hours that are marked, counted from the first. */
async function dirtyHours(accountId = 'acme', window = WINDOW): Promise<number[]> {
  const dirtyHours = await readDirtyHours(database.warehouse, [accountId], window);
  return dirtyHours.map(({ bucket }) => (bucket - DAY) / MS_PER_HOUR);
}

/** Answers from rollup rows as far as they may be read, and from the events, are the same. */
async function agrees(accountId: string): Promise<void> {
  for (const resolution of ['hourly', 'daily'] as const) {
    const about = { accounts: [accountId], window: WINDOW, filters: {}, limit: 9 } as const;
    const question = { ...about, resolution, groupBy: ['workspace'] } as const;
    const truth = await readMetrics(database.warehouse, question);
    expect(truth.groups).toHaveLength(1);
    const dirtyHours = await readDirtyHours(database.warehouse, [accountId], WINDOW);
    const rollups = { ...SEALED, dirtyHours };
    // Rollup rows do not tell which blocks their events came from.
    const mark = { ...truth.mark, newest_block: expect.any(String) };
    expect(await readMetrics(database.warehouse, { ...question, rollups })).toEqual({ ...truth, mark });
  }
}

describe('marks', () => {
  it('are set where hours are sealed or being sealed, and nowhere else', async () => {
    await raiseWatermarks(database.shards.all, 'hourly', { sealingUntil: SEALED.hourly + MS_PER_HOUR });
    const afterwards = 100 * 24;
    await storeEvents(database.warehouse, [at(afterwards + 1), at(afterwards), at(5), at(3), at(5)]);
    expect(await dirtyHours('acme', { ...WINDOW, endTime: WINDOW.endTime + MS_PER_DAY })).toEqual([3, 5, afterwards]);
  });

  it('are those of the window and of the account, those of the hours at its edges included', async () => {
    await storeEvents(database.warehouse, [at(2), at(3), at(4), at(5), at(3, 'globex')]);
    const window = { startTime: DAY + 3.5 * MS_PER_HOUR, endTime: DAY + 4.5 * MS_PER_HOUR };
    expect(await dirtyHours('acme', window)).toEqual([3, 4]);
    expect(await dirtyHours('globex', window)).toEqual([3]);
    expect(await dirtyHours('nobody', window)).toEqual([]);
    expect(await dirtyHours('acme', { startTime: Date.UTC(1, 0), endTime: Date.UTC(9999, 0) })).toEqual([2, 3, 4, 5]);
  });

  it('have answers read from the events until they are cleared, and stay cleared whatever is merged', async () => {
    await storeEvents(database.warehouse, [at(1), at(2), at(30)]);
    await storeEvents(database.warehouse, [at(2), at(50)]);
    await agrees('acme');
    await recomputeAll(database.warehouse);
    expect(await dirtyHours()).toEqual([]);
    await agrees('acme');
    await execute(database.warehouse, 'OPTIMIZE TABLE dirty_hours FINAL');
    expect(await dirtyHours()).toEqual([]);
    expect(await select(database.warehouse, 'SELECT * FROM dirty_hours')).toEqual([]);
  });

  it('that are set or cleared twice are open only until they are cleared', async () => {
    await storeEvents(database.warehouse, [at(1)]);
    const twice = `INSERT INTO dirty_hours SELECT * FROM dirty_hours`;
    await execute(database.warehouse, twice);
    await execute(database.warehouse, 'OPTIMIZE TABLE dirty_hours FINAL');
    expect(await dirtyHours()).toEqual([1]);
    const [mark] = await select<{ markId: string }>(database.warehouse, 'SELECT mark_id AS markId FROM dirty_hours');
    for (let time = 0; time < 2; time += 1) {
      await clearMarks(database.warehouse, [{ accountId: 'acme', hours: [], markId: mark?.markId ?? '' }]);
      expect(await dirtyHours()).toEqual([]);
    }
  });
});

describe('a recomputation of dirty hours', () => {
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
    await recomputeDirtyHours(observed);
    await observed.close();
    await meanwhile;
    expect(await dirtyHours()).toEqual([1, 9]);
    await agrees('acme');
    await recomputeAll(database.warehouse);
    expect(await dirtyHours()).toEqual([]);
    await agrees('acme');
  });

  it('tells how many hours are dirty, and since when', async () => {
    const { warehouse } = database;
    expect(await readOpenMarks(warehouse)).toEqual({ hours: 0, oldestSeconds: 0 });
    await storeEvents(warehouse, [at(1), at(2)]);
    await execute(
      warehouse,
      `INSERT INTO dirty_hours (account_id, mark_id, hours, marked_at, sign)
       VALUES ('acme', generateUUIDv4(), [toDateTime({hour: UInt32}, 'UTC')], now() - 61, 1)`,
      { hour: DAY / 1000 },
    );
    const open = await readOpenMarks(warehouse);
    expect(open.hours).toBe(3);
    expect(open.oldestSeconds).toBeGreaterThan(60);
  });

  it('takes at least one mark, and as many as have the hours of a step', async () => {
    const { warehouse } = database;
    await storeEvents(warehouse, [at(1), at(2), at(3)]);
    for (let mark = 0; mark < 3; mark += 1) await storeEvents(warehouse, [at(mark, 'globex')]);
    const marks: number[] = [];
    for (let step = await recomputeDirtyHours(warehouse, { ...DIRTY_LIMITS, hours: 2 }); step.marks > 0; ) {
      marks.push(step.marks);
      step = await recomputeDirtyHours(warehouse, { ...DIRTY_LIMITS, hours: 2 });
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
    await expect(recomputeDirtyHours(warehouse)).rejects.toThrow('usage_daily');
    expect(await dirtyHours()).toEqual([1]);
    await execute(warehouse, 'RENAME TABLE elsewhere TO usage_daily');
    expect(await recomputeDirtyHours(warehouse)).toEqual({ marks: 1, hourly: 1, daily: 1, tooLarge: [] });
    await agrees('acme');
  });

  it.each([
    ['of three bytes a character', '漢'.repeat(256)],
    ['of four', '😀'.repeat(256)],
    ['of quotes', "'".repeat(256)],
    ['of backslashes', '\\'.repeat(256)],
    ["that looks like a list's end", "a'),('b"],
  ])('takes account names %s, however many rollups have them', async (_what, accountId) => {
    await storeEvents(
      database.warehouse,
      Array.from({ length: 200 }, (_, hour) => at(hour, accountId)),
    );
    await agrees(accountId);
    expect(await recomputeDirtyHours(database.warehouse)).toEqual({ marks: 1, hourly: 200, daily: 9, tooLarge: [] });
    await agrees(accountId);
  });

  it('takes many small rollup rows in one statement, and as many statements as large ones need', async () => {
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
      await recomputeDirtyHours(observed, { ...DIRTY_LIMITS, statementRows: 6 });
      // Two hours of three events each fit six rows; five hours of one group each do too.
      expect([recomputed('recompute_usage_hourly'), recomputed('recompute_usage_daily')]).toEqual([3, 1]);
      statements.length = 0;
      await storeEvents(database.warehouse, events);
      await recomputeDirtyHours(observed);
      expect([recomputed('recompute_usage_hourly'), recomputed('recompute_usage_daily')]).toEqual([1, 1]);
    } finally {
      await observed.close();
    }
    await agrees('acme');
  });
});
