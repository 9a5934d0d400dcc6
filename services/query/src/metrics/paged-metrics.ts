/**
 * An answer page by page. One that fits its first page is computed and forgotten; a larger one is stored once, ranked, and
 * every page of it, the first one too, is a slice of what was stored. Whether it will be large is known from the last
 * time; a guess that was wrong costs another computation, or a small answer stored in vain. Source: DESIGN section 6, "Paging".
 */
import { randomUUID } from 'node:crypto';
import {
  filteredDimensions,
  type MetricsQuestion,
  readMetrics,
  readStoredMetrics,
  type StoredMetrics,
  storeMetrics,
} from '@meterline/warehouse';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { MetricsRequest } from '../contracts/metrics-parameters.js';
import { cursorExpired, tooManyStoredGroups } from '../http/errors.js';
import { storageAnswer } from '../http/outages.js';
import type { ReadSealed } from './seal-reader.js';
import { StoredGroupsBudget, type StoredGroupsBudgetOptions } from './stored-groups-budget.js';

const MAX_SHAPES = 10_000;
/** An answer may have grown by so much since its size was seen, and is stored all the same. */
const GROWTH = 1.25;

export interface PagedMetricsOptions extends StoredGroupsBudgetOptions {
  readonly readSealed: ReadSealed;
  readonly clock: () => Date;
}

/** Where in which stored answer the next page begins. */
export const pagePosition = z.object({
  resultId: z.uuid(),
  storedAt: z.number(),
  /** The rank of the last group that was shown. */
  after: z.int(),
});
export type PagePosition = z.output<typeof pagePosition>;

export interface MetricsPage extends Pick<StoredMetrics, 'groups' | 'totals'> {
  /** Undefined on the last page. */
  readonly next: PagePosition | undefined;
}

export class PagedMetrics {
  readonly #options: PagedMetricsOptions;
  readonly #budget: StoredGroupsBudget;
  /** How many groups questions of a shape had last: one that will be stored need not be computed before. */
  readonly #sizes = new LRUCache<string, number>({ max: MAX_SHAPES });

  constructor(options: PagedMetricsOptions) {
    this.#options = options;
    this.#budget = new StoredGroupsBudget(options);
  }

  /** @throws ApiError `storage_unavailable`, `too_many_stored_groups` */
  async first(caller: string, accountId: string, request: MetricsRequest): Promise<MetricsPage> {
    const { warehouse, readSealed, maxStoredGroups } = this.#options;
    const { window, resolution, groupBy, filters, limit } = request;
    const sealed = await storageAnswer(readSealed());
    const question: MetricsQuestion = { accountId, window, resolution, groupBy, filters, limit, sealed };
    const shape = JSON.stringify([accountId, groupBy, filteredDimensions(question)]);
    const expected = this.#sizes.get(shape) ?? 0;
    const guessed = expected > limit ? await this.#store(caller, question, expected, shape) : undefined;
    if (guessed) return guessed;

    const answer = await storageAnswer(readMetrics(warehouse, question));
    this.#sizes.set(shape, answer.totalGroups);
    const { groups, totals } = answer;
    if (totals) return { groups, totals, next: undefined };
    const stored = await this.#store(caller, question, answer.totalGroups, shape);
    if (!stored) throw tooManyStoredGroups(answer.totalGroups, maxStoredGroups);
    return stored;
  }

  /** @throws ApiError `storage_unavailable`, `cursor_expired` */
  async next(caller: string, position: PagePosition, { groupBy, limit }: MetricsRequest): Promise<MetricsPage> {
    const { resultId, after } = position;
    const answer = await storageAnswer(
      readStoredMetrics(this.#options.warehouse, { caller, resultId }, { after, limit, groupBy }),
    );
    if (answer.groups.length === 0) throw cursorExpired();
    return pageOf(answer, position);
  }

  /**
   * @param groups about how many there will be
   * @returns undefined when the caller has no room for so many, or when there are none or many more
   */
  async #store(
    caller: string,
    question: MetricsQuestion,
    groups: number,
    shape: string,
  ): Promise<MetricsPage | undefined> {
    const { warehouse, clock } = this.#options;
    const storedAt = clock().getTime();
    const result = { caller, resultId: randomUUID() };
    const size = { least: groups, wanted: Math.ceil(groups * GROWTH) };
    const answer = await this.#budget.spend(caller, size, async (most) => {
      await storageAnswer(storeMetrics(warehouse, result, question, most));
      return storageAnswer(readStoredMetrics(warehouse, result, { ...question, after: 0 }));
    });
    if (!answer || answer.totalGroups === 0) return undefined;
    this.#sizes.set(shape, answer.totalGroups);
    return pageOf(answer, { resultId: result.resultId, storedAt, after: 0 });
  }
}

/** @param from where the page begins */
function pageOf(answer: StoredMetrics, from: PagePosition): MetricsPage {
  const shown = from.after + answer.groups.length;
  return { ...answer, next: shown < answer.totalGroups ? { ...from, after: shown } : undefined };
}
