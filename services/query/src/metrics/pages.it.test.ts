/** What a query may read while months are dropped, on a real ClickHouse. */
import { beforeEach, expect, it } from '@jest/globals';
import { MS_PER_HOUR } from '@meterline/catalog';
import {
  createWarehouse,
  type RollupState,
  raiseWatermarks,
  rollupStateReader,
  setRetentionBound,
  stateSince,
  type Warehouse,
} from '@meterline/warehouse';
import { execute } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { retryIfEventsDropped } from './pages.js';

const MAY = Date.UTC(2025, 4);
const JUNE = Date.UTC(2025, 5);
const NOW = Math.floor(Date.now() / MS_PER_HOUR) * MS_PER_HOUR;
const SEALED = { hourly: NOW, daily: NOW, dirtyHours: [] };
const SEALED_LONG_AGO = { hourly: JUNE, daily: JUNE, dirtyHours: [] };
/** With the constant `eventsOnly`. */
const EVENTS_ALONE = { hourly: 0, daily: 0, dirtyHours: [] };

const database = testDatabase();
beforeEach(() => execute(database.warehouse, 'TRUNCATE TABLE retention_bounds'));

it.each([
  ['of whole hours from rollup rows', SEALED, { startTime: 0, endTime: MAY }, [0]],
  ['with an old reading of the watermarks', SEALED_LONG_AGO, { startTime: 0, endTime: MAY }, [0, MAY]],
  ['of a part of an hour', SEALED, { startTime: MAY + 1, endTime: JUNE }, [0, MAY]],
  [
    'of a dirty hour',
    { ...SEALED, dirtyHours: [{ accountId: 'acme', bucket: MAY - MS_PER_HOUR }] },
    { startTime: 0, endTime: MAY },
    [0, MAY],
  ],
  [
    'of dirty hours that are too many to list',
    { ...SEALED, dirtyHours: { windows: [{ startTime: 0, endTime: MAY }] } },
    { startTime: 0, endTime: MAY },
    [0, MAY],
  ],
  ['from the events alone', EVENTS_ALONE, { startTime: 0, endTime: JUNE }, [0, MAY]],
])('a query %s runs again if it may have read what was dropped meanwhile', async (_what, state, window, runs) => {
  const bounds: number[] = [];
  const run = async ({ droppedBefore }: RollupState) => {
    bounds.push(droppedBefore);
    await setRetentionBound([database.warehouse], 'dropped', MAY);
  };
  await retryIfEventsDropped(database.warehouse, window, stateSince(0, state), run);
  expect(bounds).toEqual(runs);
});

it('concurrent and later queries share one reading of the watermarks, even if the first query is aborted', async () => {
  const names: string[] = [];
  const own = createWarehouse({
    ...database.options,
    observe: (name) => {
      names.push(name);
      return () => undefined;
    },
  });
  const read = rollupStateReader(own);
  const leaving = new AbortController();
  const ask = (warehouse: Warehouse) => read({ accounts: ['acme'], warehouse }, { startTime: 0, endTime: JUNE });
  const gone = ask(own.within({ signal: leaving.signal }));
  leaving.abort(new Error('gone'));
  const others = Promise.all([ask(own), ask(own)]);
  await expect(gone).rejects.toThrow('gone');
  await others;
  await ask(own);
  await own.close();
  expect(names.toSorted()).toEqual(['read_bounds', 'read_dirty_hours', 'read_dirty_hours', 'read_dirty_hours']);
});

it('dropped months are read from rollup rows, even if a watermark was set back', async () => {
  await raiseWatermarks([database.warehouse], 'hourly', { sealingUntil: MAY, sealedUntil: MAY });
  await setRetentionBound([database.warehouse], 'dropped', JUNE);
  const scope = { accounts: ['acme'], warehouse: database.warehouse };
  expect(await rollupStateReader(database.warehouse)(scope, { startTime: 0, endTime: JUNE })).toEqual({
    hourly: JUNE,
    daily: JUNE,
    dirtyHours: [],
    droppedBefore: JUNE,
  });
});
