/** Seals hours and days, marks hours as dirty and recomputes them. In every order of statements: interleavings.long.test.ts. */
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { execute, recomputeAll, select, storeEvents } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { readBounds } from '../bounds.js';
import { createWarehouse, type Warehouse } from '../clickhouse/connection.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics } from '../metrics/read.js';
import { readRollupDifferences } from '../operations/audit.js';
import { clearMarks, readDirtyHours, readMarkedHours, readOpenMarks } from './dirty-hours.js';
import { DIRTY_LIMITS, recomputeDirtyHours, sealNext } from './maintenance.js';
import { GRAINS } from './rollup-rows.js';
import { raiseWatermarks } from './watermarks.js';

const DAY = Date.UTC(2025, 9, 1);

describe('sealing', () => {
  const TEN_EVENTS = 10;
  /** Two hours of ten events, and a day with two hours of ten groups. */
  const SMALL_STEPS = { stepRows: 2 * TEN_EVENTS, statementRows: TEN_EVENTS, largeRows: TEN_EVENTS };

  const at = (hour: number) => DAY + hour * MS_PER_HOUR;

  const database = testDatabase();
  beforeAll(async () => {
    const events = [0, 1, 2, 3, 4, 24, 25].flatMap((hour) =>
      Array.from({ length: TEN_EVENTS }, (_, box) => pricedEvent({ timestamp: at(hour), resourceUuid: `box-${box}` })),
    );
    await insertUsageEvents(database.warehouse, events);
  });

  /** The steps up to a moment. */
  async function sealUntil(due: number) {
    const steps: unknown[] = [];
    for (;;) {
      const step = await sealNext(database.shards.all, due, SMALL_STEPS);
      if (!step) return steps;
      const { tooLarge, conflicts, ...sealed } = step;
      expect([tooLarge, conflicts]).toEqual([[], { events: 0 }]);
      steps.push(sealed);
    }
  }

  it('sealing catches up in steps of bounded size, hours before their days, and seals none before its end', async () => {
    expect(await sealUntil(at(25) + 1)).toEqual([
      { grain: 'hourly', from: 0, to: at(2) },
      { grain: 'hourly', from: at(2), to: at(4) },
      { grain: 'hourly', from: at(4), to: at(25) },
      { grain: 'daily', from: 0, to: at(24) },
    ]);
    const rollups =
      'SELECT toUInt32((SELECT count() FROM usage_hourly)) AS hours, toUInt32(count()) AS days FROM usage_daily';
    expect(await select(database.warehouse, rollups)).toEqual([{ hours: 6, days: 1 }]);
    expect(await sealUntil(at(26) - 1)).toEqual([]);
  });

  it('sealing goes over days without events in one step, and does nothing when nothing is due', async () => {
    const due = DAY + 300 * MS_PER_DAY;
    expect(await sealUntil(due)).toEqual([
      { grain: 'hourly', from: at(25), to: due },
      { grain: 'daily', from: at(24), to: at(48) },
      { grain: 'daily', from: at(48), to: due },
    ]);
    expect(await sealUntil(DAY)).toEqual([]);
  });

  it('a clock that is ahead seals nothing that has not ended by the clock of ClickHouse', async () => {
    await sealUntil(Date.now() + 1_000 * MS_PER_DAY);
    const { hourly } = await readBounds(database.warehouse);
    expect(hourly.sealingUntil).toBeLessThanOrEqual(Date.now());
  });

  it.each([1, 7])('statements of about %i rows each seal every rollup row of a step', async (statementRows) => {
    for (const table of ['usage_events', 'usage_hourly', 'usage_daily', 'rollup_watermarks'])
      await execute(database.warehouse, `TRUNCATE TABLE ${table}`);
    const accounts = ["o'neil", 'back\\slash', '😀'];
    const events = accounts.flatMap((accountId, index) =>
      [0, 23, 24, 47].flatMap((hour) =>
        Array.from({ length: 1 + (index % 3) }, () => pricedEvent({ accountId, timestamp: at(hour) })),
      ),
    );
    await insertUsageEvents(database.warehouse, events);
    // Rows that are not merged yet count, and change nothing.
    await insertUsageEvents(database.warehouse, events.slice(0, 10));
    while (await sealNext(database.shards.all, at(48), { ...SMALL_STEPS, statementRows }));
    const scope = { window: { startTime: DAY, endTime: at(48) } };
    for (const grain of GRAINS) expect(await readRollupDifferences(database.warehouse, grain, scope)).toEqual([]);
  });
});

