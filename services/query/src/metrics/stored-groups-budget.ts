/** Limits how many groups one caller may have stored, also when many questions come at once. */
import { countStoredGroups, type Warehouse } from '@meterline/warehouse';
import { LRUCache } from 'lru-cache';
import { orStorageUnavailable } from '../http/errors.js';

export interface StoredGroupsBudgetOptions {
  readonly warehouse: Warehouse;
  /** The most groups that one caller may have stored in 24 hours. */
  readonly maxStoredGroups: number;
  readonly clock: () => Date;
}

/** How long a count is used: counting takes longer than reading a page. */
const COUNT_KEPT_MS = 60_000;
const MAX_CALLERS = 10_000;

/** What one caller has stored and is about to store, as far as this process knows. */
interface Ledger {
  reserved: number;
  /** In 24 hours by any process as of the last count, and by this one since. */
  stored: number;
  /** By this process, ever. */
  written: number;
  countedAt: number;
}

/**
 * Exact within one process: each question reserves before it stores, and what it stored is added when the reservation ends.
 * So the rows of the others are either counted or still reserved. A statement that failed may have stored its rows, or may
 * still do so: it counts as if it had. Processes do not share their counts: with several, the bound can be exceeded by what
 * the others store within a minute.
 */
export class StoredGroupsBudget {
  readonly #options: StoredGroupsBudgetOptions;
  readonly #ledgers = new LRUCache<string, Ledger>({ max: MAX_CALLERS });

  constructor(options: StoredGroupsBudgetOptions) {
    this.#options = options;
  }

  /**
   * @param least what there must be room for
   * @param wanted what may be stored where there is room, at least `least`
   * @param store gets how many groups it may store, and returns how many it stored
   * @returns undefined when there is no room
   * @throws ApiError `storage_unavailable`
   */
  async spend<T extends { readonly totalGroups: number }>(
    caller: string,
    { least, wanted }: { readonly least: number; readonly wanted: number },
    store: (most: number) => Promise<T>,
  ): Promise<T | undefined> {
    const ledger = this.#ledgerOf(caller);
    const byOthers = ledger.reserved;
    ledger.reserved += wanted;
    try {
      const room = () => this.#options.maxStoredGroups - byOthers - ledger.stored;
      // Never refuse on an old count: what was stored a day ago may be gone by now.
      if (this.#isOutdated(ledger) || least > room()) await this.#count(caller, ledger);
      if (least > room()) return undefined;
      return await this.#stored(ledger, Math.min(wanted, room()), store);
    } finally {
      ledger.reserved -= wanted;
    }
  }

  async #stored<T extends { readonly totalGroups: number }>(
    ledger: Ledger,
    most: number,
    store: (most: number) => Promise<T>,
  ): Promise<T> {
    let written = most;
    try {
      const answer = await store(most);
      written = answer.totalGroups;
      return answer;
    } finally {
      ledger.stored += written;
      ledger.written += written;
    }
  }

  #ledgerOf(caller: string): Ledger {
    const known = this.#ledgers.get(caller);
    if (known) return known;
    const ledger = { reserved: 0, stored: 0, written: 0, countedAt: Number.NEGATIVE_INFINITY };
    this.#ledgers.set(caller, ledger);
    return ledger;
  }

  #isOutdated({ countedAt }: Ledger): boolean {
    return this.#options.clock().getTime() - countedAt > COUNT_KEPT_MS;
  }

  /** What is written while it counts is added, whether it was counted or not: too high is safe, too low is not. */
  async #count(caller: string, ledger: Ledger): Promise<void> {
    const { warehouse, clock } = this.#options;
    const { written } = ledger;
    const countedAt = clock().getTime();
    const counted = await orStorageUnavailable(countStoredGroups(warehouse, caller));
    ledger.stored = counted + ledger.written - written;
    ledger.countedAt = countedAt;
  }
}
