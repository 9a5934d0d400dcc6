import { beforeAll, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { createTestDatabase, select } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { readRollupDifferences } from '../operations/audit.js';
import { sealNext } from './maintenance.js';

const DAY = Date.UTC(2025, 9, 1);
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
    const { tooLarge, ...sealed } = step;
    expect(tooLarge).toEqual([]);
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
  const due = DAY + 1_000 * MS_PER_DAY;
  expect(await sealUntil(due)).toEqual([
    { grain: 'hourly', from: at(25), to: due },
    { grain: 'daily', from: at(24), to: at(48) },
    { grain: 'daily', from: at(48), to: due },
  ]);
  expect(await sealUntil(DAY)).toEqual([]);
});

it.each([1, 7, 1_000])(
  'the statements of a step of about %i rows compute all rollup rows together',
  async (statementRows) => {
    const other = await createTestDatabase();
    const accounts = ['acme', 'acme-2', "o'neil", 'back\\slash', '漢字', '😀', 'zeta'];
    const events = accounts.flatMap((accountId, index) =>
      [0, 1, 2, 23, 24, 47].flatMap((hour) =>
        Array.from({ length: 1 + (index % 3) }, () => pricedEvent({ accountId, timestamp: at(hour) })),
      ),
    );
    await insertUsageEvents(other.warehouse, events);
    // Rows that are not merged yet count, and change nothing.
    await insertUsageEvents(other.warehouse, events.slice(0, 20));
    while (await sealNext(other.shards.all, at(48), { ...SMALL_STEPS, statementRows }));
    const scope = { window: { startTime: DAY, endTime: at(48) } };
    for (const grain of ['hourly', 'daily'] as const) {
      expect(await readRollupDifferences(other.warehouse, grain, scope)).toEqual([]);
    }
    await other.drop();
  },
);
