/**
 * An answer in pages, and which cells it may be read from. A first page is computed and nothing is kept of it. Its cursor holds
 * a digest of the whole answer, so the second page can tell whether what it computes is still that answer; if it is, all
 * groups are stored, ranked, and this page and those after it are slices of what was stored. If events have changed the
 * answer, the walk ends with `cursor_expired`. Source: DESIGN section 6, "Paging"; docs/decisions/0022.
 */
import { randomUUID } from 'node:crypto';
import { shared } from '@meterline/service';
import {
  countStoredGroups,
  type Grouping,
  type MetricsQuestion,
  NOTHING_SEALED,
  readMetrics,
  readRetentionBounds,
  readStoredMetrics,
  readWatermarks,
  type StoredPage,
  storeMetrics,
  type Warehouse,
} from '@meterline/warehouse';
import { z } from 'zod';
import { cursorExpired, orStorageUnavailable, tooManyStoredGroups } from '../http/errors.js';
import { type KnownCells, whileEventsLast, withoutEventsBefore } from './kept-events.js';
import type { MetricsRequest } from './request.js';

export interface MetricsPagesOptions {
  readonly readSealed: ReadSealed;
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

/** Whose question it is, and the warehouse that answers it: its statements end when the client goes. */
export interface Asker {
  readonly accountId: string;
  readonly warehouse: Warehouse;
}

export class MetricsPages {
  readonly #options: MetricsPagesOptions;

  constructor(options: MetricsPagesOptions) {
    this.#options = options;
  }

  /** @throws ApiError `storage_unavailable`, `query_limit_exceeded`, `events_dropped` */
  async first({ accountId, warehouse }: Asker, request: PageRequest): Promise<MetricsPage> {
    const { readSealed, clock } = this.#options;
    const askedAt = clock().getTime();
    const cells = await orStorageUnavailable(readSealed());
    const { answer, sealed } = await orStorageUnavailable(
      whileEventsLast(warehouse, request.window, cells, async ({ hourly, daily }) => {
        const sealed = { hourly, daily };
        return { answer: await readMetrics(warehouse, { ...request, accountId, sealed }), sealed };
      }),
    );
    const { digest, newest_block: newestBlock } = answer.mark;
    const { totalGroups } = answer;
    const resultId = randomUUID();
    return pageOf(answer, { resultId, askedAt, sealed, digest, newestBlock, totalGroups, after: 0 });
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
    // First without what was inserted since. That also leaves out a void or a revision that the first page had seen, if
    // nothing newer was part of its answer; then everything there is gives the same answer, as long as nothing came since.
    for (const asOf of [{ asOf: position.newestBlock }, {}]) {
      const question: MetricsQuestion = { ...request, accountId, sealed, ...asOf };
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

/** Watermarks only rise, so an older one is never wrong: a little more is then read from the events. */
const SEALS_KEPT_MS = 1_000;

/** Which cells a question may read. */
export type ReadSealed = () => Promise<KnownCells>;

/** From the events alone, as far as there are any: slower, and what the cells are compared with. */
export function createEventsReader(warehouse: Warehouse): ReadSealed {
  return async () => withoutEventsBefore((await readRetentionBounds(warehouse)).droppedBefore, NOTHING_SEALED);
}

/** Reads the watermarks, in a statement of its own before each question, and keeps them for a moment. */
export function createSealReader(warehouse: Warehouse, clock: () => Date): ReadSealed {
  let kept = withoutEventsBefore(0, NOTHING_SEALED);
  let keptUntil = 0;
  const read = shared(async () => {
    const now = clock().getTime();
    const [{ hourly, daily }, { droppedBefore }] = await Promise.all([
      readWatermarks(warehouse),
      readRetentionBounds(warehouse),
    ]);
    kept = withoutEventsBefore(droppedBefore, { hourly: hourly.sealedUntil, daily: daily.sealedUntil });
    keptUntil = now + SEALS_KEPT_MS;
    return kept;
  });
  return async () => (clock().getTime() < keptUntil ? kept : read());
}
