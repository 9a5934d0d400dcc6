/**
 * An answer page by page. One that fits its first page is computed and forgotten; a larger one is stored once, ranked, and
 * every page of it, the first one too, is a slice of what was stored. Whether it will be large is known from the last
 * time; a guess that was wrong costs a second computation, or a small answer stored in vain. Source: DESIGN section 6, "Paging".
 */
import { randomUUID } from 'node:crypto';
import {
  countStoredGroups,
  filteredDimensions,
  type MetricsAnswer,
  type MetricsQuestion,
  readMetrics,
  readStoredMetrics,
  storeMetrics,
  type Warehouse,
} from '@meterline/warehouse';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { MetricsRequest } from '../contracts/metrics-parameters.js';
import { cursorExpired, tooManyStoredGroups } from '../http/errors.js';
import { storageAnswer } from '../http/outages.js';
import type { ReadSealed } from './seal-reader.js';

const MAX_SHAPES = 10_000;

export interface PagedMetricsOptions {
  readonly warehouse: Warehouse;
  readonly readSealed: ReadSealed;
  readonly clock: () => Date;
  /** The most groups that one caller may have stored in 24 hours. */
  readonly maxStoredGroups: number;
}

/** Where in which stored answer the next page begins. */
export const pagePosition = z.object({
  resultId: z.uuid(),
  storedAt: z.number(),
  /** The rank of the last group that was shown. */
  after: z.int(),
});
export type PagePosition = z.output<typeof pagePosition>;

export interface MetricsPage extends Pick<MetricsAnswer, 'groups' | 'totals'> {
  /** Undefined on the last page. */
  readonly next: PagePosition | undefined;
}

export class PagedMetrics {
  readonly #options: PagedMetricsOptions;
  /** How many groups questions of a shape had last: one that will be stored need not be computed before. */
  readonly #sizes = new LRUCache<string, number>({ max: MAX_SHAPES });

  constructor(options: PagedMetricsOptions) {
    this.#options = options;
  }

  /** @throws ApiError `storage_unavailable`, `too_many_stored_groups` */
  async first(caller: string, accountId: string, request: MetricsRequest): Promise<MetricsPage> {
    const { warehouse, readSealed } = this.#options;
    const { window, resolution, groupBy, filters, limit } = request;
    const sealed = await storageAnswer(readSealed());
    const question: MetricsQuestion = { accountId, window, resolution, groupBy, filters, limit, sealed };
    const shape = JSON.stringify([accountId, groupBy, filteredDimensions(question)]);
    const expected = this.#sizes.get(shape) ?? 0;
    if (expected > limit) return this.#store(caller, question, expected, shape);

    const answer = await storageAnswer(readMetrics(warehouse, question));
    if (answer.totalGroups > limit) return this.#store(caller, question, answer.totalGroups, shape);
    this.#sizes.set(shape, answer.totalGroups);
    return { ...answer, next: undefined };
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

  /** @param groups about how many there will be */
  async #store(caller: string, question: MetricsQuestion, groups: number, shape: string): Promise<MetricsPage> {
    const { warehouse, clock } = this.#options;
    const storedAt = clock().getTime();
    await this.#requireRoom(caller, groups);
    const result = { caller, resultId: randomUUID() };
    await storageAnswer(storeMetrics(warehouse, result, question));
    const answer = await storageAnswer(readStoredMetrics(warehouse, result, { ...question, after: 0 }));
    this.#sizes.set(shape, answer.totalGroups);
    return pageOf(answer, { resultId: result.resultId, storedAt, after: 0 });
  }

  async #requireRoom(caller: string, groups: number): Promise<void> {
    const { warehouse, maxStoredGroups } = this.#options;
    const stored = await storageAnswer(countStoredGroups(warehouse, caller));
    if (stored + groups > maxStoredGroups) throw tooManyStoredGroups(groups, maxStoredGroups);
  }
}

/** @param from where the page begins */
function pageOf(answer: MetricsAnswer, from: PagePosition): MetricsPage {
  const shown = from.after + answer.groups.length;
  return { ...answer, next: shown < answer.totalGroups ? { ...from, after: shown } : undefined };
}
