import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, DEFAULT_PRICE_BOOK_FILE } from '@meterline/catalog';
import { loadPriceBook } from './price-book.js';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-price-book-'));
});
afterAll(() => rm(directory, { recursive: true }));

async function file(text: string): Promise<string> {
  const path = join(directory, 'book.json');
  await writeFile(path, text);
  return path;
}

it('loadPriceBook is the example book without a path', async () => {
  expect(await loadPriceBook(undefined)).toBe(DEFAULT_PRICE_BOOK);
});

it('loadPriceBook reads a book', async () => {
  const path = await file(JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, version: 9 }));
  expect(await loadPriceBook(path)).toMatchObject({ version: 9, canonicalText: DEFAULT_PRICE_BOOK.canonicalText });
});

it('loadPriceBook names a file that cannot be read as the caller does, and keeps the cause', async () => {
  const path = join(directory, 'absent.json');
  for (const [name, label] of [[`PRICE_BOOK ${path}`], ['the book of --book', 'the book of --book']] as const) {
    const message = expect.stringMatching(new RegExp(`^${name} cannot be used: .*ENOENT`));
    const error = { name: 'PriceBookError', message, cause: { code: 'ENOENT' } };
    await expect(loadPriceBook(path, label)).rejects.toMatchObject(error);
  }
});

it.each([
  ['is no JSON', 'version: 1', 'not valid JSON'],
  ['is no book', '[]', 'expected object'],
  [
    'lacks prices',
    JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, prices: [] }),
    'no price for sandbox_compute_runtime_gbs',
  ],
])('loadPriceBook names a file that %s', async (_, text, reason) => {
  const path = await file(text);
  const loading = loadPriceBook(path);
  await expect(loading).rejects.toMatchObject({ name: 'PriceBookError', message: expect.stringContaining(path) });
  await expect(loading).rejects.toThrow(reason);
});
