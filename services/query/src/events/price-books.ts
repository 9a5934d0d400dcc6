import { PriceBook } from '@meterline/catalog';
import { remembered } from '@meterline/service/waiting';
import { type ListedEvent, readNewestPriceBookVersion, readPriceBook, type Warehouse } from '@meterline/warehouse';
import { orStorageUnavailable } from '../http/errors.js';

const NEWEST_MAX_AGE_MS = 60_000;
const WITHOUT_PRICES = PriceBook.ofBillingDimensions([]);

export type KnownBooks = ReadonlyMap<number, PriceBook>;

/** Caches price books from ClickHouse forever, because the prices of a version never change and there are few versions. */
export class PriceBooks {
  readonly #books = new Map<number, PriceBook>();
  /**
   * Returns the newest book, or a book without prices if no book is registered. Requests share the statement. It therefore needs no
   * request's permit, and is not canceled if a client disconnects.
   * @throws ApiError `storage_unavailable`
   */
  readonly newest: () => Promise<PriceBook>;

  constructor(clock: () => Date, warehouse: Warehouse) {
    this.newest = remembered(clock, NEWEST_MAX_AGE_MS, () => orStorageUnavailable(this.#readNewest(warehouse))).read;
  }

  async of(warehouse: Warehouse, events: readonly ListedEvent[]): Promise<KnownBooks> {
    const versions = new Set(
      events.flatMap(({ newest, replaced }) => [newest, ...replaced].map(({ price_book }) => price_book)),
    );
    for (const version of versions) await this.#find(warehouse, version);
    return this.#books;
  }

  async #readNewest(warehouse: Warehouse): Promise<PriceBook> {
    const version = await readNewestPriceBookVersion(warehouse);
    return (version !== undefined && (await this.#find(warehouse, version))) || WITHOUT_PRICES;
  }

  async #find(warehouse: Warehouse, version: number): Promise<PriceBook | undefined> {
    const book = this.#books.get(version) ?? (await readPriceBook(warehouse, version));
    if (book) this.#books.set(version, book);
    return book;
  }
}
