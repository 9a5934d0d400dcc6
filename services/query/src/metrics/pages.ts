/**
 * Splits a result into pages. A first page is computed and nothing is stored. Its cursor holds a digest of the whole result, so the request
 * for the second page can check whether the result is still the same. If so, all its groups are stored, ranked, and this page and all later
 * ones are slices of the stored groups. If events have changed the result, pagination ends with `cursor_expired`. Source: DESIGN section 6,
 * "Paging"; docs/decisions/0022.
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

/** The position of the next page: the result, and the last group of the previous page. */
export const pagePosition = z.object({
  resultId: z.uuid(),
  /** When the first page was computed, in epoch milliseconds. */
  requestedAt: z.number(),
  /** Up to when the first page could read rollup rows. */
  sealed: z.object({ hourly: z.number(), daily: z.number() }),
  digest: digits,
  newestBlock: digits,
  totalGroups: z.int(),
  /** The rank of the last group on the previous page. */
  after: z.int(),
});
export type PagePosition = z.output<typeof pagePosition>;

/** The query, and whether the caller may see workspaces. */
export type PageRequest = MetricsRequest & Required<Pick<Grouping, 'hidesWorkspace'>>;

export interface MetricsPage extends Pick<StoredPage, 'groups' | 'totals'> {
  /** Undefined on the last page. */
  readonly next: PagePosition | undefined;
}

/**
 * @param query identifies the query, equal for all pages of a result
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
    whileEventsLast(warehouse, request.window, known, async (rollups) => ({
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
 * @param principal charged for storing the result, if it is not stored yet
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
  // Hours marked as dirty since the first page are read from the events, like those that were dirty then.
  try {
    const { dirtyHours } = await orStorageUnavailable(readRollupState(scope, request.window));
    // The first attempt ignores everything inserted since the first page. It also ignores a void or a revision that the first page had
    // seen, if the first page contained no newer event. Then the second attempt, which reads everything, returns the same result if nothing
    // was inserted since.
    for (const asOf of [{ asOf: position.newestBlock }, {}]) {
      const query: MetricsQuery = { ...request, accounts, rollups: { ...sealed, dirtyHours }, ...asOf };
      await orStorageUnavailable(storeMetrics(warehouse, result, query, digest));
      const page = await readPage();
      if (page) return pageOf(page, position);
    }
    throw cursorExpired();
  } catch (error) {
    // If the client disconnected, the groups may have been stored all the same.
    if (!(error instanceof ClientGone)) await release();
    throw error;
  }
}

/** Returns the ID under which a query's result is stored once for all callers: a UUID of version 8 (RFC 9562, section 5.8). */
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
 * Runs a query, and runs it again if events that it may have read were dropped meanwhile. Months whose events are dropped are read from
 * rollup rows, exactly. A query for a part of such an hour needs the events, so it is rejected. See retention.ts in packages/warehouse
 * for why no response lacks events that are dropped meanwhile.
 * @throws ApiError `events_dropped` if the window includes a part of an hour whose events are dropped
 */
export async function whileEventsLast<T>(
  warehouse: Warehouse,
  window: Window,
  state: RollupState,
  run: (state: RollupState) => Promise<T>,
): Promise<T> {
  rejectDroppedParts(window, state.droppedBefore);
  const result = await run(state);
  // This month and the previous one are never dropped. Events of earlier months may have been read if the watermarks are old, or if the
  // query reads only events.
  const mayReadOldEvents = state.hourly < Date.now() - NEVER_DROPPED_MS;
  const hasDirtyHours = 'windows' in state.dirtyHours || state.dirtyHours.length > 0;
  if (!mayReadOldEvents && !hasDirtyHours && partsOfHours(window, state.hourly).length === 0) return result;
  const { droppedBefore } = await readBounds(warehouse);
  if (droppedBefore <= state.droppedBefore) return result;
  return whileEventsLast(warehouse, window, stateSince(droppedBefore, state), run);
}

/** The previous month began at least this long ago, with a day for clock differences. */
const NEVER_DROPPED_MS = 27 * MS_PER_DAY;

function rejectDroppedParts(window: Window, droppedBefore: EpochMs): void {
  const parameters = partsOfHours(window, droppedBefore);
  if (parameters.length > 0) throw partOfHourDropped(window, parameters, droppedBefore);
}

/** Returns the ends of the window that are within an hour, and after the start of all events but before `before`. */
function partsOfHours(window: Window, before: EpochMs): (keyof Window)[] {
  const ends = ['startTime', 'endTime'] as const;
  return ends.filter((end) => window[end] > 0 && window[end] < before && window[end] % MS_PER_HOUR !== 0);
}

const WINDOW_SECONDS = 24 * 60 * 60;
const CALLER_SHARE = 1 / 4;

/**
 * Limits how many groups are stored for later pages, per 24 hours: of an account, and of each caller a quarter of that, so that one caller
 * cannot use up the account's limit. The counters are in Redis and shared by all processes.
 */
export class StoredGroups {
  readonly #account: RateLimiterAbstract;
  readonly #caller: RateLimiterAbstract;

  /** @param most maximum number of stored groups per account and 24 hours */
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
   * Reserves groups. Call it before storing them.
   * @returns a function that releases the groups if none are stored
   * @throws ApiError `too_many_groups`; `too_many_stored_groups`, which includes when to retry
   */
  async reserve(principal: Principal, groups: number): Promise<() => Promise<void>> {
    const reserved: [RateLimiterAbstract, string][] = [];
    const release = async () => {
      for (const [limiter, key] of reserved) await limiter.reward(key, groups);
    };
    // Reserve from the account only if the caller's limit allows it, so that a rejected request does not block other callers meanwhile.
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
