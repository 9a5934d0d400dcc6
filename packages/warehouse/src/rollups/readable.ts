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

/** The rollup rows that a query may read. Before `droppedBefore`, the query may read nothing but rollup rows. */
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

/** Caches the latest value for `maxAgeMs`. Concurrent callers share one read. */
function remembered<T>(read: () => Promise<T>, maxAgeMs: number): () => Promise<T> {
  let last: { readonly value: T; readonly since: number } | undefined;
  let current: Promise<T> | undefined;
  const refresh = async () => {
    const since = performance.now();
    const value = await read();
    last = { value, since };
    return value;
  };
  const next = () => {
    current ??= refresh().finally(() => {
      current = undefined;
    });
    return current;
  };
  return async () => {
    const ageMs = performance.now() - (last?.since ?? Number.NEGATIVE_INFINITY);
    if (!last || ageMs > maxAgeMs) return next();
    // Ignore a failed refresh: the next caller that needs a new value reads again and gets the error.
    if (ageMs > maxAgeMs / 2) next().catch(() => undefined);
    return last.value;
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
  if (!('startTime' in dirtyHours)) return dirtyHours.filter(({ bucket }) => bucket >= start);
  const { startTime, endTime } = dirtyHours;
  return endTime > start ? { startTime: Math.max(startTime, start), endTime } : [];
}
