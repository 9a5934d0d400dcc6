/**
 * An answer in pages, and which rollup rows it may be read from. A first page is computed and nothing is kept of it. Its cursor
 * holds a digest of the whole answer, so the second page can tell whether what it computes is still that answer; if it is, all
 * groups are stored, ranked, and this page and those after it are slices of what was stored. If events have changed the answer,
 * the walk ends with `cursor_expired`. Source: DESIGN section 6, "Paging"; docs/decisions/0022.
 */
import { createHash } from 'node:crypto';
import type { Principal } from '@meterline/api';
import {
  type Grouping,
  type MetricsQuery,
  type QueryScope,
  type ReadRollupState,
  readMetrics,
  readStoredMetrics,
  type StoredPage,
  storeMetrics,
} from '@meterline/warehouse';
import { z } from 'zod';
import { cursorExpired, orStorageUnavailable } from '../http/errors.js';
import type { MetricsRequest } from './request.js';
import { whileEventsLast } from './rollup-state.js';
import type { StoredGroups } from './stored-groups.js';

export interface MetricsPagesOptions {
  readonly readRollupState: ReadRollupState;
  readonly storedGroups: StoredGroups;
  readonly clock: () => Date;
}

const digits = z.string().regex(/^\d{1,20}$/);

/** Where the next page begins: in which answer, and after which group. */
export const pagePosition = z.object({
  resultId: z.uuid(),
  /** When the first page was computed, in epoch milliseconds. */
  askedAt: z.number(),
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

export class MetricsPages {
  readonly #options: MetricsPagesOptions;

  constructor(options: MetricsPagesOptions) {
    this.#options = options;
  }

  /**
   * @param query what the pages of one result have in common, as text
   * @throws ApiError `storage_unavailable`, `query_limit_exceeded`, `events_dropped`
   */
  async first(scope: QueryScope, query: string, request: PageRequest): Promise<MetricsPage> {
    const { readRollupState, clock } = this.#options;
    const { accounts, warehouse } = scope;
    const askedAt = clock().getTime();
    const known = await orStorageUnavailable(readRollupState(scope, request.window));
    const { answer, rollups } = await orStorageUnavailable(
      whileEventsLast(warehouse, request.window, known, async (rollups) => ({
        answer: await readMetrics(warehouse, { ...request, accounts, rollups }),
        rollups,
      })),
    );
    const { digest, newest_block: newestBlock } = answer.mark;
    const { totalGroups } = answer;
    const resultId = resultIdOf(query, digest);
    const sealed = { hourly: rollups.hourly, daily: rollups.daily };
    return pageOf(answer, { resultId, askedAt, sealed, digest, newestBlock, totalGroups, after: 0 });
  }

  /**
   * @param principal who stores the result, if it is not stored yet
   * @throws ApiError `storage_unavailable`, `query_limit_exceeded`, `cursor_expired`, `too_many_stored_groups`
   */
  async next(
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
    const { storedGroups } = this.#options;
    await storedGroups.requireRoom(principal, position.totalGroups);
    // Hours that have been marked as dirty since are read from the events, like those that were already.
    const { dirtyHours } = await orStorageUnavailable(this.#options.readRollupState(scope, request.window));
    // First without what was inserted since. That also leaves out a void or a revision that the first page had seen, if
    // nothing newer was part of its answer; then everything there is gives the same answer, as long as nothing came since.
    for (const asOf of [{ asOf: position.newestBlock }, {}]) {
      const query: MetricsQuery = { ...request, accounts, rollups: { ...sealed, dirtyHours }, ...asOf };
      await orStorageUnavailable(storeMetrics(warehouse, result, query, digest));
      const page = await readPage();
      if (!page) continue;
      await storedGroups.add(principal, position.totalGroups);
      return pageOf(page, position);
    }
    throw cursorExpired();
  }
}

/**
 * The same query with the same result is stored once, for everybody who asks for its pages: a UUID of version 8 (RFC 9562, section 5.8).
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
