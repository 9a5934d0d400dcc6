/** Closes months and drops their events, on a real ClickHouse. Deaths at every statement: test/retention/deaths.long.test.ts. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  GRAINS,
  insertUsageEvents,
  raiseWatermarks,
  sealNext,
  setRetentionBound,
  type Warehouse,
} from '@meterline/warehouse';
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
import { compareClosedMonths } from './retention.js';

const LATE = pricedEvent({ timestamp: OCTOBER, workspace: 'late' });
const workspacesOf = (responses: Awaited<ReturnType<ReturnType<typeof sealedMonths>['responses']>>) =>
  responses[0]?.groups.map(({ values }) => values.workspace);

// Bounds only rise, except that of closed months: each test goes on from the one before.
describe('closing months', () => {
  const fixture = sealedMonths('file');
  const { bounds, close, drop, months, reopen, responses } = fixture;

  it('months can be closed once they are sealed, and closing fewer months reopens none', async () => {
    await expect(close(Date.UTC(2026, 1))).rejects.toThrow('sealed until 2026-01-01');
    await close(DECEMBER);
    expect(await close(NOVEMBER)).toBe(DECEMBER);
    expect(await bounds()).toEqual([DECEMBER, 0, 0]);
  });

  it('closed months can be reopened', async () => {
    await reopen(NOVEMBER);
    expect(await bounds()).toEqual([NOVEMBER, 0, 0]);
  });

  it('an interruption ends a drop between two days', async () => {
    const interruption = new AbortController();
    await drop({ signal: interruption.signal, onProgress: (done) => done === 1 && interruption.abort() });
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [NOVEMBER, 0, 0]]);
  });

  it('no event is dropped before its hours are sealed', async () => {
    await execute(fixture.warehouse, 'TRUNCATE TABLE rollup_watermarks');
    const message = 'only sealed until 1970-01-01T00:00:00Z';
    await expect(compareClosedMonths(fixture.options())).rejects.toThrow(message);
    await expect(drop()).rejects.toThrow(message);
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [NOVEMBER, 0, 0]]);
    const sealed = { sealingUntil: SEALED_UNTIL, sealedUntil: SEALED_UNTIL };
    for (const grain of GRAINS) await raiseWatermarks([fixture.warehouse], grain, sealed);
  });

  it('an event whose hour is dirty counts after the drop of its month, which cannot be reopened', async () => {
    await storeEvents(fixture.warehouse, [LATE]);
    await drop();
    expect(workspacesOf(await responses())).toContain('late');
    await expect(reopen(OCTOBER)).rejects.toThrow('cannot be reopened');
    expect(await bounds()).toEqual([NOVEMBER, NOVEMBER, NOVEMBER]);
  });
});

describe('dropping the events of closed months', () => {
  const fixture = sealedMonths();
  const { bounds, close, drop, dropOrDie, months, options, responses } = fixture;

  it('a drop does not change responses for whole hours and days, even if it dies and another drop finishes it', async () => {
    const before = await responses();
    expect(before[0]?.totals.usage).toBe('11.000000007');
    await close(DECEMBER);
    await compareClosedMonths(options());
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [DECEMBER, 0, 0]]);
    // Between the final hours and their days.
    expect(await dropOrDie(({ name }) => name === 'make_hours_final', 'after')).toBe(false);
    expect(await responses()).toEqual(before);
    const dropped: number[] = [];
    const onDropped = ({ startTime }: { startTime: number }) => dropped.push(startTime);
    // Only what was closed when the drop was confirmed.
    await drop({ before: NOVEMBER, onDropped });
    expect([dropped, await months()]).toEqual([[OCTOBER], [NOVEMBER, DECEMBER]]);
    expect(await bounds()).toEqual([DECEMBER, NOVEMBER, NOVEMBER]);
    await drop({ onDropped });
    expect([dropped, await months()]).toEqual([[OCTOBER, NOVEMBER], [DECEMBER]]);
    expect(await responses()).toEqual(before);
    expect(await bounds()).toEqual([DECEMBER, DECEMBER, DECEMBER]);
  });

  it('no event is dropped if rollup rows differ, except to finish a drop, which first repairs the rows', async () => {
    const { warehouse } = fixture;
    await close(NOVEMBER);
    await execute(
      warehouse,
      "ALTER TABLE usage_hourly DELETE WHERE account_id = 'globex' AND toDate(bucket) = '2025-10-01'",
    );
    const message = 'so the events were not dropped; run "meterline audit --from 1970-01-01T00:00:00Z --to 2025-1';
    await expect(compareClosedMonths(options())).rejects.toThrow(message);
    await expect(drop()).rejects.toThrow(message);
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [NOVEMBER, 0, 0]]);
    await setRetentionBound([warehouse], 'dropping', NOVEMBER);
    // The worker died after its insert.
    await insertUsageEvents(warehouse, [LATE]);
    await drop();
    expect(await months()).toEqual([NOVEMBER, DECEMBER]);
    const after = await responses();
    expect(workspacesOf(after)).toContain('late');
    expect(after.map(({ totals }) => totals.usage)).toEqual(['12.000000007', '12.000000007', '12', '12']);
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
    await fixture.close(NOVEMBER);
    await drop();
  });

  it('final rows have a version above that of any events, and days match their hours', async () => {
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

  it('an audit skips final rows and reports where its comparison starts', async () => {
    const audit = (startTime: number, endTime: number) =>
      auditRollups({ ...options(), accountId: undefined, window: { startTime, endTime }, repair: true });
    expect(await audit(OCTOBER, DECEMBER)).toEqual({
      ...{ days: 2, comparedFrom: NOVEMBER, differences: [], stillDifferent: [] },
    });
    expect(await audit(OCTOBER, NOVEMBER)).toMatchObject({ days: 0, comparedFrom: NOVEMBER });
    expect(await audit(NOVEMBER, DECEMBER)).toMatchObject({ days: 2, comparedFrom: undefined });
  });

  it('final rows are never replaced by late events, whatever their revisions', async () => {
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
