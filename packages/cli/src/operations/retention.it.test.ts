/** Closes months and drops their events, on a real ClickHouse. Deaths at every statement: test/retention/deaths.long.test.ts. */
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { insertUsageEvents, oneServer, sealNext, setRetentionBound, type Warehouse } from '@meterline/warehouse';
import { pricedEvent } from '../../../../test/harness/events.js';
import { execute, recomputeAll, select, storeEvents } from '../../../../test/harness/stack.js';
import {
  ALL_MONTHS,
  DECEMBER,
  NOVEMBER,
  OCTOBER,
  SEALED_UNTIL,
  sealedMonths,
} from '../../../../test/retention/sealed-months.js';
import { auditRollups } from './audit.js';
import { closeMonths, compareClosedMonths, reopenMonths } from './retention.js';

describe('closing and dropping', () => {
  const fixture = sealedMonths();
  const { options, drop, dropOrDie, bounds, months, responses } = fixture;
  let warehouse: Warehouse;
  let close: (before: number) => Promise<number>;
  beforeEach(() => {
    warehouse = fixture.warehouse;
    close = (before) => closeMonths(oneServer(warehouse), before);
  });

  it('months are closed once they are sealed, and closing fewer months opens none', async () => {
    await expect(close(Date.UTC(2026, 1))).rejects.toThrow('sealed until 2026-01-01');
    await close(DECEMBER);
    expect(await close(NOVEMBER)).toBe(DECEMBER);
    expect(await bounds()).toEqual([DECEMBER, 0, 0]);
  });

  it('closed months can be opened again until their events are dropped', async () => {
    await close(SEALED_UNTIL);
    await reopenMonths(oneServer(warehouse), NOVEMBER);
    expect(await bounds()).toEqual([NOVEMBER, 0, 0]);
    await drop();
    await expect(reopenMonths(oneServer(warehouse), OCTOBER)).rejects.toThrow('cannot be opened again');
    expect(await bounds()).toEqual([NOVEMBER, NOVEMBER, NOVEMBER]);
  });

  it('a drop of the months that were confirmed leaves every response about whole hours and days as it was', async () => {
    const before = await responses();
    expect(before[0]?.totals.usage).toBe('11.000000007');
    await close(DECEMBER);
    await compareClosedMonths(options());
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [DECEMBER, 0, 0]]);
    const dropped: number[] = [];
    const onDropped = ({ startTime }: { startTime: number }) => dropped.push(startTime);
    await drop({ before: NOVEMBER, onDropped });
    expect([dropped, await months()]).toEqual([[OCTOBER], [NOVEMBER, DECEMBER]]);
    expect(await bounds()).toEqual([DECEMBER, NOVEMBER, NOVEMBER]);
    await drop({ onDropped });
    expect([dropped, await months()]).toEqual([[OCTOBER, NOVEMBER], [DECEMBER]]);
    expect(await responses()).toEqual(before);
    expect(await bounds()).toEqual([DECEMBER, DECEMBER, DECEMBER]);
  });

  it.each([
    [
      'rollup rows differ from the events',
      "ALTER TABLE usage_hourly DELETE WHERE account_id = 'globex' AND toMonth(bucket) = 10",
      'rollup rows differ from their events, which were not dropped; see "meterline audit --from 1970-01-01T00:00:00Z --to 2025-1',
    ],
    ['hours are to be sealed again', 'TRUNCATE TABLE rollup_watermarks', 'sealed until 1970-01-01T00:00:00Z only'],
  ])('no event is dropped where %s', async (_what, query, message) => {
    await close(NOVEMBER);
    await execute(warehouse, query);
    await expect(compareClosedMonths(options())).rejects.toThrow(message);
    await expect(drop()).rejects.toThrow(message);
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [NOVEMBER, 0, 0]]);
  });

  const LATE = pricedEvent({ timestamp: OCTOBER, workspace: 'late' });
  it.each([
    ['marked as dirty, and not recomputed yet', () => storeEvents(warehouse, [LATE])],
    [
      'not marked, because the worker died after its insert',
      async () => {
        await setRetentionBound([warehouse], 'dropping', NOVEMBER);
        await insertUsageEvents(warehouse, [LATE]);
      },
    ],
  ])('an event counts after the drop of its month although its hour was %s', async (_what, store) => {
    await close(NOVEMBER);
    await store();
    await drop();
    const [first] = await responses();
    expect(first?.groups.map(({ values }) => values.workspace)).toContain('late');
  });

  it('a drop that died between the final hours and their days is finished by the next one', async () => {
    const before = await responses();
    await close(NOVEMBER);
    expect(await dropOrDie(({ name }) => name === 'make_hours_final', 'after')).toBe(false);
    expect(await responses()).toEqual(before);
    await drop();
    expect(await responses()).toEqual(before);
    expect(await months()).toEqual([NOVEMBER, DECEMBER]);
  });

  it('a drop that is interrupted ends between two days', async () => {
    await close(NOVEMBER);
    const interruption = new AbortController();
    const onProgress = (done: number) => done === 1 && interruption.abort();
    await drop({ signal: interruption.signal, onProgress });
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [NOVEMBER, 0, 0]]);
  });
});

