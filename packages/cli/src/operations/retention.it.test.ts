/** Closing months and dropping their events, on a real ClickHouse, also where the process dies on the way. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MS_PER_HOUR } from '@meterline/catalog';
import {
  insertUsageEvents,
  oneServer,
  type PricedEvent,
  readEventMonths,
  readMetrics,
  readRetentionBounds,
  readWatermarks,
  type Statement,
  sealNext,
  setRetentionBound,
  type Warehouse,
} from '@meterline/warehouse';
import { pricedEvent } from '../../../../test/harness/events.js';
import { recomputeAll, storeEvents } from '../../../../test/harness/late-events.js';
import { LONG } from '../../../../test/harness/long.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { auditRollups } from './audit.js';
import { closeMonths, compareClosedMonths, type DropOptions, dropClosedMonths, reopenMonths } from './retention.js';

const [OCTOBER, NOVEMBER, DECEMBER] = [Date.UTC(2025, 9), Date.UTC(2025, 10), Date.UTC(2025, 11)];
const SEALED_UNTIL = Date.UTC(2026, 0);
const NOW = Date.UTC(2026, 1, 10);
const WINDOW = { startTime: OCTOBER, endTime: SEALED_UNTIL };
const ACCOUNTS = ['acme', 'globex'];

/** Each takes as many drops as one has statements; `npm test` dies at every eighth alone. */
const LAST_RUNS = LONG ? [false, true] : [true];
const DEATHS = LONG ? { apart: 1, atLeast: 20 } : { apart: 8, atLeast: 2 };

let database: TestDatabase;
let warehouse: Warehouse;
beforeEach(async () => {
  database = await createTestDatabase();
  warehouse = database.warehouse;
  const [first, ...others] = ACCOUNTS.flatMap((accountId) =>
    [OCTOBER, NOVEMBER, DECEMBER].flatMap((month) =>
      [0, 1, 5, 23, 24, 31 * 24 - 25].map((hour) =>
        pricedEvent({ accountId, timestamp: month + hour * MS_PER_HOUR + 1, workspace: `w${hour % 3}` }),
      ),
    ),
  );
  if (!first) throw new Error('there are no events');
  await insertUsageEvents(warehouse, [first, ...others, { ...first, revision: 1, usage: 7n }]);
  await insertUsageEvents(warehouse, [pricedEvent({ accountId: 'acme', timestamp: OCTOBER, voided: true })]);
  while (await sealNext([warehouse], SEALED_UNTIL));
});
afterEach(() => database.drop());

function options(changes: Partial<DropOptions> = {}): DropOptions {
  const { signal } = new AbortController();
  const [onProgress, onDropped] = [() => undefined, () => undefined];
  return {
    shards: oneServer(warehouse),
    now: NOW,
    signal,
    onProgress,
    onDropped,
    recheckMs: 1,
    ...changes,
  };
}

/** What every account gets for whole hours and days, from rollup rows. */
async function answers() {
  const { hourly, daily } = await readWatermarks(warehouse);
  const rollups = { hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours: [] };
  const questions = ACCOUNTS.flatMap((accountId) => [
    { accounts: [accountId], resolution: 'hourly' as const, groupBy: ['workspace'] as const },
    { accounts: [accountId], resolution: 'monthly' as const, groupBy: ['resource_name', 'resource_uuid'] as const },
  ]);
  const found = questions.map((question) =>
    readMetrics(warehouse, { ...question, window: WINDOW, filters: {}, limit: 100, rollups }),
  );
  return Promise.all(found);
}

async function months(): Promise<number[]> {
  return (await readEventMonths(warehouse)).map(({ startTime }) => startTime);
}

/**
 * As a worker that has checked the events against a bound of long ago, and decides after its insert. @returns those that it
 * accepts
 */
async function storeLate(events: readonly PricedEvent[]): Promise<readonly PricedEvent[]> {
  await insertUsageEvents(warehouse, events);
  const { droppingBefore } = await readRetentionBounds(warehouse);
  const accepted = events.filter(({ timestamp }) => timestamp >= droppingBefore);
  await storeEvents(warehouse, accepted);
  return accepted;
}

