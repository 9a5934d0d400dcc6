import { createHash } from 'node:crypto';
import { PriceBook } from '@meterline/catalog';
import { z } from 'zod';
import { insertRows, onEachShard, type Warehouse } from '../clickhouse/connection.js';
import type { Shards } from '../shards.js';

const REGISTERED_PRICE_BOOKS = `
SELECT DISTINCT checksum
FROM price_books
WHERE version = {version: UInt16}`;

export class PriceBookConflictError extends Error {
  override readonly name = 'PriceBookConflictError';
}

/**
 * Returns true if the book is already registered. Writes nothing.
 * @throws PriceBookConflictError if another book has the same version
 */
export async function checkPriceBook(warehouse: Warehouse, book: PriceBook): Promise<boolean> {
  const read = { name: 'read_price_books', query: REGISTERED_PRICE_BOOKS, query_params: { version: book.version } };
  const known = await warehouse.read(read, z.object({ checksum: z.string() }));
  if (known.some(({ checksum }) => checksum !== checksumOf(book))) {
    throw new PriceBookConflictError(
      `price book version ${book.version} is already in use with other prices; raise "version" in the price book`,
    );
  }
  return known.length > 0;
}

/**
 * Registers the price book on every shard. Each process writes its book before it reads for the last time. So if two processes register
 * different books under one version at the same moment, at least one process sees both books and fails. Afterwards neither book can be
 * used, because nothing shows which book came first: the row with the earlier time may become visible later.
 * @throws PriceBookConflictError
 */
export async function registerPriceBook({ all }: Shards, book: PriceBook): Promise<void> {
  const row = { version: book.version, checksum: checksumOf(book), canonical: book.canonicalText };
  const areRegistered = await onEachShard(all, (shard) => checkPriceBook(shard, book));
  const missing = all.filter((_, index) => !areRegistered[index]);
  await onEachShard(missing, (shard) => insertRows(shard, 'price_books', [row]));
  await onEachShard(all, (shard) => checkPriceBook(shard, book));
}

const NEWEST_PRICE_BOOK = `
SELECT version
FROM price_books
GROUP BY version
HAVING uniqExact(checksum) = 1
ORDER BY version DESC
LIMIT 1`;

/** Returns the highest version that exactly one book has, or undefined if there is none. */
export async function readNewestPriceBookVersion(warehouse: Warehouse): Promise<number | undefined> {
  const read = { name: 'read_newest_price_book', query: NEWEST_PRICE_BOOK };
  const [row] = await warehouse.read(read, z.object({ version: z.number() }));
  return row?.version;
}

const CANONICAL_PRICE_BOOK = `
SELECT canonical
FROM price_books
WHERE version = {version: UInt16}
LIMIT 1`;

export async function readPriceBook(warehouse: Warehouse, version: number): Promise<PriceBook | undefined> {
  const read = { name: 'read_price_book', query: CANONICAL_PRICE_BOOK, query_params: { version } };
  const [row] = await warehouse.read(read, z.object({ canonical: z.string() }));
  return row && PriceBook.fromCanonicalText(version, row.canonical);
}

function checksumOf({ canonicalText }: PriceBook): string {
  return createHash('sha256').update(canonicalText).digest('hex');
}