describe('final rollup rows', () => {
  const fixture = sealedMonths('file');
  const { options, drop, months, responses } = fixture;
  let warehouse: Warehouse;
  let before: Awaited<ReturnType<typeof responses>>;
  beforeAll(async () => {
    warehouse = fixture.warehouse;
    before = await responses();
    await closeMonths(oneServer(warehouse), NOVEMBER);
    await drop();
  });

  it('final rows have a version that no sum over events reaches, and days are those of their hours', async () => {
    const versions = (table: string, start: string) =>
      select(
        warehouse,
        `SELECT account_id, toString(${start}) AS day, bitShiftRight(min(version), 127) AS least,
           toString(sum(bitAnd(version, bitNot(bitShiftLeft(toUInt128(1), 127))))) AS events
         FROM ${table} FINAL WHERE bucket < toDateTime('2025-11-01', 'UTC') GROUP BY ALL ORDER BY ALL`,
      );
    const days = await versions('usage_daily', 'bucket');
    expect(days).toHaveLength(4);
    expect(days).toEqual(days.map((day) => ({ ...day, least: '1' })));
    expect(await versions('usage_hourly', 'toStartOfDay(bucket)')).toEqual(days);
  });

  it('final rows are skipped by an audit, which reports where the comparison begins', async () => {
    const audit = (startTime: number, endTime: number) =>
      auditRollups({ ...options(), accountId: undefined, window: { startTime, endTime }, repair: true });
    expect(await audit(OCTOBER, DECEMBER)).toEqual({
      ...{ days: 2, comparedFrom: NOVEMBER, differences: [], stillDifferent: [] },
    });
    expect(await audit(OCTOBER, NOVEMBER)).toMatchObject({ days: 0, comparedFrom: NOVEMBER });
    expect(await audit(NOVEMBER, DECEMBER)).toMatchObject({ days: 2, comparedFrom: undefined });
  });

  it('final rows are not replaced from events that came too late, whatever their revisions', async () => {
    const late = Array.from({ length: 3 }, () => pricedEvent({ timestamp: OCTOBER + 1, revision: 65_535 }));
    // By a worker that had read the bounds before the drop, and goes on.
    await storeEvents(warehouse, late);
    await recomputeAll(warehouse);
    // Watermarks that were set back.
    await execute(warehouse, 'TRUNCATE TABLE rollup_watermarks');
    while (await sealNext([warehouse], SEALED_UNTIL));
    expect(await responses()).toEqual(before);
    await execute(warehouse, 'OPTIMIZE TABLE usage_hourly FINAL');
    await execute(warehouse, 'OPTIMIZE TABLE usage_daily FINAL');
    expect(await responses()).toEqual(before);
    expect(await months()).toEqual(ALL_MONTHS);
    // The next drop removes the late events, which nobody reads.
    await drop();
    expect(await months()).toEqual([NOVEMBER, DECEMBER]);
    expect(await responses()).toEqual(before);
  });
});