/** The connection of a process that dies before its statement number `at`, or with it: it may have run or not. */
function dyingAt(at: number, runs: boolean): Warehouse {
  let statements = 0;
  const died = new Error('died');
  const before = async (statement: Statement, run: () => Promise<unknown>) => {
    statements += 1;
    if (statements < at) return;
    if (runs && statements === at && !statement.name.startsWith('read_')) await run();
    throw died;
  };
  return {
    ...{ ping: () => warehouse.ping(), close: () => warehouse.close(), within: () => dyingAt(at, runs) },
    read: async (statement, row) => {
      await before(statement, async () => undefined);
      return warehouse.read(statement, row);
    },
    run: async (statement, body) => {
      await before(statement, () => warehouse.run(statement, body));
      return warehouse.run(statement, body);
    },
  };
}

describe('closing months', () => {
  it('is refused for this month and the one before it, and for what is not sealed', async () => {
    await expect(closeMonths(oneServer(warehouse), Date.UTC(2026, 1), NOW)).rejects.toThrow('cannot be closed yet');
    await expect(closeMonths(oneServer(warehouse), Date.UTC(2026, 1), Date.UTC(2026, 3))).rejects.toThrow(
      'sealed until 2026-01-01',
    );
    await closeMonths(oneServer(warehouse), SEALED_UNTIL, NOW);
    expect(await readRetentionBounds(warehouse)).toEqual({
      closedBefore: SEALED_UNTIL,
      droppingBefore: 0,
      droppedBefore: 0,
    });
  });

  it('can be taken back until their events are dropped', async () => {
    await closeMonths(oneServer(warehouse), SEALED_UNTIL, NOW);
    await reopenMonths(oneServer(warehouse), NOVEMBER);
    expect(await readRetentionBounds(warehouse)).toMatchObject({ closedBefore: NOVEMBER });
    await dropClosedMonths(options());
    await expect(reopenMonths(oneServer(warehouse), OCTOBER)).rejects.toThrow('cannot be opened again');
    expect(await readRetentionBounds(warehouse)).toEqual({
      closedBefore: NOVEMBER,
      droppingBefore: NOVEMBER,
      droppedBefore: NOVEMBER,
    });
  });
});

describe('dropping the events of closed months', () => {
  it('leaves every answer about whole hours and days as it was, and the other months', async () => {
    const before = await answers();
    expect(before[0]?.totals.usage).toBe('17.000000007');
    await closeMonths(oneServer(warehouse), DECEMBER, NOW);
    const dropped: number[] = [];
    await dropClosedMonths(options({ onDropped: ({ startTime }) => dropped.push(startTime) }));
    expect(dropped).toEqual([OCTOBER, NOVEMBER]);
    expect(await months()).toEqual([DECEMBER]);
    expect(await answers()).toEqual(before);
    expect(await readRetentionBounds(warehouse)).toMatchObject({ droppedBefore: DECEMBER });
  });

  it('does nothing that shows when it is rehearsed', async () => {
    await closeMonths(oneServer(warehouse), DECEMBER, NOW);
    const closed = await compareClosedMonths(options());
    expect(closed.map(({ startTime }) => startTime)).toEqual([OCTOBER, NOVEMBER]);
    expect(await months()).toEqual([OCTOBER, NOVEMBER, DECEMBER]);
    expect(await readRetentionBounds(warehouse)).toMatchObject({ droppingBefore: 0 });
  });

  it.each(['usage_hourly', 'usage_daily'])('drops nothing where %s differs from the events', async (table) => {
    await closeMonths(oneServer(warehouse), DECEMBER, NOW);
    await execute(warehouse, `ALTER TABLE ${table} DELETE WHERE account_id = 'globex' AND toMonth(bucket) = 10`);
    await expect(compareClosedMonths(options())).rejects.toThrow('audit --from 1970-01-01T00:00:00Z --to 2025-12-01');
    await expect(dropClosedMonths(options())).rejects.toThrow('rollup rows differ from their events');
    expect(await months()).toEqual([OCTOBER, NOVEMBER, DECEMBER]);
    expect(await readRetentionBounds(warehouse)).toMatchObject({ droppingBefore: 0 });
  });

  it('drops nothing when hours are to be sealed again', async () => {
    await closeMonths(oneServer(warehouse), DECEMBER, NOW);
    await execute(warehouse, 'TRUNCATE TABLE rollup_watermarks');
    await expect(dropClosedMonths(options())).rejects.toThrow('sealed until 1970-01-01T00:00:00Z only');
    expect(await months()).toEqual([OCTOBER, NOVEMBER, DECEMBER]);
  });

  it('counts an event whose worker died between storing and repairing', async () => {
    await closeMonths(oneServer(warehouse), NOVEMBER, NOW);
    await setRetentionBound([warehouse], 'dropping', NOVEMBER);
    await insertUsageEvents(warehouse, [pricedEvent({ timestamp: OCTOBER, workspace: 'stored' })]);
    await dropClosedMonths(options());
    const [first] = await answers();
    expect(first?.groups.map(({ values }) => values.workspace)).toContain('stored');
  });

  it('counts an event whose hour is marked as dirty and not repaired', async () => {
    await storeEvents(warehouse, [pricedEvent({ timestamp: OCTOBER, workspace: 'marked' })]);
    await closeMonths(oneServer(warehouse), NOVEMBER, NOW);
    await dropClosedMonths(options());
    const [first] = await answers();
    expect(first?.groups.map(({ values }) => values.workspace)).toContain('marked');
  });

  it.each(LAST_RUNS)('is finished by the next call, wherever it dies (its last statement runs: %s)', async (runs) => {
    const before = await answers();
    await closeMonths(oneServer(warehouse), DECEMBER, NOW);
    let died = 0;
    for (let at = 1; ; at += DEATHS.apart) {
      const isDone = await dropClosedMonths(options({ shards: oneServer(dyingAt(at, runs)) })).then(
        () => true,
        (error: Error) => {
          if (error.message !== 'died') throw error;
          return false;
        },
      );
      expect(await answers()).toEqual(before);
      if (isDone) break;
      died += 1;
    }
    expect(died).toBeGreaterThan(DEATHS.atLeast);
    expect(await months()).toEqual([DECEMBER]);
  });

  it('ends between two days when it is interrupted', async () => {
    await closeMonths(oneServer(warehouse), DECEMBER, NOW);
    const interruption = new AbortController();
    const onProgress = (done: number) => done === 2 && interruption.abort();
    await dropClosedMonths(options({ signal: interruption.signal, onProgress }));
    expect(await months()).toEqual([OCTOBER, NOVEMBER, DECEMBER]);
    expect(await readRetentionBounds(warehouse)).toMatchObject({ droppingBefore: 0 });
  });
});

