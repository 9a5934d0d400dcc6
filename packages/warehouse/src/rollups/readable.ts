/**
 * What a query may read: which rollup rows, and which events are still there. Read again for each query: the watermarks first,
 * *then* the dirty hours, then its statement; dirty-hours.ts says why no response lacks an acknowledged event then.
 */
import type { EpochMs, Window } from '@meterline/catalog';
import type { Accounts } from '../accounts.js';
import type { Warehouse } from '../clickhouse/connection.js';
import { readRetentionBounds } from '../retention.js';
import { readDirtyHours } from './dirty-hours.js';
import { NO_ROLLUPS, type ReadableRollups, readWatermarks } from './watermarks.js';

/** What a query is about, and the warehouse that answers it: its statements end when the client goes. */
export interface QueryScope {
  readonly accounts: Accounts;
  readonly warehouse: Warehouse;
}

/** Which rollup rows a query may read, and before when it may read nothing else. */
export interface RollupState extends ReadableRollups {
  /** Events before may be gone. */
  readonly droppedBefore: EpochMs;
}

export type ReadRollupState = (scope: QueryScope, window: Window) => Promise<RollupState>;

/** @param isOfEventsAlone the events answer alone, as far as there are any: slower, and what rollups are compared with */
export function rollupStateReader(isOfEventsAlone = false): ReadRollupState {
  return async ({ accounts, warehouse }, window) => {
    const [{ hourly, daily }, { droppedBefore }] = await Promise.all([
      readWatermarks(warehouse),
      readRetentionBounds(warehouse),
    ]);
    if (isOfEventsAlone) return stateSince(droppedBefore, NO_ROLLUPS);
    const dirtyHours = await readDirtyHours(warehouse, accounts, window);
    return stateSince(droppedBefore, { hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours });
  };
}

/**
 * Months are closed only when they are sealed, whatever a watermark that was set back says. A mark of such a month was left by a
 * worker that was frozen: its rollup rows are final.
 */
export function stateSince(droppedBefore: EpochMs, { hourly, daily, dirtyHours }: ReadableRollups): RollupState {
  return {
    hourly: Math.max(hourly, droppedBefore),
    daily: Math.max(daily, droppedBefore),
    dirtyHours: dirtyHours.filter(({ bucket }) => bucket >= droppedBefore),
    droppedBefore,
  };
}
