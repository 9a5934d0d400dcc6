/** When a question reads the marks of its account, on a real ClickHouse. */
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { createWarehouse, raiseWatermarks, setRetentionBound, type Warehouse } from '@meterline/warehouse';
import { event } from '../../../../test/contract/fixture.js';
import { repairAll, storeEvents } from '../../../../test/late-events.js';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import { createCellsReader } from './readable-cells.js';

const DAY = Date.UTC(2025, 9, 1);
const WINDOW = { startTime: DAY, endTime: DAY + MS_PER_DAY };
const HOUR_3 = DAY + 3 * MS_PER_HOUR;

let database: TestDatabase;
let warehouse: Warehouse;
let statements: string[] = [];
let account = 0;
beforeAll(async () => {
  database = await createTestDatabase();
  const observe = (name: string) => {
    statements.push(name);
    return () => undefined;
  };
  warehouse = createWarehouse({ ...database.options, observe });
  await sealUntil(DAY + 10 * MS_PER_DAY);
});
beforeEach(() => {
  account += 1;
});
afterAll(async () => {
  await warehouse.close();
  await database.drop();
});

async function sealUntil(instant: number): Promise<void> {
  for (const grain of ['hourly', 'daily'] as const) {
    await raiseWatermarks(database.warehouse, grain, { sealingUntil: instant, sealedUntil: instant });
  }
}

function lateEvent(): Promise<void> {
  const late = event({ accountId: `${account}`, at: new Date(HOUR_3).toISOString() });
  return storeEvents(database.warehouse, [late]);
}

/** Questions of one process, each with the stamp that it has read. @returns stale hours, and whether they were read */
function asking(): (stamp: string | undefined, window?: typeof WINDOW) => Promise<[readonly number[], string]> {
  let now = DAY;
  const reader = createCellsReader(warehouse, () => new Date(now));
  return async (stamp, window = WINDOW) => {
    statements = [];
    // Watermarks are read again for each.
    now += 1_001;
    const { staleHours } = await reader({ accountId: `${account}`, warehouse, stamp }, window);
    return [staleHours, statements.includes('read_stale_hours') ? 'read' : 'known'];
  };
}

it('an account without marks is known as long as its stamp is the same, for every window', async () => {
  const ask = asking();
  expect(await ask('first')).toEqual([[], 'read']);
  expect(await ask('first')).toEqual([[], 'known']);
  expect(await ask('first', { startTime: 0, endTime: DAY })).toEqual([[], 'known']);
  await lateEvent();
  expect(await ask('second')).toEqual([[HOUR_3], 'read']);
});

it('is not known to a question that could not read a stamp', async () => {
  const ask = asking();
  expect(await ask(undefined)).toEqual([[], 'read']);
  expect(await ask(undefined)).toEqual([[], 'read']);
  expect(await ask('first')).toEqual([[], 'read']);
  expect(await ask(undefined)).toEqual([[], 'read']);
});

it('is read again when a watermark was raised, because its sealer may have marked what it could not compute', async () => {
  const ask = asking();
  expect(await ask('first')).toEqual([[], 'read']);
  await lateEvent();
  await sealUntil(DAY + 11 * MS_PER_DAY);
  expect(await ask('first')).toEqual([[HOUR_3], 'read']);
});

it('stale hours of the same window are known for a moment, and answered from the events though they are repaired', async () => {
  const ask = asking();
  await lateEvent();
  expect(await ask('first', { startTime: 0, endTime: DAY })).toEqual([[], 'read']);
  expect(await ask('first')).toEqual([[HOUR_3], 'read']);
  await repairAll(database.warehouse);
  expect(await ask('first')).toEqual([[HOUR_3], 'known']);
  expect(await ask('first')).toEqual([[], 'read']);
  expect(await ask('second')).toEqual([[], 'read']);
  expect(await ask('second')).toEqual([[], 'known']);
});

it('dropped months are answered from cells also where no marks are read, whatever a watermark that was set back says', async () => {
  const dropped = Date.UTC(2025, 10, 1);
  await setRetentionBound(database.warehouse, 'dropped', dropped);
  const reader = createCellsReader(warehouse, () => new Date());
  const asker = { accountId: `${account}`, warehouse, stamp: 'first' };
  const expected = { hourly: dropped, daily: dropped, staleHours: [], droppedBefore: dropped };
  expect(await reader(asker, WINDOW)).toEqual(expected);
  statements = [];
  expect(await reader(asker, WINDOW)).toEqual(expected);
  expect(statements).toEqual([]);
});
