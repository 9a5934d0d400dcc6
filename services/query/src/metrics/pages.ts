/**
 * A result in pages, and which rollup rows it may be read from. A first page is computed and nothing is kept of it. Its cursor
 * holds a digest of the whole result, so the second page can tell whether what it computes is still that result; if it is, all
 * groups are stored, ranked, and this page and those after it are slices of what was stored. If events have changed the result,
 * paginating ends with `cursor_expired`. Source: DESIGN section 6, "Paging"; docs/decisions/0022.
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
  /** Which rollup rows may be read; read before each query. */
  readonly readRollupState: ReadRollupState;
  /** How many groups may be stored for later pages. */
  readonly storedGroups: StoredGroups;
  readonly clock: () => Date;
}

const digits = z.string().regex(/^\d{1,20}$/);

/** Where the next page begins: in which answer, and after which group. */
export const pagePosition = z.object({
  resultId: z.uuid(),
  /** When the first page was computed, in epoch milliseconds. */
  requestedAt: z.number(),
  /** Which rollup rows the first page could be read from. */
  sealed: z.object({ hourly: z.number(), daily: z.number() }),
  digest: digits,
  newestBlock: digits,
  totalGroups: z.int(),
  /** The rank of the last group on the page before. */
  after: z.int(),
});
export type PagePosition = z.output<typeof pagePosition>;

/** What is asked, and what the caller may see of it. */
export type PageRequest = MetricsRequest & Required<Pick<Grouping, 'hidesWorkspace'>>;

export interface MetricsPage extends Pick<StoredPage, 'groups' | 'totals'> {
  /** Undefined on the last page. */
  readonly next: PagePosition | undefined;
}

/**
 * @param query what the pages of one result have in common, as text
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
 * @param principal who stores the result, if it is not stored yet
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
  const giveBack = await storedGroups.take(principal, position.totalGroups);
  // Hours that have been marked as dirty since are read from the events, like those that were already.
  try {
    const { dirtyHours } = await orStorageUnavailable(readRollupState(scope, request.window));
    // First without what was inserted since. That also leaves out a void or a revision that the first page had seen, if
    // nothing newer was part of its response; then everything there is gives the same response, as long as nothing came since.
    for (const asOf of [{ asOf: position.newestBlock }, {}]) {
      const query: MetricsQuery = { ...request, accounts, rollups: { ...sealed, dirtyHours }, ...asOf };
      await orStorageUnavailable(storeMetrics(warehouse, result, query, digest));
      const page = await readPage();
      if (page) return pageOf(page, position);
    }
    throw cursorExpired();
  } catch (error) {
    // Whoever hangs up may have had them stored all the same.
    if (!(error instanceof ClientGone)) await giveBack();
    throw error;
  }
}

/**
 * The id under which the same query with the same result is stored once, for everybody: a UUID of version 8 (RFC 9562, section 5.8).
 */
function resultIdOf(query: string, digest: string): string {
  const bytes = createHash('sha256')
    .update(JSON.stringify([query, digest]))
    .digest()
    .subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** @param from where the page begins */
function pageOf({ groups, totals, totalGroups }: StoredPage, from: PagePosition): MetricsPage {
  const shown = from.after + groups.length;
  return { groups, totals, next: shown < totalGroups ? { ...from, after: shown } : undefined };
}

/**
 * Months whose events have been dropped are answered from rollup rows, to the last digit, and what only events could answer is
 * refused; why no response lacks events that are dropped meanwhile: retention.ts in packages/warehouse.
 *
 * Runs a query, and once more with what is known then if events that it may have read were dropped meanwhile.
 * @throws ApiError `events_dropped` where a part of an hour is asked for of such a month
 */
export async function whileEventsLast<T>(
  warehouse: Warehouse,
  window: Window,
  state: RollupState,
  run: (state: RollupState) => Promise<T>,
): Promise<T> {
  requireWholeHours(window, state.droppedBefore);
  const result = await run(state);
  // This month and the one before it are not dropped. With an old reading of the watermarks, or for a query of the events alone, events of
  // earlier months may have been read.
  const mayReadOldEvents = state.hourly < Date.now() - NEVER_DROPPED_MS;
  const hasDirtyHours = 'startTime' in state.dirtyHours || state.dirtyHours.length > 0;
  if (!mayReadOldEvents && !hasDirtyHours && partsOfHours(window, state.hourly).length === 0) return result;
  const { droppedBefore } = await readBounds(warehouse);
  if (droppedBefore <= state.droppedBefore) return result;
  return whileEventsLast(warehouse, window, stateSince(droppedBefore, state), run);
}

/** The current month and the one before it began at least so long ago, with a day for clocks that differ. */
const NEVER_DROPPED_MS = 27 * MS_PER_DAY;

function requireWholeHours(window: Window, droppedBefore: EpochMs): void {
  const parameters = partsOfHours(window, droppedBefore);
  if (parameters.length > 0) throw partOfHourDropped(window, parameters, droppedBefore);
}

/** Which ends of the window cut an hour in two that begins before the instant, and not before all events. */
function partsOfHours(window: Window, before: EpochMs): (keyof Window)[] {
  const ends = ['startTime', 'endTime'] as const;
  return ends.filter((end) => window[end] > 0 && window[end] < before && window[end] % MS_PER_HOUR !== 0);
}

const WINDOW_SECONDS = 24 * 60 * 60;
const CALLER_SHARE = 1 / 4;

/**
 * How many groups may be stored for later pages: in windows of 24 hours, of an account, and of one caller a quarter of that, so that
 * what one stores does not shut out the others. Counted in Redis for all processes together.
 */
export class StoredGroups {
  readonly #account: RateLimiterAbstract;
  readonly #caller: RateLimiterAbstract;

  /** @param most the most stored groups of an account in a window */
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
   * To be called before so many groups are stored.
   * @returns gives them back, if none are stored
   * @throws ApiError `too_many_groups`; `too_many_stored_groups`, which says when there is room
   */
  async take(principal: Principal, groups: number): Promise<() => Promise<void>> {
    const taken: [RateLimiterAbstract, string][] = [];
    const giveBack = async () => {
      for (const [limiter, key] of taken) await limiter.reward(key, groups);
    };
    // The account's only when the caller may: what is refused to one must not be in the way of another meanwhile.
    for (const [limiter, key] of [
      [this.#caller, callerKey(principal)],
      [this.#account, principal.account],
    ] as const) {
      const { consumedPoints, msBeforeNext } = await limiter.penalty(key, groups);
      taken.push([limiter, key]);
      if (consumedPoints <= limiter.points) continue;
      await giveBack();
      const seconds = Math.ceil(msBeforeNext / 1000);
      throw tooManyStoredGroups({ groups, most: limiter.points, isOfCaller: limiter === this.#caller, seconds });
    }
    return giveBack;
  }
}
