import { createHash } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import { PriceBook } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../clickhouse/connection.js';
import { insertRows } from '../clickhouse/insert.js';
import type { Shards } from '../cluster/shards.js';

const REGISTERED_PRICE_BOOKS = `
SELECT DISTINCT checksum
FROM price_books
WHERE version = {version: UInt16}`;

const registeredRow = z.object({ checksum: z.string() });

/** The book's version is taken by a book with other prices. */
export class PriceBookConflictError extends Error {
  override readonly name = 'PriceBookConflictError';
}

/**
 * Checks whether the book may be used; writes nothing.
 * @returns whether it is registered already
 * @throws PriceBookConflictError
 */
export async function checkPriceBook(warehouse: Warehouse, book: PriceBook): Promise<boolean> {
  const read = { name: 'read_price_books', query: REGISTERED_PRICE_BOOKS, query_params: { version: book.version } };
  const known = await warehouse.read(read, registeredRow);
  if (known.some(({ checksum }) => checksum !== checksumOf(book))) {
    throw new PriceBookConflictError(
      `price book version ${book.version} is already in use with other prices; raise "version" in the price book`,
    );
  }
  return known.length > 0;
}

/**
 * Records that the book is in use, in every shard: an account's events are explained by its own shard. Each process writes before it reads for the last time, so of two that bring different
 * books under one version at the same moment at least one sees both and is refused. Nobody can know which came first: the
 * row with the earlier clock may become visible later. So the version then belongs to neither book.
 * @throws PriceBookConflictError
 */
export async function registerPriceBook({ whole, all }: Shards, book: PriceBook): Promise<void> {
  await checkPriceBook(whole, book);
  const row = { version: book.version, checksum: checksumOf(book), canonical: book.canonicalText };
  for (const shard of all) if (!(await checkPriceBook(shard, book))) await insertRows(shard, 'price_books', [row]);
  await checkPriceBook(whole, book);
}

const CANONICAL_PRICE_BOOK = `
SELECT canonical
FROM price_books
WHERE version = {version: UInt16}
LIMIT 1`;

const HANDSHAKE_MS = 1_000;

/** The registered book of this version; undefined when there is none. */
export async function readPriceBook(warehouse: Warehouse, version: number): Promise<PriceBook | undefined> {
  // Every shard has it, so one that is away, or hangs, is not needed.
  const settings: ClickHouseSettings = {
    skip_unavailable_shards: 1,
    connections_with_failover_max_tries: '1',
    handshake_timeout_ms: HANDSHAKE_MS,
  };
  const read = { name: 'read_price_book', query: CANONICAL_PRICE_BOOK, query_params: { version }, settings };
  const [row] = await warehouse.read(read, z.object({ canonical: z.string() }));
  return row && PriceBook.fromCanonicalText(version, row.canonical);
}

function checksumOf({ canonicalText }: PriceBook): string {
  return createHash('sha256').update(canonicalText).digest('hex');
}
