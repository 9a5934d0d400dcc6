import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { event } from '../../../../test/contract/fixture.js';
import { createTestDatabase, select, type TestDatabase } from '../../../../test/stack.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readCellDifferences } from '../operations/audit.js';
import { type SealedStep, sealNext } from './sealing.js';
import { readWatermarks } from './watermarks.js';

const DAY = Date.UTC(2025, 9, 1);
const TEN_EVENTS = 10;
/** Two hours of ten events, and a day with two hours of ten groups. */
const SMALL_STEPS = {
  stepRows: { hourly: 2 * TEN_EVENTS, daily: 2 * TEN_EVENTS },
  statementRows: TEN_EVENTS,
  largeRows: TEN_EVENTS,
  restsAfterMs: Number.POSITIVE_INFINITY,
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

async function sealAll(due: number, rests: number[] = []): Promise<Omit<SealedStep, 'tooLarge'>[]> {
  const steps: Omit<SealedStep, 'tooLarge'>[] = [];
  const rest = async (ms: number) => void rests.push(ms);
  for (;;) {
    const step = await sealNext(database.warehouse, due, { ...SMALL_STEPS, restsAfterMs: 0 }, rest);
    if (!step) return steps;
    const { tooLarge, ...sealed } = step;
    expect(tooLarge).toEqual([]);
    steps.push(sealed);
  }
}

async function cells(table: string): Promise<number> {
  const query = `SELECT toUInt32(count()) AS cells FROM ${table} FINAL`;
  return (await select<{ cells: number }>(database.warehouse, query))[0]?.cells ?? -1;
}

describe('sealing', () => {
  it('catches up in steps of bounded size, hours before their days', async () => {
    const hour = (n: number) => DAY + n * MS_PER_HOUR;
    const rests: number[] = [];
    expect(await sealAll(hour(25) + 1, rests)).toEqual([
      { grain: 'hourly', from: 0, to: hour(2) },
      { grain: 'hourly', from: hour(2), to: hour(4) },
      { grain: 'hourly', from: hour(4), to: hour(25) },
      { grain: 'daily', from: 0, to: DAY + MS_PER_DAY },
    ]);
    expect([await cells('usage_hourly'), await cells('usage_daily')]).toEqual([6, 1]);
    // Between the two slices of each step of hours, and not before hours or days may be read.
    expect(rests).toHaveLength(3);
    for (const ms of rests) expect(ms > 0 && ms <= 1_000).toBe(true);
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
  it.each([1, 3, 7, 1_000])('of about %i rows compute all cells together', async (statementRows) => {
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
      while (await sealNext(other.warehouse, due, { ...SMALL_STEPS, statementRows }));
      const scope = { window: { startTime: DAY, endTime: due } };
      expect(await readCellDifferences(other.warehouse, 'hourly', scope)).toEqual([]);
      expect(await readCellDifferences(other.warehouse, 'daily', scope)).toEqual([]);
    } finally {
      await other.drop();
    }
  });
});
