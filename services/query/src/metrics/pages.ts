/**
 * An answer in pages, and which cells it may be read from. If it fits the first page, it is computed and not kept. A larger
 * one is stored once, ranked, and all its pages, the first one too, are slices of what was stored. The last answer of the
 * same shape predicts whether this one will be large; a wrong guess costs a second computation, or stores a small answer for
 * nothing. Source: DESIGN section 6, "Paging".
 */
import { randomUUID } from 'node:crypto';
import {
  filteredDimensions,
  type MetricsQuestion,
  NOTHING_SEALED,
  readMetrics,
  readStoredMetrics,
  readWatermarks,
  type SealedUntil,
  type StoredMetrics,
  storeMetrics,
  type Warehouse,
} from '@meterline/warehouse';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { cursorExpired, orStorageUnavailable, tooManyStoredGroups } from '../http/errors.js';
import type { MetricsRequest } from './request.js';
import { StoredGroupsBudget, type StoredGroupsBudgetOptions } from './stored-groups-budget.js';

const MAX_SHAPES = 10_000;
/** An answer is still stored if it has grown by this factor since its size was last seen. */
const GROWTH = 1.25;

export interface MetricsPagesOptions extends StoredGroupsBudgetOptions {
  readonly readSealed: ReadSealed;
  readonly clock: () => Date;
}

/** Where the next page begins: in which stored answer, and after which group. */
export const pagePosition = z.object({
  resultId: z.uuid(),
  storedAt: z.number(),
  /** The rank of the last group on the page before. */
  after: z.int(),
});
export type PagePosition = z.output<typeof pagePosition>;

export interface MetricsPage extends Pick<StoredMetrics, 'groups' | 'totals'> {
  /** Undefined on the last page. */
  readonly next: PagePosition | undefined;
}

export class MetricsPages {
  readonly #options: MetricsPagesOptions;
  readonly #budget: StoredGroupsBudget;
  /** How many groups the last answer of a shape had: an answer that will be stored need not be computed first. */
  readonly #sizes = new LRUCache<string, number>({ max: MAX_SHAPES });

  constructor(options: MetricsPagesOptions) {
    this.#options = options;
    this.#budget = new StoredGroupsBudget(options);
  }

  /** @throws ApiError `storage_unavailable`, `too_many_stored_groups` */
  async first(caller: string, accountId: string, request: MetricsRequest): Promise<MetricsPage> {
    const { warehouse, readSealed, maxStoredGroups } = this.#options;
    const sealed = await orStorageUnavailable(readSealed());
    const question: MetricsQuestion = { ...request, accountId, sealed };
    const shape = JSON.stringify([accountId, question.groupBy, filteredDimensions(question)]);
    const expected = this.#sizes.get(shape) ?? 0;
    const guessed = expected > question.limit ? await this.#store(caller, question, expected, shape) : undefined;
    if (guessed) return guessed;

    const answer = await orStorageUnavailable(readMetrics(warehouse, question));
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
    const answer = await orStorageUnavailable(
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
      await orStorageUnavailable(storeMetrics(warehouse, result, question, most));
      return orStorageUnavailable(readStoredMetrics(warehouse, result, { ...question, after: 0 }));
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

/** Watermarks only rise, so an older one is never wrong: a little more is then read from the events. */
const SEALS_KEPT_MS = 1_000;

/** Which cells a question may read. */
export type ReadSealed = () => Promise<SealedUntil>;

/** Reads from the events alone: slower, and what the cells are compared with. */
export const readNothingSealed: ReadSealed = () => Promise.resolve(NOTHING_SEALED);

/** Reads the watermarks, in a statement of its own before each question, and keeps them for a moment. */
export function createSealReader(warehouse: Warehouse, clock: () => Date): ReadSealed {
  let kept: SealedUntil = NOTHING_SEALED;
  let keptUntil = 0;
  return async () => {
    const now = clock().getTime();
    if (now < keptUntil) return kept;
    const { hourly, daily } = await readWatermarks(warehouse);
    kept = { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
    keptUntil = now + SEALS_KEPT_MS;
    return kept;
  };
}
