import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { event } from '../../../../test/harness/events.js';
import { createTestDatabase, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readRollupDifferences } from '../operations/audit.js';
import { type SealedStep, sealNext } from './maintenance.js';
import { readWatermarks } from './watermarks.js';

const DAY = Date.UTC(2025, 9, 1);
const TEN_EVENTS = 10;
/** Two hours of ten events, and a day with two hours of ten groups. */
const SMALL_STEPS = {
  stepRows: 2 * TEN_EVENTS,
  statementRows: TEN_EVENTS,
  largeRows: TEN_EVENTS,
};

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const hours = [0, 1, 2, 3, 4, 24, 25];
  const at = (hour: number) => new Date(DAY + hour * MS_PER_HOUR).toISOString();
  const events = hours.flatMap((hour) =>
    Array.from({ length: TEN_EVENTS }, (_, box) => event({ at: at(hour), resourceUuid: `box-${box}` })),
  );
  await insertUsageEvents(database.warehouse, events);
});
afterAll(() => database.drop());

async function sealAll(due: number): Promise<Omit<SealedStep, 'tooLarge'>[]> {
  const steps: Omit<SealedStep, 'tooLarge'>[] = [];
  for (;;) {
    const step = await sealNext(database.shards.all, due, SMALL_STEPS);
    if (!step) return steps;
    const { tooLarge, ...sealed } = step;
    expect(tooLarge).toEqual([]);
    steps.push(sealed);
  }
}

async function rollups(table: string): Promise<number> {
  const query = `SELECT toUInt32(count()) AS rollups FROM ${table} FINAL`;
  return (await select<{ rollups: number }>(database.warehouse, query))[0]?.rollups ?? -1;
}

describe('sealing', () => {
  it('catches up in steps of bounded size, hours before their days', async () => {
    const hour = (n: number) => DAY + n * MS_PER_HOUR;
    expect(await sealAll(hour(25) + 1)).toEqual([
      { grain: 'hourly', from: 0, to: hour(2) },
      { grain: 'hourly', from: hour(2), to: hour(4) },
      { grain: 'hourly', from: hour(4), to: hour(25) },
      { grain: 'daily', from: 0, to: DAY + MS_PER_DAY },
    ]);
    expect([await rollups('usage_hourly'), await rollups('usage_daily')]).toEqual([6, 1]);
  });

  it('never seals an hour before its end', async () => {
    expect((await readWatermarks(database.warehouse)).hourly.sealedUntil).toBe(DAY + 25 * MS_PER_HOUR);
    expect(await sealAll(DAY + 26 * MS_PER_HOUR - 1)).toEqual([]);
  });

  it('goes over days without events in one step', async () => {
    const due = DAY + 1_000 * MS_PER_DAY;
    expect(await sealAll(due)).toEqual([
      { grain: 'hourly', from: DAY + 25 * MS_PER_HOUR, to: due },
      { grain: 'daily', from: DAY + MS_PER_DAY, to: DAY + 2 * MS_PER_DAY },
      { grain: 'daily', from: DAY + 2 * MS_PER_DAY, to: due },
    ]);
  });

  it('does nothing when nothing is due', async () => {
    expect(await sealAll(DAY)).toEqual([]);
  });
});

describe('the statements of a step', () => {
  it.each([1, 3, 7, 1_000])('of about %i rows compute all rollup rows together', async (statementRows) => {
    const other = await createTestDatabase();
    try {
      const accounts = ['acme', 'acme-2', "o'neil", 'back\\slash', '漢字', '😀', 'zeta'];
      const events = accounts.flatMap((accountId, index) =>
        [0, 1, 2, 23, 24, 47].flatMap((hour) =>
          Array.from({ length: 1 + (index % 3) }, () =>
            event({ accountId, at: new Date(DAY + hour * MS_PER_HOUR).toISOString() }),
          ),
        ),
      );
      await insertUsageEvents(other.warehouse, events);
      // Rows that are not merged yet count, and change nothing.
      await insertUsageEvents(other.warehouse, events.slice(0, 20));
      const due = DAY + 2 * MS_PER_DAY;
      while (await sealNext([other.warehouse], due, { ...SMALL_STEPS, statementRows }));
      const scope = { window: { startTime: DAY, endTime: due } };
      expect(await readRollupDifferences(other.warehouse, 'hourly', scope)).toEqual([]);
      expect(await readRollupDifferences(other.warehouse, 'daily', scope)).toEqual([]);
    } finally {
      await other.drop();
    }
  });
});
