/**
 * Determines which rollup rows and events a query may read. The watermarks may be up to two seconds old. The dirty hours are read for each
 * query, after the watermarks and before the query's statement. dirty-hours.ts proves that no response lacks an acknowledged event.
 */
import type { EpochMs, Window } from '@meterline/catalog';
import type { Accounts } from '../accounts.js';
import { readBounds } from '../bounds.js';
import type { Warehouse } from '../clickhouse/connection.js';
import { readDirtyHours } from './dirty-hours.js';
import { type DirtyHours, NO_ROLLUPS, type ReadableRollups } from './watermarks.js';

/** The connection aborts the query's statements when the client disconnects. */
export interface QueryScope {
  readonly accounts: Accounts;
  readonly warehouse: Warehouse;
}

/** The rollup rows that a query may read. Usage before `droppedBefore` has only rollup rows, because its events are dropped. */
export interface RollupState extends ReadableRollups {
  readonly droppedBefore: EpochMs;
}

export type ReadRollupState = (scope: QueryScope, window: Window) => Promise<RollupState>;

/** Maximum age of cached watermarks, from before they were read. At half this age they are refreshed in the background. */
const REMEMBERED_MS = 2_000;

/**
 * @param own a connection that no request aborts, because requests share the cached watermarks
 * @param isOfEventsAlone reads only events, unless they are dropped: slower, but useful to check the rollups
 */
export function rollupStateReader(own: Warehouse, isOfEventsAlone = false): ReadRollupState {
  const bounds = remembered(() => readBounds(own), REMEMBERED_MS);
  return async ({ accounts, warehouse }, window) => {
    const { hourly, daily, droppedBefore } = await bounds();
    if (isOfEventsAlone) return stateSince(droppedBefore, NO_ROLLUPS);
    const dirtyHours = await readDirtyHours(warehouse, accounts, window);
    return stateSince(droppedBefore, { hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours });
  };
}

/** Returns values that were read at most `maxAgeMs` before the call. Concurrent callers share a read, but never an older one that hangs. */
function remembered<T>(read: () => Promise<T>, maxAgeMs: number): () => Promise<T> {
  interface Reading {
    readonly since: number;
    readonly value: Promise<T>;
  }
  let last: (Reading & { readonly result: T }) | undefined;
  let current: Reading | undefined;
  const isFresh = (reading: Reading) => performance.now() - reading.since <= maxAgeMs;
  const start = (): Reading => {
    const reading = { since: performance.now(), value: read() };
    const finish = () => {
      if (current === reading) current = undefined;
    };
    reading.value.then((result) => {
      finish();
      if (!last || last.since < reading.since) last = { ...reading, result };
    }, finish);
    current = reading;
    return reading;
  };
  return async () => {
    const shared = () => (current && isFresh(current) ? current : start());
    if (!last || !isFresh(last)) return shared().value;
    // If the refresh fails, the next caller that needs a new value reads again and gets the error.
    if (performance.now() - last.since > maxAgeMs / 2) shared();
    return last.result;
  };
}

/**
 * Treats everything before `droppedBefore` as sealed and clean. Months are dropped only after they were sealed, even if a watermark was set
 * back since. A mark there comes from a suspended worker, and the rollup rows of its hours are final.
 */
export function stateSince(droppedBefore: EpochMs, { hourly, daily, dirtyHours }: ReadableRollups): RollupState {
  return {
    hourly: Math.max(hourly, droppedBefore),
    daily: Math.max(daily, droppedBefore),
    dirtyHours: dirtySince(droppedBefore, dirtyHours),
    droppedBefore,
  };
}

function dirtySince(start: EpochMs, dirtyHours: DirtyHours): DirtyHours {
  if (!('windows' in dirtyHours)) return dirtyHours.filter(({ bucket }) => bucket >= start);
  const windows = dirtyHours.windows.filter(({ endTime }) => endTime > start);
  return {
    windows: windows.map(({ startTime, endTime }) => ({ startTime: Math.max(startTime, start), endTime })),
  };
}
