/** What one caller may have stored, however many questions come at once. */
import { countStoredGroups, type Warehouse } from '@meterline/warehouse';
import { storageAnswer } from '../http/outages.js';

export interface StoredGroupsBudgetOptions {
  readonly warehouse: Warehouse;
  /** The most groups that one caller may have stored in 24 hours. */
  readonly maxStoredGroups: number;
}

/**
 * Exact within one process: whoever stores reserves first and counts what is stored afterwards, so the rows of another
 * are either counted or still reserved. Processes do not know of each other's reservations: with several, questions
 * that come at the same moment may exceed the bound by what each process lets through.
 */
export class StoredGroupsBudget {
  readonly #options: StoredGroupsBudgetOptions;
  /** By caller; those who reserve nothing are not named. */
  readonly #reserved = new Map<string, number>();

  constructor(options: StoredGroupsBudgetOptions) {
    this.#options = options;
  }

  /**
   * @param least what there must be room for
   * @param wanted what may be stored where there is room, at least `least`
   * @param store is told how many groups it may store
   * @returns undefined when there is no room
   * @throws ApiError `storage_unavailable`
   */
  async spend<T>(
    caller: string,
    { least, wanted }: { readonly least: number; readonly wanted: number },
    store: (most: number) => Promise<T>,
  ): Promise<T | undefined> {
    const { warehouse, maxStoredGroups } = this.#options;
    const byOthers = this.#reserved.get(caller) ?? 0;
    this.#reserve(caller, wanted);
    try {
      const room = maxStoredGroups - byOthers - (await storageAnswer(countStoredGroups(warehouse, caller)));
      return least <= room ? await store(Math.min(wanted, room)) : undefined;
    } finally {
      this.#reserve(caller, -wanted);
    }
  }

  #reserve(caller: string, groups: number): void {
    const reserved = (this.#reserved.get(caller) ?? 0) + groups;
    if (reserved > 0) this.#reserved.set(caller, reserved);
    else this.#reserved.delete(caller);
  }
}
