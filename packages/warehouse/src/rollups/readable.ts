/**
 * What a query may read: which rollup rows, and which events are still there. The watermarks are a reading of at most two seconds ago; the
 * dirty hours are read for each query, after them and before its statement. dirty-hours.ts says why no response lacks an acknowledged event.
 */
import type { EpochMs, Window } from '@meterline/catalog';
import type { Accounts } from '../accounts.js';
import { readBounds } from '../bounds.js';
import type { Warehouse } from '../clickhouse/connection.js';
import { readDirtyHours } from './dirty-hours.js';
import { NO_ROLLUPS, type ReadableRollups } from './watermarks.js';

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

/** How long a reading of the watermarks is used, from before it began; from half of that on it is replaced in the background. */
const REMEMBERED_MS = 2_000;

/**
 * @param own a connection that no request aborts: the watermarks that one request has read are used by others
 * @param isOfEventsAlone the events answer alone, as far as there are any: slower, and what rollups are compared with
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

/** The latest value, unless it is too old: then it is read. Callers at the same time share a reading. */
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
    // A failure is that of the next caller who needs the value.
    if (ageMs > maxAgeMs / 2) next().catch(() => undefined);
    return last.value;
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
