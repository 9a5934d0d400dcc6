import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE, PriceBook } from '@meterline/catalog';
import { select } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { insertRows } from '../clickhouse/connection.js';
import { PriceBookConflictError, readNewestPriceBookVersion, registerPriceBook } from './price-books.js';

const database = testDatabase();

/** A book of this version; `amount` is the price of one dimension. */
function book(version: number, amount = '1'): PriceBook {
  const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) =>
    price.billingDimension === 'job_compute_runtime_gbs' ? { ...price, amount } : price,
  );
  return new PriceBook({ ...DEFAULT_PRICE_BOOK_FILE, version, prices });
}

const register = (version: number, amount?: string) => registerPriceBook(database.shards, book(version, amount));

/** Two books under one version, as two processes leave them that registered at the same moment. */
async function conflict(version: number): Promise<void> {
  const rows = ['1', '2'].map((amount) => {
    const { canonicalText: canonical } = book(version, amount);
    return { version, checksum: createHash('sha256').update(canonical).digest('hex'), canonical };
  });
  await insertRows(database.warehouse, 'price_books', rows);
}

it('the newest price book has the highest version that belongs to one book', async () => {
  const newest = () => readNewestPriceBookVersion(database.warehouse);
  expect(await newest()).toBeUndefined();
  for (const version of [0, 12, 9]) await register(version);
  await register(12);
  await conflict(13);
  expect(await newest()).toBe(12);
});

it('a price book keeps its prices under its version, and may be registered again, also by eight processes at once', async () => {
  await Promise.all(Array.from({ length: 8 }, () => register(65_535)));
  await register(65_535);
  await register(1, '2');
  const query = 'SELECT DISTINCT canonical FROM price_books WHERE version = 65535';
  expect(await select(database.warehouse, query)).toEqual([{ canonical: book(65_535).canonicalText }]);
});

it('a price book is rejected and not stored if its version has other prices', async () => {
  await register(3);
  const message = 'price book version 3 is already in use with other prices; raise "version" in the price book';
  await expect(register(3, '2')).rejects.toThrow(new PriceBookConflictError(message));
  const query = 'SELECT DISTINCT canonical FROM price_books WHERE version = 3';
  expect(await select(database.warehouse, query)).toHaveLength(1);
});

it('two price books are never accepted under one version, even at the same moment', async () => {
  for (let version = 100; version < 120; version += 1) {
    const outcomes = await Promise.allSettled([register(version, '1'), register(version, '2')]);
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeLessThan(2);
  }
});

it('two price books that were registered under one version at the same moment are both rejected, even if one clock was earlier', async () => {
  await conflict(200);
  for (const amount of ['1', '2']) await expect(register(200, amount)).rejects.toThrow(PriceBookConflictError);
});
