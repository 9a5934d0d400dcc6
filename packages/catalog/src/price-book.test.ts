import { describe, expect, it } from '@jest/globals';
import { BILLING_DIMENSIONS, type BillingDimension } from './dimensions.js';
import { PriceBook, PriceBookError } from './price-book.js';

const DIMENSION = 'sandbox_compute_runtime_gbs';
const FROM = '1970-01-01T00:00:00Z';

interface Row {
  readonly billingDimension: BillingDimension;
  readonly effectiveFrom: string;
  readonly amount: string;
  readonly per?: string;
}

const price = (amount: string, effectiveFrom = FROM, per = '1'): Row => ({
  billingDimension: DIMENSION,
  effectiveFrom,
  amount,
  per,
});
const OTHERS: readonly Row[] = BILLING_DIMENSIONS.filter((dimension) => dimension !== DIMENSION).map(
  (billingDimension) => ({ ...price('1'), billingDimension }),
);

/** A book whose prices for DIMENSION are these; every other dimension has one. */
function book(rows: readonly unknown[], changes: Readonly<Record<string, unknown>> = {}): PriceBook {
  return new PriceBook({ version: 1, currency: 'USD', prices: [...rows, ...OTHERS], ...changes });
}

function faultOf(rows: readonly unknown[], changes?: Readonly<Record<string, unknown>>): string {
  try {
    book(rows, changes);
  } catch (error) {
    if (error instanceof PriceBookError) return error.message;
    throw error;
  }
  return 'no fault';
}

describe('a price book that cannot be used', () => {
  it('says where a price is wrong', () => {
    expect(faultOf([{ ...price('1'), amount: 'free' }])).toBe(
      'prices.0.amount must be a decimal string with at most 12 integer and 18 fraction digits',
    );
    expect(faultOf([price('1')], { overrides: [{ ...price('1'), accountId: 'a', effectiveFrom: 'today' }] })).toBe(
      'overrides.0.effectiveFrom must be an RFC 3339 timestamp in UTC',
    );
  });

  it('lists every fault', () => {
    const fault = faultOf([{ ...price('1'), amount: '-1', billingDimension: 'cpu' }], { currency: 'EUR' });
    expect(fault.split('; ')).toEqual([
      'currency must be "USD"',
      expect.stringMatching(/^prices\.0\.billingDimension must be one of sandbox_compute_runtime_gbs, /),
      expect.stringMatching(/^prices\.0\.amount must be a decimal string/),
    ]);
  });

  it.each([0.0000115, 0, 1])('has the number %p where a decimal string is wanted', (amount) => {
    expect(faultOf([{ ...price('1'), amount }])).toBe(
      'prices.0.amount must be a decimal string such as "0.0000115", not a number',
    );
    expect(faultOf([{ ...price('1'), per: amount }])).toMatch(/^prices\.0\.per must be a decimal string such as/);
  });

  it.each(['', '-1', '+1', '1e3', ' 1', '1.', '.5', '1234567890123', '0.1234567890123456789'])(
    'has the amount %j',
    (amount) => {
      expect(faultOf([price(amount)])).toMatch(/^prices\.0\.amount /);
    },
  );

  it.each(BILLING_DIMENSIONS)('has no price for %s', (dimension) => {
    const prices = [price('1'), ...OTHERS].filter(({ billingDimension }) => billingDimension !== dimension);
    expect(() => new PriceBook({ version: 1, currency: 'USD', prices })).toThrow(`no price for ${dimension}`);
  });

  it('has only an override for a dimension', () => {
    expect(
      () =>
        new PriceBook({
          version: 1,
          currency: 'USD',
          prices: OTHERS,
          overrides: [{ ...price('1'), accountId: 'acme' }],
        }),
    ).toThrow(`no price for ${DIMENSION}`);
  });

  it('has two prices from one date, however it is written', () => {
    expect(faultOf([price('1', '2025-01-01T00:00:00Z'), price('2', '2025-01-01T00:00:00.000+00:00')])).toBe(
      `prices: ${DIMENSION} has two prices from 2025-01-01T00:00:00.000Z; keep one`,
    );
  });

  it('has two overrides of one account from one date', () => {
    const override = { ...price('1'), accountId: 'acme' };
    expect(faultOf([price('1')], { overrides: [override, override] })).toBe(
      `overrides of acme: ${DIMENSION} has two prices from 1970-01-01T00:00:00.000Z; keep one`,
    );
  });

  it.each(['0', '0.000'])('has a price for %s units', (per) => {
    expect(faultOf([price('1', FROM, per)])).toBe(`prices: ${DIMENSION}: per must be above 0`);
  });

  it('has a unit that costs more than 1,000,000 USD', () => {
    expect(faultOf([price('1000000')])).toBe('no fault');
    expect(faultOf([price('0.001', FROM, '0.000000001')])).toBe('no fault');
    expect(faultOf([price('1000000.000000000000000001')])).toBe(
      `prices: ${DIMENSION}: a unit may cost at most 1000000 USD`,
    );
    expect(faultOf([price('1', FROM, '0.000000999')])).toMatch(/at most 1000000 USD/);
  });

  it.each([-1, 65_536, 1.5, '1', undefined])('has the version %p', (version) => {
    expect(faultOf([price('1')], { version })).toMatch(/^version /);
  });

  it('has a field that is not known', () => {
    expect(faultOf([price('1')], { discount: 1 })).toMatch(/discount/);
    expect(faultOf([{ ...price('1'), until: FROM }])).toMatch(/^prices\.0 .*until/);
  });

  it.each([[null], [[]], ['text'], [{}]])('is %j', (input) => {
    expect(() => new PriceBook(input)).toThrow(PriceBookError);
  });
});

