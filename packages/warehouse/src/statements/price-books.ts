import { createHash } from 'node:crypto';
import type { PriceBook } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../client.js';
import { readRows } from '../statement.js';

const REGISTERED_PRICE_BOOK = `
SELECT checksum
FROM price_books
WHERE version = {version: UInt16}
ORDER BY registered_at, checksum
LIMIT 1`;

const registeredRow = z.object({ checksum: z.string() });

/** The book's version is taken by a book with other prices. */
export class PriceBookConflictError extends Error {
  override readonly name = 'PriceBookConflictError';
}

/**
 * Records that the book is in use. Two processes that bring different books under one version at the same moment both
 * write, then both read; the earlier one stays and the other is refused.
 * @throws PriceBookConflictError
 */
export async function registerPriceBook(warehouse: Warehouse, book: PriceBook): Promise<void> {
  const checksum = createHash('sha256').update(book.canonicalText).digest('hex');
  const read = { query: REGISTERED_PRICE_BOOK, query_params: { version: book.version } };
  const [known] = await readRows(warehouse, read, registeredRow);
  if (!known) {
    await warehouse.insert({
      table: 'price_books',
      values: [{ version: book.version, checksum, canonical: book.canonicalText }],
      format: 'JSONEachRow',
      columns: ['version', 'checksum', 'canonical'],
    });
  }
  const [first] = known ? [known] : await readRows(warehouse, read, registeredRow);
  if (first && first.checksum !== checksum) {
    throw new PriceBookConflictError(
      `price book version ${book.version} is already in use with other prices; raise "version" in the price book`,
    );
  }
}