describe('final rollup rows', () => {
  it('are not replaced from the events that came too late, whatever their revisions', async () => {
    const before = await answers();
    await closeMonths(oneServer(warehouse), NOVEMBER, NOW);
    await dropClosedMonths(options());
    const late = Array.from({ length: 3 }, () => pricedEvent({ timestamp: OCTOBER + 1, revision: 65_535 }));
    expect(await storeLate(late)).toEqual([]);
    // A worker that had read the bounds before all this, and goes on.
    await storeEvents(warehouse, late);
    await recomputeAll(warehouse);
    // Watermarks that were set back.
    await execute(warehouse, 'TRUNCATE TABLE rollup_watermarks');
    while (await sealNext([warehouse], SEALED_UNTIL));
    expect(await answers()).toEqual(before);
    await execute(warehouse, 'OPTIMIZE TABLE usage_hourly FINAL');
    await execute(warehouse, 'OPTIMIZE TABLE usage_daily FINAL');
    expect(await answers()).toEqual(before);
    // The next drop removes what nobody reads.
    await dropClosedMonths(options());
    expect(await months()).toEqual([NOVEMBER, DECEMBER]);
    expect(await answers()).toEqual(before);
  });

  it('have a version that no sum over events reaches, and days are those of their hours', async () => {
    await closeMonths(oneServer(warehouse), NOVEMBER, NOW);
    await dropClosedMonths(options());
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

  it('are skipped by an audit, which says so', async () => {
    await closeMonths(oneServer(warehouse), DECEMBER, NOW);
    await dropClosedMonths(options());
    const audit = (window: typeof WINDOW) =>
      auditRollups({ ...options(), accountId: undefined, window, repair: true, recheckMs: 1 });
    expect(await audit(WINDOW)).toEqual({ days: 3, comparedFrom: DECEMBER, differences: [], stillDifferent: [] });
    expect(await audit({ ...WINDOW, endTime: NOVEMBER })).toMatchObject({ days: 0, comparedFrom: DECEMBER });
    expect(await audit({ ...WINDOW, startTime: DECEMBER })).toMatchObject({ days: 3, comparedFrom: undefined });
  });
});
