/**
 * Splits the result of a metrics query (groups, most expensive first) into pages. The first page is computed and not stored. Its cursor
 * contains a digest, which is a hash of the whole result. The request for the second page computes the result again. If the digest is still
 * the same, all groups are stored by rank, and the second and all later pages are read from the stored groups. If events have changed the
 * result, the request fails with `cursor_expired`. Source: docs/decisions/0022.
 */
import { createHash } from 'node:crypto';
import { ClientGone, callerKey, type Principal } from '@meterline/api';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR, type Window } from '@meterline/catalog';
import {
  type Grouping,
  type MetricsQuery,
  type QueryScope,
  type ReadRollupState,
  type RollupState,
  readBounds,
  readMetrics,
  readStoredMetrics,
  type StoredPage,
  stateSince,
  storeMetrics,
  type Warehouse,
} from '@meterline/warehouse';
import type { Redis } from 'ioredis';
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import { z } from 'zod';
import { cursorExpired, orStorageUnavailable, partOfHourDropped, tooManyStoredGroups } from '../http/errors.js';
import type { MetricsRequest } from './request.js';

export interface PagesDependencies {
  readonly readRollupState: ReadRollupState;
  readonly storedGroups: StoredGroups;
  readonly clock: () => Date;
}

const digits = z.string().regex(/^\d{1,20}$/);

/** The content of a cursor: which result it belongs to, and where the next page starts. */
export const pagePosition = z.object({
  resultId: z.uuid(),
  /** When the first page was computed, in epoch milliseconds. */
  requestedAt: z.number(),
  /** The watermarks of the first page: it read rollup rows (precomputed totals) only up to these times. */
  sealed: z.object({ hourly: z.number(), daily: z.number() }),
  digest: digits,
  newestBlock: digits,
  totalGroups: z.int(),
  /** The rank of the last group on the previous page. */
  after: z.int(),
});
export type PagePosition = z.output<typeof pagePosition>;

export type PageRequest = MetricsRequest & Required<Pick<Grouping, 'hidesWorkspace'>>;

export interface MetricsPage extends Pick<StoredPage, 'groups' | 'totals'> {
  readonly next: PagePosition | undefined;
}

/**
 * @param query the parameters that identify the query, as text. They are the same for all pages of a result.
 * @throws ApiError `storage_unavailable`, `query_limit_exceeded`, `events_dropped`
 */
export async function firstPage(
  { readRollupState, clock }: PagesDependencies,
  scope: QueryScope,
  query: string,
  request: PageRequest,
): Promise<MetricsPage> {
  const { accounts, warehouse } = scope;
  const requestedAt = clock().getTime();
  const known = await orStorageUnavailable(readRollupState(scope, request.window));
  const { response, rollups } = await orStorageUnavailable(
    retryIfEventsDropped(warehouse, request.window, known, async (rollups) => ({
      response: await readMetrics(warehouse, { ...request, accounts, rollups }),
      rollups,
    })),
  );
  const { digest, newest_block: newestBlock } = response.mark;
  const { totalGroups } = response;
  const resultId = resultIdOf(query, digest);
  const sealed = { hourly: rollups.hourly, daily: rollups.daily };
  return pageOf(response, { resultId, requestedAt, sealed, digest, newestBlock, totalGroups, after: 0 });
}

/**
 * @param principal the account and caller whose limit the stored groups count against, if this request stores the result
 * @throws ApiError `storage_unavailable`, `query_limit_exceeded`, `cursor_expired`, `too_many_groups`, `too_many_stored_groups`
 */
export async function nextPage(
  { readRollupState, storedGroups }: PagesDependencies,
  scope: QueryScope,
  principal: Principal,
  position: PagePosition,
  request: PageRequest,
): Promise<MetricsPage> {
  const { accounts, warehouse } = scope;
  const { digest, sealed, after } = position;
  const result = { owner: principal.account, resultId: position.resultId };
  const { groupBy, hidesWorkspace, limit } = request;
  const readPage = () =>
    orStorageUnavailable(readStoredMetrics(warehouse, result, { after, limit, groupBy, hidesWorkspace }));
  const stored = await readPage();
  if (stored) return pageOf(stored, position);
  const release = await storedGroups.reserve(principal, position.totalGroups);
  // Read the list of dirty hours again, because it may have grown since the first page. Rollup rows of dirty hours may lack events, so the
  // query reads the events of these hours.
  try {
    const { dirtyHours } = await orStorageUnavailable(readRollupState(scope, request.window));
    // The first attempt ignores events that were inserted after `newestBlock`, the newest insert that the first page counted. So later
    // events do not change the result. It gives another result than the first page if an event was voided (canceled) between `newestBlock` and
    // the first page. The second attempt then reads all events, which gives the same result if nothing was inserted since the first page.
    for (const asOf of [{ asOf: position.newestBlock }, {}]) {
      const query: MetricsQuery = { ...request, accounts, rollups: { ...sealed, dirtyHours }, ...asOf };
      await orStorageUnavailable(storeMetrics(warehouse, result, query, digest));
      const page = await readPage();
      if (page) return pageOf(page, position);
    }
    throw cursorExpired();
  } catch (error) {
    // Keep the reservation if the client disconnected, because the groups may have been stored.
    if (!(error instanceof ClientGone)) await release();
    throw error;
  }
}

