/**
 * An answer page by page. One that fits its first page is computed and forgotten; a larger one is stored once, ranked, and
 * every page of it, the first one too, is a slice of what was stored. Source: DESIGN section 6, "Paging".
 */
import { randomUUID } from 'node:crypto';
import { type EpochMs, MS_PER_DAY } from '@meterline/catalog';
import {
  countStoredGroups,
  type MetricsAnswer,
  type MetricsQuestion,
  readMetrics,
  readStoredMetrics,
  storeMetrics,
  type Warehouse,
} from '@meterline/warehouse';
import { z } from 'zod';
import type { MetricsRequest } from '../contracts/metrics-parameters.js';
import { cursorExpired, tooManyStoredGroups } from '../http/errors.js';
import { storageAnswer } from '../http/outages.js';
import type { ReadSealed } from './seal-reader.js';

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

  constructor(options: PagedMetricsOptions) {
    this.#options = options;
  }

  /** @throws ApiError `storage_unavailable`, `too_many_stored_groups` */
  async first(caller: string, accountId: string, request: MetricsRequest): Promise<MetricsPage> {
    const { warehouse, readSealed, clock } = this.#options;
    const { window, resolution, groupBy, filters, limit } = request;
    const sealed = await storageAnswer(readSealed());
    const question: MetricsQuestion = { accountId, window, resolution, groupBy, filters, limit, sealed };
    const answer = await storageAnswer(readMetrics(warehouse, question));
    if (answer.totalGroups <= limit) return { ...answer, next: undefined };

    const storedAt = clock().getTime();
    await this.#requireRoom(caller, answer.totalGroups, storedAt);
    const resultId = randomUUID();
    await storageAnswer(storeMetrics(warehouse, { caller, resultId }, storedAt, question));
    return this.next(caller, { resultId, storedAt, after: 0 }, request);
  }

  /** @throws ApiError `storage_unavailable`, `cursor_expired` */
  async next(caller: string, position: PagePosition, { groupBy, limit }: MetricsRequest): Promise<MetricsPage> {
    const { resultId, after } = position;
    const answer = await storageAnswer(
      readStoredMetrics(this.#options.warehouse, { caller, resultId }, { after, limit, groupBy }),
    );
    if (answer.groups.length === 0) throw cursorExpired();
    const shown = after + answer.groups.length;
    return { ...answer, next: shown < answer.totalGroups ? { ...position, after: shown } : undefined };
  }

  async #requireRoom(caller: string, groups: number, now: EpochMs): Promise<void> {
    const { warehouse, maxStoredGroups } = this.#options;
    const stored = await storageAnswer(countStoredGroups(warehouse, caller, now - MS_PER_DAY));
    if (stored + groups > maxStoredGroups) throw tooManyStoredGroups(groups, maxStoredGroups);
  }
}