describe('the price of an event', () => {
  const CHANGE = Date.UTC(2025, 5, 1);
  const dated = book([price('2', '2025-06-01T00:00:00Z'), price('3', '2026-01-01T00:00:00Z'), price('1')]);
  const amountAt = (prices: PriceBook, instant: number, account = 'acme') =>
    prices.priceAt(account, DIMENSION, instant)?.amount;

  it.each([
    ['just before a date', CHANGE - 1, '1'],
    ['at the date', CHANGE, '2'],
    ['just after the date', CHANGE + 1, '2'],
    ['long after the last date', Date.UTC(2099, 0), '3'],
    ['at the first date', 0, '1'],
  ])('%s is the one in force then', (_, instant, amount) => {
    expect(amountAt(dated, instant)).toBe(amount);
  });

  it('does not exist before the first date', () => {
    expect(amountAt(book([price('1', '2025-06-01T00:00:00Z')]), CHANGE - 1)).toBeUndefined();
  });

  it('is the account’s own before the general one, even if that is newer', () => {
    const overridden = book([price('1'), price('9', '2025-09-01T00:00:00Z')], {
      overrides: [{ ...price('0.5', '2025-06-01T00:00:00Z'), accountId: 'acme' }],
    });
    expect(amountAt(overridden, Date.UTC(2025, 11))).toBe('0.5');
    expect(amountAt(overridden, Date.UTC(2025, 11), 'other')).toBe('9');
  });

  it('is the general one while the account’s own is not yet in force', () => {
    const overridden = book([price('1')], {
      overrides: [{ ...price('0.5', '2025-06-01T00:00:00Z'), accountId: 'acme' }],
    });
    expect(amountAt(overridden, CHANGE - 1)).toBe('1');
    expect(amountAt(overridden, CHANGE)).toBe('0.5');
  });

  it('is the account’s own only for the dimensions that it names', () => {
    const overridden = book([price('1')], { overrides: [{ ...price('0.5'), accountId: 'acme' }] });
    expect(overridden.priceAt('acme', 'volume_storage_gbs', CHANGE)?.amount).toBe('1');
  });

  it('is per one unit if the book does not say', () => {
    const { per: _, ...row } = price('2');
    expect(book([row]).priceAt('acme', DIMENSION, 0)).toMatchObject({ amount: '2', per: '1' });
  });
});

describe('the canonical text of a book', () => {
  const rows = [price('1'), price('2.50', '2025-06-01T00:00:00Z')];
  const overrides = [
    { ...price('3'), accountId: 'acme' },
    { ...price('4'), accountId: 'zeta' },
  ];
  const text = book(rows, { overrides }).canonicalText;

  it('does not depend on the order of rows or members', () => {
    const shuffled = [...rows, ...OTHERS].reverse().map((row) => Object.fromEntries(Object.entries(row).reverse()));
    const other = new PriceBook({ overrides: [...overrides].reverse(), prices: shuffled, currency: 'USD', version: 1 });
    expect(other.canonicalText).toBe(text);
  });

  it('does not depend on how a decimal or a date is written, nor on a default', () => {
    const { per: _, ...first } = { ...rows[0], amount: '01.000' };
    const second = { ...rows[1], amount: '2.5', per: '1.0', effectiveFrom: '2025-06-01T00:00:00.000+00:00' };
    expect(book([first, second], { overrides }).canonicalText).toBe(text);
  });

  it.each([
    ['amount', { amount: '2.51' }],
    ['per', { per: '2' }],
    ['effectiveFrom', { effectiveFrom: '2025-06-01T00:00:00.001Z' }],
  ])('changes with an %s', (_, change) => {
    expect(book([rows[0], { ...rows[1], ...change }], { overrides }).canonicalText).not.toBe(text);
  });

  it('changes with an override', () => {
    expect(book(rows).canonicalText).not.toBe(text);
    expect(book(rows, { overrides: [overrides[0], { ...overrides[1], accountId: 'beta' }] }).canonicalText).not.toBe(
      text,
    );
  });

  it('does not change with the version, which only names the prices', () => {
    expect(book(rows, { overrides, version: 2 }).canonicalText).toBe(text);
  });
});
