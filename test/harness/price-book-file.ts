/** Price books of tests: the built-in one, with another price of a sandbox's compute. */
import { writeFile } from 'node:fs/promises';
import { DEFAULT_PRICE_BOOK_FILE } from '@meterline/catalog';

const SANDBOX = 'sandbox_compute_runtime_gbs';

/** Writes one. @param amount in USD per GB-second, as decimal text; 0.0000115 is built in */
export async function writePriceBook(
  path: string,
  version: number,
  amount: string,
  effectiveFrom = '1970-01-01T00:00:00Z',
): Promise<string> {
  const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) =>
    price.billingDimension === SANDBOX ? { ...price, amount, effectiveFrom } : price,
  );
  await writeFile(path, JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, version, prices }));
  return path;
}
