/** The price books that the ingest workers registered in ClickHouse. */
import { PriceBook } from '@meterline/catalog';
import { remembered } from '@meterline/service/waiting';
import { type ListedEvent, readNewestPriceBookVersion, readPriceBook, type Warehouse } from '@meterline/warehouse';
import { orStorageUnavailable } from '../http/errors.js';

const NEWEST_MAX_AGE_MS = 60_000;
const WITHOUT_PRICES = PriceBook.ofBillingDimensions([]);

export type KnownBooks = ReadonlyMap<number, PriceBook>;

/** Price books by version. A version means the same prices forever, so a book that was read is kept; there are few. */
export class PriceBooks {
  readonly #books = new Map<number, PriceBook>();
  /**
   * The newest book, or one without prices before there is any. Takes no permit: a request that is canceled must not fail those that
   * share its statement.
   * @throws ApiError `storage_unavailable`
   */
  readonly newest: () => Promise<PriceBook>;

  constructor(clock: () => Date, warehouse: Warehouse) {
    this.newest = remembered(clock, NEWEST_MAX_AGE_MS, () => orStorageUnavailable(this.#readNewest(warehouse))).read;
  }

  /** The price books that the events were priced with, as far as they are registered. */
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