describe('dirty hours', () => {
  const END = DAY + 100 * MS_PER_DAY;
  const WINDOW = { startTime: DAY, endTime: END };

  const database = testDatabase();
  let warehouse: Warehouse;
  beforeAll(async () => {
    warehouse = database.warehouse;
    for (const grain of GRAINS) await raiseWatermarks([warehouse], grain, { sealingUntil: END, sealedUntil: END });
  });
  /** An account that no other test uses. */
  let account: string;
  let accounts = 0;
  beforeEach(async () => {
    accounts += 1;
    account = `account-${accounts}`;
    await execute(warehouse, 'TRUNCATE TABLE dirty_hours');
  });

  /** Stores an event in each of the hours, counted from the first. */
  function store(hours: readonly number[], accountId = account): Promise<void> {
    const events = hours.map((hour) => pricedEvent({ accountId, timestamp: DAY + hour * MS_PER_HOUR }));
    return storeEvents(warehouse, events);
  }

  /** The hours that are marked, counted from the first. */
  async function dirtyHours(accountId = account, window = WINDOW): Promise<number[]> {
    const dirty = await readMarkedHours(warehouse, [accountId], window);
    return dirty.map(({ bucket }) => (bucket - DAY) / MS_PER_HOUR);
  }

  /** Expects the response from readable rollup rows to be that from the events alone. */
  async function agrees(accountId = account): Promise<void> {
    for (const resolution of GRAINS) {
      const about = { accounts: [accountId], window: WINDOW, filters: {}, limit: 9 } as const;
      const query = { ...about, resolution, groupBy: ['workspace'] } as const;
      const truth = await readMetrics(warehouse, query);
      expect(truth.groups).toHaveLength(1);
      const rollups = { hourly: END, daily: END, dirtyHours: await readDirtyHours(warehouse, [accountId], WINDOW) };
      // Rollup rows do not tell which blocks their events came from.
      const mark = { ...truth.mark, newest_block: expect.any(String) };
      expect(await readMetrics(warehouse, { ...query, rollups })).toEqual({ ...truth, mark });
    }
  }

  /** Does `work` with a connection that says when a statement begins. */
  async function observed(told: (name: string) => void, work: (own: Warehouse) => Promise<unknown>): Promise<void> {
    const observe = (name: string) => {
      told(name);
      return () => undefined;
    };
    const own = createWarehouse({ ...database.options, observe });
    await work(own).finally(() => own.close());
  }

  it('marks are set where hours are sealed or being sealed, and nowhere else', async () => {
    await raiseWatermarks(database.shards.all, 'hourly', { sealingUntil: END + MS_PER_HOUR });
    const end = 100 * 24;
    await store([end + 1, end, 5, 3, 5]);
    expect(await dirtyHours(account, { ...WINDOW, endTime: END + MS_PER_DAY })).toEqual([3, 5, end]);
  });

  it('marks are those of the window and of the account, those of the hours at its edges included', async () => {
    await store([2, 3, 4, 5]);
    await store([3], `${account}-2`);
    const window = { startTime: DAY + 3.5 * MS_PER_HOUR, endTime: DAY + 4.5 * MS_PER_HOUR };
    expect(await dirtyHours(account, window)).toEqual([3, 4]);
    expect(await dirtyHours(`${account}-2`, window)).toEqual([3]);
    expect(await dirtyHours('nobody', window)).toEqual([]);
    expect(await dirtyHours(account, { startTime: Date.UTC(1, 0), endTime: Date.UTC(9999, 0) })).toEqual([2, 3, 4, 5]);
  });

  it('marks have results read from the events until they are cleared, and stay cleared whatever is merged', async () => {
    await store([1, 2, 30]);
    await store([2, 50]);
    await agrees();
    await recomputeAll(warehouse);
    expect(await dirtyHours()).toEqual([]);
    await agrees();
    await execute(warehouse, 'OPTIMIZE TABLE dirty_hours FINAL');
    expect(await select(warehouse, 'SELECT * FROM dirty_hours')).toEqual([]);
  });

  it('marks that are set or cleared twice are open only until they are cleared', async () => {
    await store([1]);
    await execute(warehouse, 'INSERT INTO dirty_hours SELECT * FROM dirty_hours');
    await execute(warehouse, 'OPTIMIZE TABLE dirty_hours FINAL');
    expect(await dirtyHours()).toEqual([1]);
    const [mark] = await select<{ markId: string }>(warehouse, 'SELECT mark_id AS markId FROM dirty_hours');
    for (let time = 0; time < 2; time += 1) {
      await clearMarks(warehouse, [{ accountId: account, markId: mark?.markId ?? '' }]);
      expect(await dirtyHours()).toEqual([]);
    }
  });

  it('open marks tell how many hours are dirty, and since when', async () => {
    expect(await readOpenMarks(warehouse)).toEqual({ hours: 0, oldestSeconds: 0 });
    await store([1, 2]);
    await execute(
      warehouse,
      `INSERT INTO dirty_hours (account_id, mark_id, hours, marked_at, sign)
       VALUES ('acme', generateUUIDv4(), [toDateTime({hour: UInt32}, 'UTC')], now() - 61, 1)`,
      { hour: DAY / 1000 },
    );
    const { hours, oldestSeconds } = await readOpenMarks(warehouse);
    expect([hours, oldestSeconds > 60]).toEqual([3, true]);
  });

  it('a recomputation leaves marks that were set after it has read its own', async () => {
    await store([1]);
    let meanwhile: Promise<void> | undefined;
    const storeOnce = (name: string) => {
      if (name === 'recompute_usage_hourly') meanwhile ??= store([1, 9]);
    };
    await observed(storeOnce, recomputeDirtyHours);
    await meanwhile;
    expect(await dirtyHours()).toEqual([1, 9]);
    await agrees();
  });

  it('a recomputation takes at least one mark, and as many as have the hours of a step', async () => {
    await store([1, 2, 3]);
    for (const hour of [0, 1, 2]) await store([hour], `${account}-2`);
    const marks: number[] = [];
    const step = () => recomputeDirtyHours(warehouse, { ...DIRTY_LIMITS, hours: 2 });
    for (let found = await step(); found.marks > 0; found = await step()) marks.push(found.marks);
    expect(marks.reduce((sum, found) => sum + found, 0)).toBe(4);
    expect(marks.length).toBeGreaterThan(1);
    for (const each of [account, `${account}-2`]) await agrees(each);
  });

  it('a recomputation counts the events under whose id and revision there is another one', async () => {
    const timestamp = DAY + 50 * MS_PER_HOUR;
    const event = () => pricedEvent({ accountId: account, timestamp });
    const [first, corrected, sentTwice] = [event(), event(), event()];
    const changes = { workspace: 'another' };
    await storeEvents(warehouse, [first, corrected, sentTwice]);
    await storeEvents(warehouse, [{ ...first, ...changes }, { ...corrected, ...changes, revision: 1 }, sentTwice]);
    const { conflicts } = await recomputeDirtyHours(warehouse);
    expect(conflicts).toEqual({ events: 1, first: { accountId: account, hour: timestamp, eventId: first.eventId } });
  });

  it('a recomputation leaves the marks when it fails', async () => {
    await store([1]);
    await execute(warehouse, 'RENAME TABLE usage_daily TO elsewhere');
    await expect(recomputeDirtyHours(warehouse)).rejects.toThrow('usage_daily');
    expect(await dirtyHours()).toEqual([1]);
    await execute(warehouse, 'RENAME TABLE elsewhere TO usage_daily');
    expect(await recomputeDirtyHours(warehouse)).toEqual({
      marks: 1,
      hourly: 1,
      daily: 1,
      tooLarge: [],
      conflicts: { events: 0 },
    });
    await agrees();
  });

  it('a recomputation takes account names of any characters, however many rollup rows have them', async () => {
    const names = [...['漢', '😀', "'", '\\'].map((character) => character.repeat(256)), "a'),('b"];
    const hours = Array.from({ length: 200 }, (_, hour) => hour);
    for (const name of names) await store(hours, name);
    const [count, days] = [names.length, 9];
    const recomputed = {
      marks: count,
      hourly: count * hours.length,
      daily: count * days,
      tooLarge: [],
      conflicts: { events: 0 },
    };
    expect(await recomputeDirtyHours(warehouse)).toEqual(recomputed);
    for (const grain of GRAINS) {
      const differences = await readRollupDifferences(warehouse, grain, { window: WINDOW });
      expect(differences.filter(({ accountId }) => names.includes(accountId))).toEqual([]);
    }
  });

  it.each([
    // Two hours of three events each fit six rows; five hours of one group each do too.
    [6, 3],
    [DIRTY_LIMITS.statementRows, 1],
  ])('a recomputation takes as many rollup rows in a statement as read %i rows', async (statementRows, expected) => {
    await store([0, 1, 2, 24, 25].flatMap((hour) => [hour, hour, hour]));
    const statements: string[] = [];
    await observed(
      (name) => statements.push(name),
      (own) => recomputeDirtyHours(own, { ...DIRTY_LIMITS, statementRows }),
    );
    const recomputed = (name: string) => statements.filter((statement) => statement === name).length;
    expect([recomputed('recompute_usage_hourly'), recomputed('recompute_usage_daily')]).toEqual([expected, 1]);
    await agrees();
  });
});
