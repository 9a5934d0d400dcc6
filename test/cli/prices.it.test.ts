/** `meterline dimensions` and `estimate` with the prices of the real API. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE, PriceBook } from '@meterline/catalog';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import { NOW, startApi, type TestApi } from '../harness/api.js';
import { callerOf, type MeterlineOptions, runCommand } from './run-command.js';

const VOLUME = { billingDimension: 'volume_storage_gbs', per: '1000' } as const;
const BOOK = new PriceBook({
  ...DEFAULT_PRICE_BOOK_FILE,
  version: 7,
  prices: [...DEFAULT_PRICE_BOOK_FILE.prices, { ...VOLUME, amount: '8', effectiveFrom: '2098-01-01T00:00:00Z' }],
  overrides: [
    { ...VOLUME, accountId: 'acme', amount: '3.50', effectiveFrom: '2025-06-01T00:00:00Z' },
    { ...VOLUME, accountId: 'initech', amount: '0.000000000000000001', effectiveFrom: '2025-07-01T00:00:00Z' },
  ],
});

let api: TestApi;
let acme: Record<string, string>;
let initech: Record<string, string>;
let wide: Record<string, string>;
beforeAll(async () => {
  api = await startApi();
  await registerPriceBook(oneServer(api.dependencies.warehouse), BOOK);
  [acme, initech, wide] = await Promise.all([callerOf(api, 'acme'), callerOf(api, 'initech'), callerOf(api, 'wide')]);
});
afterAll(() => api.stop());

async function run(args: readonly string[], env = acme, options: MeterlineOptions = {}) {
  return runCommand(args, { env, ...options });
}

const lineOf = async (env: Record<string, string>, ...args: string[]) =>
  (await run(['dimensions', ...args], env)).stdout.split('\n').find((line) => line.startsWith('volume'));
const estimate = async (lines: readonly object[], env: Record<string, string>, ...args: string[]) =>
  run(['estimate', '--file', '-', '--json', ...args], env, {
    stdin: lines.map((line) => JSON.stringify({ ...line, billingDimension: VOLUME.billingDimension })).join('\n'),
  });

it('dimensions lists the prices in force for the account, and says which API they come from', async () => {
  const { stdout, stderr } = await run(['dimensions']);
  expect(stdout).toMatch(/^volume_storage_gbs +volume +GB-s +\$3\.50 per 1,000 GB-s +2025-06-01T00:00:00Z$/m);
  expect(stderr).toBe(`Prices in force now: acme at ${api.url} (environment: METERLINE_API_URL).\n`);
  expect(await lineOf(initech)).toContain('$0.000000000000000001 per 1,000 GB-s');
  // The book of a variable is perhaps not the one of this API.
  expect(await lineOf({ ...acme, PRICE_BOOK: 'none.json' })).toContain('$3.50');
  expect(JSON.parse((await run(['dimensions', '--json'])).stdout)[10]).toEqual({
    ...{ billingDimension: 'volume_storage_gbs', resourceType: 'volume', unit: 'gbs' },
    price: { amount: '3.5', per: '1000', currency: 'USD', effectiveFrom: '2025-06-01T00:00:00Z' },
  });
});

it('dimensions shows a price that is in force by the clock of the API alone', async () => {
  try {
    api.clock.now = new Date('2099-01-01T00:00:00Z');
    expect(await lineOf(wide)).toMatch(/\$8\.00 per 1,000 GB-s +2098-01-01T/);
  } finally {
    api.clock.now = NOW;
  }
});

it('estimate prices each item with the prices of its account', async () => {
  const operator = await callerOf(api, undefined, 'operator');
  const lines = [{ usage: 1000 }, { usage: 2000, accountId: 'wide' }, { usage: 1, timestamp: '2025-06-01T00:00:00Z' }];
  const { code, stdout } = await estimate(lines, operator, '--account', 'acme');
  // 3.5 + 2,000 × 0.12 / 2,628,000 + 0.0035
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, totalCost: '3.503591324201' });
});

it.each([
  ['an account of others', { usage: 1, accountId: 'wide' }, 3, 'Access denied'],
  [
    'a time before the price in force',
    { usage: 1, timestamp: '2025-05-31T23:59:59Z' },
    1,
    'known at 2025-05-31T23:59:59Z; use --book with a book that has one',
  ],
])('estimate does not guess the price of %s', async (_, line, code, reason) => {
  expect(await estimate([line], acme)).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(reason) });
});

it('estimate rejects a dimension that the API does not list, as wrong usage', async () => {
  const { code, stdout, stderr } = await run(['estimate', 'volume_storage=1']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toBe(
    'meterline: volume_storage=1: billingDimension must be a dimension from "meterline dimensions"; did you mean volume_storage_gbs?\n',
  );
});

it('dimensions fails when the API is away, and prints no other prices', async () => {
  const away = await run(['dimensions'], { ...acme, METERLINE_API_URL: 'http://127.0.0.1:1' });
  expect(away).toMatchObject({ code: 4, stdout: '', stderr: expect.stringContaining('cannot be reached') });
});
