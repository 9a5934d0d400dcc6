/** Closing months and dropping their events, on a real ClickHouse. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  insertUsageEvents,
  oneServer,
  type PricedEvent,
  readRetentionBounds,
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
  WINDOW,
} from '../../../../test/retention/sealed-months.js';
import { auditRollups } from './audit.js';
import { closeMonths, compareClosedMonths, reopenMonths } from './retention.js';

const fixture = sealedMonths();
const { options, drop, dropOrDie, bounds, months, responses } = fixture;
let warehouse: Warehouse;
beforeEach(() => {
  warehouse = fixture.warehouse;
});

const close = (before: number) => closeMonths(oneServer(warehouse), before);

/** Stores events as a worker does that read the retention bounds after its insert. @returns the accepted events */
async function storeLate(events: readonly PricedEvent[]): Promise<readonly PricedEvent[]> {
  await insertUsageEvents(warehouse, events);
  const { droppingBefore } = await readRetentionBounds(warehouse);
  const accepted = events.filter(({ timestamp }) => timestamp >= droppingBefore);
  await storeEvents(warehouse, accepted);
  return accepted;
}

describe('closing months', () => {
  it('closing is refused for what is not sealed', async () => {
    await expect(close(Date.UTC(2026, 1))).rejects.toThrow('sealed until 2026-01-01');
    await close(SEALED_UNTIL);
    expect(await bounds()).toEqual([SEALED_UNTIL, 0, 0]);
  });

  it('closing less than is closed by now opens nothing', async () => {
    await close(DECEMBER);
    expect(await close(NOVEMBER)).toBe(DECEMBER);
    expect(await bounds()).toEqual([DECEMBER, 0, 0]);
  });

  it('closing can be taken back until their events are dropped', async () => {
    await close(SEALED_UNTIL);
    await reopenMonths(oneServer(warehouse), NOVEMBER);
    expect(await bounds()).toEqual([NOVEMBER, 0, 0]);
    await drop();
    await expect(reopenMonths(oneServer(warehouse), OCTOBER)).rejects.toThrow('cannot be opened again');
    expect(await bounds()).toEqual([NOVEMBER, NOVEMBER, NOVEMBER]);
  });
});

describe('dropping the events of closed months', () => {
  it('dropping leaves every response about whole hours and days as it was, and a comparison changes nothing', async () => {
    const before = await responses();
    expect(before[0]?.totals.usage).toBe('17.000000007');
    await close(DECEMBER);
    await compareClosedMonths(options());
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [DECEMBER, 0, 0]]);
    const dropped: number[] = [];
    await drop({ onDropped: ({ startTime }) => dropped.push(startTime) });
    expect([dropped, await months()]).toEqual([[OCTOBER, NOVEMBER], [DECEMBER]]);
    expect(await responses()).toEqual(before);
    expect(await bounds()).toEqual([DECEMBER, DECEMBER, DECEMBER]);
  });

  const different = (table: string) =>
    `ALTER TABLE ${table} DELETE WHERE account_id = 'globex' AND toMonth(bucket) = 10`;
  it.each([
    ['hours differ from the events', different('usage_hourly'), 'audit --from 1970-01-01T00:00:00Z --to 2025-1'],
    ['days differ from the events', different('usage_daily'), 'rollup rows differ from their events'],
    ['hours are to be sealed again', 'TRUNCATE TABLE rollup_watermarks', 'sealed until 1970-01-01T00:00:00Z only'],
  ])('nothing is dropped where %s', async (_what, query, message) => {
    await close(DECEMBER);
    await execute(warehouse, query);
    await expect(compareClosedMonths(options())).rejects.toThrow(message);
    await expect(drop()).rejects.toThrow(message);
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [DECEMBER, 0, 0]]);
  });

  const LATE = pricedEvent({ timestamp: OCTOBER, workspace: 'late' });
  it.each([
    ['is marked as dirty and not recomputed', () => storeEvents(warehouse, [LATE])],
    [
      'was not marked, because the worker died after it had stored',
      async () => {
        await setRetentionBound([warehouse], 'dropping', NOVEMBER);
        await insertUsageEvents(warehouse, [LATE]);
      },
    ],
  ])('an event counts whose hour %s', async (_what, store) => {
    await close(NOVEMBER);
    await store();
    await drop();
    const [first] = await responses();
    expect(first?.groups.map(({ values }) => values.workspace)).toContain('late');
  });

  // test/retention/deaths.long.test.ts: at every statement.
  it('dropping is finished by the next call when it died between the final hours and their days', async () => {
    const before = await responses();
    await close(DECEMBER);
    expect(await dropOrDie(({ name }) => name === 'make_hours_final', 'after')).toBe(false);
    expect(await responses()).toEqual(before);
    await drop();
    expect(await responses()).toEqual(before);
    expect(await months()).toEqual([DECEMBER]);
  });

  it('dropping leaves months that were closed after it was confirmed', async () => {
    await close(DECEMBER);
    await drop({ before: NOVEMBER });
    expect([await months(), await bounds()]).toEqual([
      [NOVEMBER, DECEMBER],
      [DECEMBER, NOVEMBER, NOVEMBER],
    ]);
  });

  it('dropping ends between two days when it is interrupted', async () => {
    await close(DECEMBER);
    const interruption = new AbortController();
    const onProgress = (done: number) => done === 2 && interruption.abort();
    await drop({ signal: interruption.signal, onProgress });
    expect([await months(), await bounds()]).toEqual([ALL_MONTHS, [DECEMBER, 0, 0]]);
  });
});

