/**
 * An answer in pages, and which cells it may be read from. A first page is computed and nothing is kept of it. Its cursor holds
 * a digest of the whole answer, so the second page can tell whether what it computes is still that answer; if it is, all
 * groups are stored, ranked, and this page and those after it are slices of what was stored. If events have changed the
 * answer, the walk ends with `cursor_expired`. Source: DESIGN section 6, "Paging"; docs/decisions/0022.
 */
import { randomUUID } from 'node:crypto';
import {
  countStoredGroups,
  type Grouping,
  type MetricsQuestion,
  readMetrics,
  readStoredMetrics,
  type StoredPage,
  shardNumber,
  storeMetrics,
  type Warehouse,
} from '@meterline/warehouse';
import { z } from 'zod';
import { cursorExpired, orStorageUnavailable, tooManyStoredGroups } from '../http/errors.js';
import { whileEventsLast } from './kept-events.js';
import type { ReadCells } from './readable-cells.js';
import type { MetricsRequest } from './request.js';

export interface MetricsPagesOptions {
  readonly readCells: ReadCells;
  /** How many there are; 1 by default. */
  readonly shards?: number;
  /** The most groups that may be stored of one account's answers in 24 hours. */
  readonly maxStoredGroups: number;
  readonly clock: () => Date;
}

const digits = z.string().regex(/^\d{1,20}$/);

/** Where the next page begins: in which answer, and after which group. */
export const pagePosition = z.object({
  resultId: z.uuid(),
  /** When the first page was computed, in epoch milliseconds. */
  askedAt: z.number(),
  /** Which cells the first page could be read from. */
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

/** Of an answer that was computed now. */
export interface FirstPage extends MetricsPage {
  /** Whether the whole window lies below the `sealedUntil` that was known before it was computed. */
  readonly isSealed: boolean;
}

/** Whose question it is, and the warehouse that answers it: its statements end when the client goes. */
export interface Asker {
  readonly accountId: string;
  readonly warehouse: Warehouse;
  /** The account's `sealed` stamp as it was read for this question, before anything else; undefined if it was not. */
  readonly stamp?: string | undefined;
}

export class MetricsPages {
  readonly #options: MetricsPagesOptions;

  constructor(options: MetricsPagesOptions) {
    this.#options = options;
  }

  /** @throws ApiError `storage_unavailable`, `query_limit_exceeded`, `events_dropped` */
  async first(asker: Asker, request: PageRequest): Promise<FirstPage> {
    const { readCells, shards = 1, clock } = this.#options;
    const { accountId, warehouse } = asker;
    const askedAt = clock().getTime();
    const known = await orStorageUnavailable(readCells(asker, request.window));
    const { answer, cells } = await orStorageUnavailable(
      whileEventsLast(warehouse, request.window, known, shardNumber(accountId, shards), async (cells) => ({
        answer: await readMetrics(warehouse, { ...request, accountId, cells }),
        cells,
      })),
    );
    const { digest, newest_block: newestBlock } = answer.mark;
    const { totalGroups } = answer;
    const resultId = randomUUID();
    const sealed = { hourly: cells.hourly, daily: cells.daily };
    const page = pageOf(answer, { resultId, askedAt, sealed, digest, newestBlock, totalGroups, after: 0 });
    return { ...page, isSealed: request.window.endTime <= cells.hourly };
  }

  /** @throws ApiError `storage_unavailable`, `query_limit_exceeded`, `cursor_expired`, `too_many_stored_groups` */
  async next(asker: Asker, position: PagePosition, request: PageRequest): Promise<MetricsPage> {
    const { accountId, warehouse } = asker;
    const { resultId, digest, sealed, after } = position;
    const { groupBy, hidesWorkspace, limit } = request;
    const readPage = () =>
      orStorageUnavailable(
        readStoredMetrics(warehouse, { accountId, resultId }, { after, limit, groupBy, hidesWorkspace }),
      );
    const stored = await readPage();
    if (stored) return pageOf(stored, position);
    await this.#requireRoom(asker, position.totalGroups);
    // Hours that have been marked as stale since are read from the events, like those that were already.
    const { staleHours } = await orStorageUnavailable(this.#options.readCells(asker, request.window));
    // First without what was inserted since. That also leaves out a void or a revision that the first page had seen, if
    // nothing newer was part of its answer; then everything there is gives the same answer, as long as nothing came since.
    for (const asOf of [{ asOf: position.newestBlock }, {}]) {
      const question: MetricsQuestion = { ...request, accountId, cells: { ...sealed, staleHours }, ...asOf };
      await orStorageUnavailable(storeMetrics(warehouse, resultId, question, digest));
      const page = await readPage();
      if (page) return pageOf(page, position);
    }
    throw cursorExpired();
  }

  async #requireRoom({ accountId, warehouse }: Asker, groups: number): Promise<void> {
    const { maxStoredGroups } = this.#options;
    const stored = await orStorageUnavailable(countStoredGroups(warehouse, accountId));
    if (stored + groups > maxStoredGroups) throw tooManyStoredGroups(groups, maxStoredGroups);
  }
}

/** @param from where the page begins */
function pageOf({ groups, totals, totalGroups }: StoredPage, from: PagePosition): MetricsPage {
  const shown = from.after + groups.length;
  return { groups, totals, next: shown < totalGroups ? { ...from, after: shown } : undefined };
}
