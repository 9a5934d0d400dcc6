/**
 * Determines which rollup rows (stored sums) a query may read. The query reads all other hours from the events. The watermarks, up to which
 * rows are computed, may be up to two seconds old. The dirty hours, whose rows may lack events, are read for each query, after the
 * watermarks and before the query's statement. dirty-hours.ts proves that no response lacks an acknowledged event.
 */
import type { EpochMs, Window } from '@meterline/catalog';
import type { Accounts } from '../accounts.js';
import { readBounds } from '../bounds.js';
import type { Warehouse } from '../clickhouse/connection.js';
import { readDirtyHours } from './dirty-hours.js';
import { type DirtyHours, NO_ROLLUPS, type ReadableRollups } from './watermarks.js';

/** The accounts of a query, and a connection that aborts the query's statements when the client disconnects. */
export interface QueryScope {
  readonly accounts: Accounts;
  readonly warehouse: Warehouse;
}

/** The rollup rows that a query may read. Before `droppedBefore`, there are only rollup rows, because the events are dropped. */
export interface RollupState extends ReadableRollups {
  readonly droppedBefore: EpochMs;
}

export type ReadRollupState = (scope: QueryScope, window: Window) => Promise<RollupState>;

/** Maximum age of cached watermarks, counted from the start of the read. At half this age, they are refreshed in the background. */
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

/** Caches the result of `read`. Concurrent callers share a read, unless it began more than `maxAgeMs` ago and may hang. */
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
    // If this refresh fails, it is not reported. The next caller that needs a new value reads again and gets the error.
    if (performance.now() - last.since > maxAgeMs / 2) shared();
    return last.result;
  };
}

/**
 * Treats all hours before `droppedBefore` as sealed and not dirty. Months are dropped only after they were sealed, even if the watermarks
 * were reset since. If an hour there is marked as dirty, the mark comes from a suspended worker, and the hour's rollup rows are final.
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
