/** Questions while months are dropped, on a real ClickHouse. */
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { MS_PER_HOUR } from '@meterline/catalog';
import { setRetentionBound } from '@meterline/warehouse';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import { type KnownCells, whileEventsLast, withoutEventsBefore } from './kept-events.js';

const MAY = Date.UTC(2025, 4);
const JUNE = Date.UTC(2025, 5);
const SEALED = { hourly: JUNE, daily: JUNE, staleHours: [] };
/** METRICS_SOURCE=events. */
const EVENTS_ALONE = { hourly: 0, daily: 0, staleHours: [] };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.warehouse.run({ name: 'forget', query: 'TRUNCATE TABLE retention_bounds', query_params: {} });
});

it.each([
  ['of whole hours from cells', SEALED, { startTime: 0, endTime: MAY }, [0]],
  ['of a part of an hour', SEALED, { startTime: MAY + 1, endTime: JUNE }, [0, MAY]],
  ['of a stale hour', { ...SEALED, staleHours: [MAY - MS_PER_HOUR] }, { startTime: 0, endTime: MAY }, [0, MAY]],
  ['from the events alone', EVENTS_ALONE, { startTime: 0, endTime: JUNE }, [0, MAY]],
])(
  'a question %s is asked again if it may have read what was dropped meanwhile',
  async (_what, cells, window, asked) => {
    const bounds: number[] = [];
    const ask = async ({ droppedBefore }: KnownCells) => {
      bounds.push(droppedBefore);
      await setRetentionBound(database.warehouse, 'dropped', MAY);
    };
    await whileEventsLast(database.warehouse, window, withoutEventsBefore(0, cells), undefined, ask);
    expect(bounds).toEqual(asked);
  },
);
