import { describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE, PriceBook, type PriceBookFile } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { CostChanges, repricedEvent, requirePrice } from './repricing.js';

const SANDBOX = 'sandbox_compute_runtime_gbs';
const NOON = Date.UTC(2026, 0, 1, 12);

/** The built-in book with another price of one dimension. */
function book(version: number, amount: string, effectiveFrom = '1970-01-01T00:00:00Z'): PriceBook {
  const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) =>
    price.billingDimension === SANDBOX ? { ...price, amount, effectiveFrom } : price,
  );
  const overrides: PriceBookFile['overrides'] = [
    { accountId: 'special', billingDimension: SANDBOX, effectiveFrom: '1970-01-01T00:00:00Z', amount: '0' },
  ];
  return new PriceBook({ ...DEFAULT_PRICE_BOOK_FILE, version, prices, overrides });
}

const EVENT = pricedEvent({
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  usage: 3_000_000_001n,
  timestamp: NOON,
  revision: 7,
  cost: 34_500_000n,
});

describe('an event under another price book', () => {
  it('keeps what its producer owns, and has the next price revision and the exact cost', () => {
    // 3.000000001 × 0.00002 = 0.00006000000002, half-even at 12 decimals
    expect(repricedEvent(EVENT, book(4, '0.00002'))).toEqual({
      ...EVENT,
      cost: 60_000_000n,
      priceRevision: 1,
      priceBook: 4,
    });
  });

  it('stays as it is when its cost is right already, whatever its book', () => {
    const repriced = repricedEvent(EVENT, book(4, '0.00002'));
    expect(repriced && repricedEvent(repriced, book(5, '0.00002'))).toBeUndefined();
  });

  it('has the price that is in force for its account', () => {
    expect(repricedEvent({ ...EVENT, accountId: 'special' }, book(4, '1'))).toMatchObject({ cost: 0n });
  });

  it('that is older than the first price is an error that names it', () => {
    const late = book(4, '1', '2026-01-01T12:00:00.001Z');
    expect(() => repricedEvent(EVENT, late)).toThrow(
      'the price book has no price for sandbox_compute_runtime_gbs at 2026-01-01T12:00:00Z, the time of event ' +
        '0190c5e4-7b1a-7def-8abc-0123456789ab; add an earlier price to the book, or begin later with --from',
    );
    expect(requirePrice(late, 'acme', SANDBOX, { ...EVENT, timestamp: NOON + 1 })).toMatchObject({ amount: '1' });
  });

  it('cannot be re-priced more often than there are price revisions', () => {
    expect(() => repricedEvent({ ...EVENT, priceRevision: 65_535 }, book(4, '1'))).toThrow('re-priced 65535 times');
  });
});

describe('what re-pricing changes in money', () => {
  it('adds up exactly, in the order of the catalog, zero where nothing changes', () => {
    const table = new CostChanges();
    table.add('job_compute_runtime_gbs', 1n, 1n);
    table.add(SANDBOX, 10n ** 33n, 10n ** 33n + 1n);
    table.add(SANDBOX, 5n, 2n);
    expect(table.byDimension()).toEqual([
      {
        billingDimension: SANDBOX,
        events: 2,
        changed: 2,
        before: '1000000000000000000000.000000000005',
        after: '1000000000000000000000.000000000003',
        difference: '-0.000000000002',
      },
      {
        billingDimension: 'job_compute_runtime_gbs',
        events: 1,
        changed: 0,
        before: '0.000000000001',
        after: '0.000000000001',
        difference: '0',
      },
    ]);
    expect(table.total()).toEqual({
      billingDimension: 'total',
      events: 3,
      changed: 2,
      before: '1000000000000000000000.000000000006',
      after: '1000000000000000000000.000000000004',
      difference: '-0.000000000002',
    });
  });

  it('of nothing is a total of zero', () => {
    expect(new CostChanges().byDimension()).toEqual([]);
    expect(new CostChanges().total()).toMatchObject({ events: 0, before: '0', after: '0', difference: '0' });
  });
});
