import { expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE, PriceBook, type PriceBookFile } from '@meterline/catalog';
import type { PricedEvent } from '@meterline/warehouse';
import { pricedEvent } from '../../../../test/harness/events.js';
import { CostChanges, repricedEvent } from './repricing.js';

const SANDBOX = 'sandbox_compute_runtime_gbs';
const NOON = Date.UTC(2026, 0, 1, 12);
const AT_NOON = '2026-01-01T12:00:00Z';

/** The built-in book with another price of one dimension. */
function book(amount: string, effectiveFrom = '1970-01-01T00:00:00Z'): PriceBook {
  const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) =>
    price.billingDimension === SANDBOX ? { ...price, amount, effectiveFrom } : price,
  );
  const overrides: PriceBookFile['overrides'] = [
    { accountId: 'special', billingDimension: SANDBOX, effectiveFrom: '1970-01-01T00:00:00Z', amount: '0' },
  ];
  return new PriceBook({ ...DEFAULT_PRICE_BOOK_FILE, version: 4, prices, overrides });
}

const EVENT = pricedEvent({
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  usage: 3_000_000_001n,
  timestamp: NOON,
  revision: 7,
  cost: 34_500_000n,
});
// 3.000000001 × 0.00002 = 0.00006000000002, half-even at 12 decimals
const REPRICED = { ...EVENT, cost: 60_000_000n, priceRevision: 1, priceBook: 4 };

it.each<[string, PricedEvent, PriceBook, PricedEvent | undefined]>([
  [
    'keeps what its producer owns, and has the next price revision and the exact cost',
    EVENT,
    book('0.00002'),
    REPRICED,
  ],
  [
    'stays when its cost is right already, whatever its book',
    { ...REPRICED, priceBook: 1 },
    book('0.00002'),
    undefined,
  ],
  [
    'has the price that is in force for its account',
    { ...EVENT, accountId: 'special' },
    book('1'),
    { ...REPRICED, accountId: 'special', cost: 0n },
  ],
  ['has a price that begins with it', EVENT, book('0.00002', AT_NOON), REPRICED],
])('an event under another price book %s', (_what, event, prices, expected) => {
  expect(repricedEvent(event, prices)).toEqual(expected);
});

it.each([
  [
    'is older than the first price',
    { ...EVENT, timestamp: NOON - 1 },
    'the price book has no price for sandbox_compute_runtime_gbs at 2026-01-01T11:59:59.999Z, the time of event ' +
      '0190c5e4-7b1a-7def-8abc-0123456789ab; add an earlier price to the book, or begin later with --from',
  ],
  ['has had every price revision there is', { ...EVENT, priceRevision: 65_535 }, 're-priced 65535 times'],
])('an event that %s is an error that names it', (_what, event, message) => {
  expect(() => repricedEvent(event, book('1', AT_NOON))).toThrow(message);
});

it('what re-pricing changes in money adds up exactly, in the order of the catalog, zero where nothing changes', () => {
  const changes = new CostChanges();
  changes.add('job_compute_runtime_gbs', 1n, 1n);
  changes.add(SANDBOX, 10n ** 33n, 10n ** 33n + 1n);
  changes.add(SANDBOX, 5n, 2n);
  const rows = [...changes.byDimension(), changes.total(), new CostChanges().total()];
  expect(rows.map((row) => Object.values(row))).toEqual([
    [SANDBOX, 2, 2, '1000000000000000000000.000000000005', '1000000000000000000000.000000000003', '-0.000000000002'],
    ['job_compute_runtime_gbs', 1, 0, '0.000000000001', '0.000000000001', '0'],
    ['total', 3, 2, '1000000000000000000000.000000000006', '1000000000000000000000.000000000004', '-0.000000000002'],
    ['total', 0, 0, '0', '0', '0'],
  ]);
});