describe('final rollup rows', () => {
  it('final rows are not replaced from the events that came too late, whatever their revisions', async () => {
    const before = await responses();
    await close(NOVEMBER);
    await drop();
    const late = Array.from({ length: 3 }, () => pricedEvent({ timestamp: OCTOBER + 1, revision: 65_535 }));
    expect(await storeLate(late)).toEqual([]);
    // A worker that had read the bounds before all this, and goes on.
    await storeEvents(warehouse, late);
    await recomputeAll(warehouse);
    // Watermarks that were set back.
    await execute(warehouse, 'TRUNCATE TABLE rollup_watermarks');
    while (await sealNext([warehouse], SEALED_UNTIL));
    expect(await responses()).toEqual(before);
    await execute(warehouse, 'OPTIMIZE TABLE usage_hourly FINAL');
    await execute(warehouse, 'OPTIMIZE TABLE usage_daily FINAL');
    expect(await responses()).toEqual(before);
    // The next drop removes what nobody reads.
    await drop();
    expect(await months()).toEqual([NOVEMBER, DECEMBER]);
    expect(await responses()).toEqual(before);
  });

  it('final rows have a version that no sum over events reaches, and days are those of their hours', async () => {
    await close(NOVEMBER);
    await drop();
    const versions = (table: string, start: string) =>
      select(
        warehouse,
        `SELECT account_id, toString(${start}) AS day, bitShiftRight(min(version), 127) AS least,
           toString(sum(bitAnd(version, bitNot(bitShiftLeft(toUInt128(1), 127))))) AS events
         FROM ${table} FINAL WHERE bucket < toDateTime('2025-11-01', 'UTC') GROUP BY ALL ORDER BY ALL`,
      );
    const days = await versions('usage_daily', 'bucket');
    expect(days).toHaveLength(6);
    expect(days).toEqual(days.map((day) => ({ ...day, least: '1' })));
    expect(await versions('usage_hourly', 'toStartOfDay(bucket)')).toEqual(days);
  });

  it('final rows are skipped by an audit, which says so', async () => {
    await close(DECEMBER);
    await drop();
    const audit = (window: typeof WINDOW) =>
      auditRollups({ ...options(), accountId: undefined, window, repair: true, recheckMs: 1 });
    expect(await audit(WINDOW)).toEqual({ days: 3, comparedFrom: DECEMBER, differences: [], stillDifferent: [] });
    expect(await audit({ ...WINDOW, endTime: NOVEMBER })).toMatchObject({ days: 0, comparedFrom: DECEMBER });
    expect(await audit({ ...WINDOW, startTime: DECEMBER })).toMatchObject({ days: 3, comparedFrom: undefined });
  });
});