/** Hashes the query and the digest, so that callers of an account share a stored result. Returns a version 8 UUID (RFC 9562, section 5.8). */
function resultIdOf(query: string, digest: string): string {
  const bytes = createHash('sha256')
    .update(JSON.stringify([query, digest]))
    .digest()
    .subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function pageOf({ groups, totals, totalGroups }: StoredPage, from: PagePosition): MetricsPage {
  const shown = from.after + groups.length;
  return { groups, totals, next: shown < totalGroups ? { ...from, after: shown } : undefined };
}

/**
 * Runs a query, and runs it again if old events were dropped (deleted) meanwhile, because its response may lack them. The second run reads
 * the dropped months from rollup rows, which have the same totals for whole hours. A window that starts or ends within an hour of a dropped
 * month would need events, so the query is rejected. retention.ts in packages/warehouse proves that no response lacks dropped events.
 * @throws ApiError `events_dropped` if the window includes a part of an hour whose events are dropped
 */
export async function retryIfEventsDropped<T>(
  warehouse: Warehouse,
  window: Window,
  state: RollupState,
  run: (state: RollupState) => Promise<T>,
): Promise<T> {
  rejectDroppedParts(window, state.droppedBefore);
  const result = await run(state);
  // Events of the current and the previous month are never dropped. A query may have read older events if the hourly watermark is old, if
  // it reads only events, if there are dirty hours, or if the window starts or ends within an hour.
  const mayReadOldEvents = state.hourly < Date.now() - NEVER_DROPPED_MS;
  const hasDirtyHours = 'windows' in state.dirtyHours || state.dirtyHours.length > 0;
  if (!mayReadOldEvents && !hasDirtyHours && partsOfHours(window, state.hourly).length === 0) return result;
  const { droppedBefore } = await readBounds(warehouse);
  if (droppedBefore <= state.droppedBefore) return result;
  return retryIfEventsDropped(warehouse, window, stateSince(droppedBefore, state), run);
}

/** The previous month began at least 28 days ago. One day less, in case the clocks of the servers differ. */
const NEVER_DROPPED_MS = 27 * MS_PER_DAY;

function rejectDroppedParts(window: Window, droppedBefore: EpochMs): void {
  const parameters = partsOfHours(window, droppedBefore);
  if (parameters.length > 0) throw partOfHourDropped(window, parameters, droppedBefore);
}

/** Returns the ends of the window that are not the start of an hour, if they are before `before` and after 1970, when events begin. */
function partsOfHours(window: Window, before: EpochMs): (keyof Window)[] {
  const ends = ['startTime', 'endTime'] as const;
  return ends.filter((end) => window[end] > 0 && window[end] < before && window[end] % MS_PER_HOUR !== 0);
}

const WINDOW_SECONDS = 24 * 60 * 60;
const CALLER_SHARE = 1 / 4;

/**
 * Limits how many groups are stored within 24 hours, per account and per caller. A caller may use a quarter of the account's limit, so that
 * one caller cannot use up the limit. The counters are in Redis, and all processes share them.
 */
export class StoredGroups {
  readonly #account: RateLimiterAbstract;
  readonly #caller: RateLimiterAbstract;

  constructor(redis: Redis, prefix: string, most: number) {
    const limiter = (name: string, points: number) => {
      const window = { points, duration: WINDOW_SECONDS, keyPrefix: `${prefix}:stored-groups:${name}` };
      const insuranceLimiter = new RateLimiterMemory(window);
      return new RateLimiterRedis({ ...window, storeClient: redis, rejectIfRedisNotReady: true, insuranceLimiter });
    };
    this.#account = limiter('account', most);
    this.#caller = limiter('caller', Math.floor(most * CALLER_SHARE));
  }

  /**
   * Reserves groups. Call this method before storing the groups.
   * @returns a function that gives the reservation back if no groups are stored
   * @throws ApiError `too_many_groups`; `too_many_stored_groups`, which includes when to retry
   */
  async reserve(principal: Principal, groups: number): Promise<() => Promise<void>> {
    const reserved: [RateLimiterAbstract, string][] = [];
    const release = async () => {
      for (const [limiter, key] of reserved) await limiter.reward(key, groups);
    };
    // Charge the caller's counter first. If the caller's limit is exceeded, the account's counter is never charged, not even for a moment,
    // so that other callers are not rejected.
    for (const [limiter, key] of [
      [this.#caller, callerKey(principal)],
      [this.#account, principal.account],
    ] as const) {
      const { consumedPoints, msBeforeNext } = await limiter.penalty(key, groups);
      reserved.push([limiter, key]);
      if (consumedPoints <= limiter.points) continue;
      await release();
      const seconds = Math.ceil(msBeforeNext / 1000);
      throw tooManyStoredGroups({ groups, most: limiter.points, isOfCaller: limiter === this.#caller, seconds });
    }
    return release;
  }
}
