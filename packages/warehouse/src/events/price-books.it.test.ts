import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE, PriceBook } from '@meterline/catalog';
import { createTestDatabase, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { insertRows } from '../clickhouse/connection.js';
import { PriceBookConflictError, registerPriceBook } from './price-books.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** A book of this version; `amount` is the price of one dimension. */
function book(version: number, amount = '1'): PriceBook {
  const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) =>
    price.billingDimension === 'job_compute_runtime_gbs' ? { ...price, amount } : price,
  );
  return new PriceBook({ ...DEFAULT_PRICE_BOOK_FILE, version, prices });
}

function registered(version: number): Promise<unknown[]> {
  const query = 'SELECT DISTINCT canonical FROM price_books WHERE version = {version: UInt16}';
  return select(database.warehouse, query, { version });
}

describe('registering a price book', () => {
  it('keeps its prices', async () => {
    await registerPriceBook(database.shards, book(1));
    expect(await registered(1)).toEqual([{ canonical: book(1).canonicalText }]);
  });

  it('again is no error', async () => {
    await registerPriceBook(database.shards, book(2));
    await expect(registerPriceBook(database.shards, book(2))).resolves.toBeUndefined();
  });

  it('is refused when its version has other prices, and leaves no trace', async () => {
    await registerPriceBook(database.shards, book(3));
    const refused = registerPriceBook(database.shards, book(3, '2'));
    await expect(refused).rejects.toThrow(PriceBookConflictError);
    await expect(refused).rejects.toThrow('price book version 3 is already in use with other prices; raise "version"');
    expect(await registered(3)).toHaveLength(1);
  });

  it('of other prices under another version is accepted', async () => {
    await registerPriceBook(database.shards, book(4));
    await expect(registerPriceBook(database.shards, book(5, '2'))).resolves.toBeUndefined();
  });

  it('by eight processes at once is accepted from all', async () => {
    const outcomes = Array.from({ length: 8 }, () => registerPriceBook(database.shards, book(65_535)));
    await expect(Promise.all(outcomes)).resolves.toHaveLength(8);
  });

  it('never accepts two books under one version, even at the same moment', async () => {
    for (let version = 100; version < 120; version += 1) {
      const outcomes = await Promise.allSettled([
        registerPriceBook(database.shards, book(version, '1')),
        registerPriceBook(database.shards, book(version, '2')),
      ]);
      expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeLessThan(2);
    }
  });

  it('refuses both books of a version that two have reached at the same moment, even if one clock was earlier', async () => {
    const rows = [book(200, '1'), book(200, '2')].map(({ canonicalText }) => ({
      version: 200,
      checksum: createHash('sha256').update(canonicalText).digest('hex'),
      canonical: canonicalText,
    }));
    await insertRows(database.warehouse, 'price_books', rows);
    for (const amount of ['1', '2']) {
      await expect(registerPriceBook(database.shards, book(200, amount))).rejects.toThrow(PriceBookConflictError);
    }
  });
});
