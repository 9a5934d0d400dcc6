import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { BUILT_IN_DIMENSION_NAMES } from './dimensions.js';
import { costOf, type Price, PriceBook, PriceBookError } from './price-book.js';

const DIMENSION = 'sandbox_compute_runtime_gbs';
const FROM = '1970-01-01T00:00:00Z';
const JUNE = Date.UTC(2025, 5, 1);

const price = (amount: string, effectiveFrom = FROM, per = '1') => ({
  billingDimension: DIMENSION,
  effectiveFrom,
  amount,
  per,
});
const OTHERS = BUILT_IN_DIMENSION_NAMES.filter((dimension) => dimension !== DIMENSION).map((billingDimension) => ({
  ...price('1'),
  billingDimension,
}));
const ofAcme = (row: object) => ({ ...row, accountId: 'acme' });

/** A book whose prices for DIMENSION are these; every other dimension has one. */
function book(rows: readonly unknown[], changes: Readonly<Record<string, unknown>> = {}): PriceBook {
  return new PriceBook({ version: 1, currency: 'USD', prices: [...rows, ...OTHERS], ...changes });
}

/** The price at an instant in June or before. */
function priceOf(prices: PriceBook, instant = 0, account = 'acme'): Price {
  const found = prices.priceAt(account, DIMENSION, instant);
  if (!found) throw new Error('no price');
  return found;
}

const DECIMAL = 'must be a decimal string with at most 12 integer and 18 fraction digits';
const NUMBER = 'must be a decimal string such as "0.0000115", not a number';

describe('a price book that cannot be used', () => {
  it.each<[string, readonly unknown[], Readonly<Record<string, unknown>>, string]>([
    ['a wrong amount', [price('free')], {}, `prices.0.amount ${DECIMAL}`],
    ...['', '-1', '+1', '1e3', ' 1', '1.', '.5', '1234567890123', '0.1234567890123456789'].map(
      (amount): [string, unknown[], Readonly<Record<string, unknown>>, string] => [
        `the amount ${amount}`,
        [price(amount)],
        {},
        `prices.0.amount ${DECIMAL}`,
      ],
    ),
    ['a number', [{ ...price('1'), amount: 0.0000115 }], {}, `prices.0.amount ${NUMBER}`],
    ['a number of units', [{ ...price('1'), per: 1 }], {}, `prices.0.per ${NUMBER}`],
    ['no date', [price('1', 'today')], {}, 'prices.0.effectiveFrom must be RFC 3339 in UTC'],
    ['no date either', [price('1', '2025-10-01 00:00')], {}, 'prices.0.effectiveFrom must be RFC 3339 in UTC'],
    ['no units', [price('1', FROM, '0.000')], {}, `prices: ${DIMENSION}: per must be above 0`],
    ['a price too high', [price('1000000.000000000000000001')], {}, 'a unit may cost at most 1000000 USD'],
    ['a price too high for a part', [price('1', FROM, '0.000000999')], {}, 'a unit may cost at most 1000000 USD'],
    ['an unknown member', [price('1')], { discount: 1 }, 'discount'],
    ['an unknown member of a price', [{ ...price('1'), until: FROM }], {}, 'until'],
    ...[-1, 65_536, 1.5, '1', undefined].map(
      (version): [string, unknown[], Readonly<Record<string, unknown>>, string] => [
        `the version ${version}`,
        [price('1')],
        { version },
        'version ',
      ],
    ),
    [
      'two prices from one date, however it is written',
      [price('1', '2025-01-01T00:00:00Z'), price('2', '2025-01-01T00:00:00.000+00:00')],
      {},
      `prices: ${DIMENSION} has two prices from 2025-01-01T00:00:00.000Z; keep one`,
    ],
    [
      'two overrides of one account from one date',
      [price('1')],
      { overrides: [ofAcme(price('1')), ofAcme(price('1'))] },
      `overrides of acme: ${DIMENSION} has two prices from 1970-01-01T00:00:00.000Z; keep one`,
    ],
    ['only an override for a dimension', [], { overrides: [ofAcme(price('1'))] }, `no price for ${DIMENSION}`],
    ['an override of nobody', [price('1')], { overrides: [price('1')] }, 'overrides.0.accountId must be an account'],
  ])('a price book with %s is rejected with the problem and its position', (_, rows, changes, problem) => {
    expect(() => book(rows, changes)).toThrow(PriceBookError);
    expect(() => book(rows, changes)).toThrow(problem);
  });

  it('a price book lists every error that it has', () => {
    expect(() => book([{ ...price('-1'), billingDimension: 'cpu' }], { currency: 'EUR' })).toThrow(
      `currency must be "USD"; prices.0.billingDimension must be one of ${BUILT_IN_DIMENSION_NAMES.join(', ')}; prices.0.amount ${DECIMAL}`,
    );
  });

  it.each(BUILT_IN_DIMENSION_NAMES)('a price book must have a price for %s', (dimension) => {
    const prices = [price('1'), ...OTHERS].filter(({ billingDimension }) => billingDimension !== dimension);
    expect(() => book([], { prices })).toThrow(`no price for ${dimension}`);
  });

  it.each([[null], [[]], ['text'], [{}]])('a price book is not %j', (input) => {
    expect(() => new PriceBook(input)).toThrow(PriceBookError);
  });

  it('a price book may have a unit that costs 1,000,000 USD', () => {
    for (const row of [price('1000000'), price('0.001', FROM, '0.000000001')]) book([row]);
  });
});

const CHANGING = [price('2', '2025-06-01T00:00:00Z'), price('3', '2026-01-01T00:00:00Z'), price('1')];
const OVERRIDDEN = {
  overrides: [ofAcme(price('0.5', '2025-06-01T00:00:00Z')), { ...price('7'), accountId: 'zeta' }],
};

describe('the price of an event', () => {
  it.each([
    ['at the first date', 0, 'other', '1'],
    ['just before a date', JUNE - 1, 'other', '1'],
    ['at the date', JUNE, 'other', '2'],
    ['long after the last date', Date.UTC(2099, 0), 'other', '3'],
    ['while the account’s own is not yet in force', JUNE - 1, 'acme', '1'],
    ['from when the account’s own is in force', JUNE, 'acme', '0.5'],
    ['of an account with its own, even if the general one is newer', Date.UTC(2099, 0), 'acme', '0.5'],
  ])('the price of an event %s is the one in force', (_, instant, account, amount) => {
    expect(priceOf(book(CHANGING, OVERRIDDEN), instant, account).amount).toBe(amount);
  });

  it('the price of an event is the account’s own only for the dimensions that it names, and none before the first', () => {
    expect(book(CHANGING, OVERRIDDEN).priceAt('acme', 'volume_storage_gbs', JUNE)?.amount).toBe('1');
    expect(book([price('1', '2025-06-01T00:00:00Z')]).priceAt('acme', DIMENSION, JUNE - 1)).toBeUndefined();
  });

  it('the price of an event is per one unit if the book does not say', () => {
    expect(priceOf(book([{ ...price('2'), per: undefined }]))).toMatchObject({ amount: '2', per: '1' });
  });
});

describe('the billing dimensions of an account', () => {
  const own = [ofAcme(price('0.50', '2025-06-01T00:00:00Z', '1000.0')), { ...price('7'), accountId: 'zeta' }];
  const prices = book([price('2', '2025-01-01T00:00:00Z')], { overrides: own });
  const at = (account: string, instant: number) => prices.billingDimensions(account, instant);
  const [of, jan] = [{ billingDimension: DIMENSION, resourceType: 'sandbox', unit: 'gbs' }, '2025-01-01T00:00:00Z'];

  it.each([
    ['acme', JUNE, { amount: '0.5', per: '1000', currency: 'USD', effectiveFrom: '2025-06-01T00:00:00Z' }],
    ['acme', JUNE - 1, { amount: '2', per: '1', currency: 'USD', effectiveFrom: jan }],
    ['other', JUNE, { amount: '2', per: '1', currency: 'USD', effectiveFrom: jan }],
    ['other', 0, undefined],
  ])(
    'the billing dimensions of %s at %d have its own price in force, in shortest form',
    (account, instant, expected) => {
      const found = at(account, instant);
      expect(found.map(({ billingDimension }) => billingDimension)).toEqual(BUILT_IN_DIMENSION_NAMES);
      expect(found[0]).toEqual({ ...of, ...(expected && { price: expected }) });
    },
  );

  it('a price book of billing dimensions has the same prices, and none from before them', () => {
    const read = PriceBook.ofBillingDimensions(at('acme', JUNE));
    expect(priceOf(read, JUNE, 'acme')).toEqual(priceOf(prices, JUNE, 'acme'));
    expect(read.priceAt('acme', DIMENSION, JUNE - 1)).toBeUndefined();
    expect(PriceBook.ofBillingDimensions(at('acme', 0)).billingDimensions('acme', JUNE)).toEqual(at('acme', 0));
  });
});

describe('the canonical text of a price book', () => {
  const rows = [price('1'), price('2.50', '2025-06-01T00:00:00Z')];
  const text = book(rows, OVERRIDDEN).canonicalText;

  it('the canonical text of a price book does not depend on order, notation, defaults or the version', () => {
    const reversed = (list: readonly object[]) =>
      [...list].reverse().map((row) => Object.fromEntries(Object.entries(row).reverse()));
    const prices = [
      { ...rows[0], per: undefined, amount: '01.000' },
      { ...rows[1], amount: '2.5', per: '1.0', effectiveFrom: '2025-06-01T00:00:00.000+00:00' },
      ...OTHERS,
    ];
    const other = book([], { overrides: reversed(OVERRIDDEN.overrides), prices: reversed(prices), version: 2 });
    expect(other.canonicalText).toBe(text);
  });

  it.each([
    ['amount', { amount: '2.51' }, OVERRIDDEN],
    ['number of units', { per: '2' }, OVERRIDDEN],
    ['date', { effectiveFrom: '2025-06-01T00:00:00.001Z' }, OVERRIDDEN],
    ['override', {}, {}],
    ['account', {}, { overrides: OVERRIDDEN.overrides.map((row) => ({ ...row, accountId: `${row.accountId}|` })) }],
  ])('the canonical text of a price book changes with an %s', (_, change, overrides) => {
    expect(book([rows[0], { ...rows[1], ...change }], overrides).canonicalText).not.toBe(text);
  });

  it('the canonical text of a price book is read back as the same prices', () => {
    const overrides = [{ ...price('3.10', FROM, '7'), accountId: 'a|b' }];
    const written = book(rows, { overrides });
    const read = PriceBook.fromCanonicalText(1, written.canonicalText);
    expect(read.canonicalText).toBe(written.canonicalText);
    expect(priceOf(read, JUNE, 'a|b')).toEqual(priceOf(written, JUNE, 'a|b'));
  });

  it('a registered price book of a release with fewer dimensions can be read', () => {
    const [currency, prices, overrides] = JSON.parse(book(rows).canonicalText);
    const fewer = JSON.stringify([currency, prices.slice(0, 1), overrides]);
    expect(PriceBook.fromCanonicalText(1, fewer).canonicalText).toBe(fewer);
  });
});

describe('the cost of an event', () => {
  const rational = (text: string): readonly [bigint, bigint] => {
    const [integer = '', fraction = ''] = text.split('.');
    return [BigInt(integer + fraction), 10n ** BigInt(fraction.length)];
  };
  const decimals = fc
    .tuple(fc.bigInt({ min: 0n, max: 10n ** 12n - 1n }), fc.integer({ min: 0, max: 18 }))
    .chain(([integer, places]) =>
      fc
        .bigInt({ min: 0n, max: 10n ** BigInt(places) - 1n })
        .map((fraction) => (places === 0 ? `${integer}` : `${integer}.${fraction.toString().padStart(places, '0')}`)),
    );

  it.each([
    ['one GB-second of a sandbox', 1_000_000_000n, '0.0000115', '1', 11_500_000n],
    ['a GB-month of a volume', 2_628_000_000_000_000n, '0.12', '2628000', 120_000_000_000n],
    ['one GB-second of a volume, which does not come out even', 1_000_000_000n, '0.12', '2628000', 45_662n],
    ['a tie, to the even neighbour below', 1_000_000_000n, '0.0000000000005', '1', 0n],
    ['a tie, to the even neighbour above', 1_000_000_000n, '0.0000000000015', '1', 2n],
    ['anything that is free', 10n ** 24n - 1n, '0', '1', 0n],
    ['the most that can be used at the highest price', 10n ** 24n - 1n, '1000000', '1', (10n ** 24n - 1n) * 10n ** 9n],
  ])('the cost of %s is exact', (_, usage, amount, per, cost) => {
    expect(costOf(usage, priceOf(book([price(amount, FROM, per)])))).toBe(cost);
  });

  it('the cost of an event is usage × amount ÷ per to the nearest 10^-12 USD, ties to even, rounded once', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 24n - 1n }), decimals, decimals, (usage, amount, per) => {
        const [amountTop, amountBottom] = rational(amount);
        const [perTop, perBottom] = rational(per);
        fc.pre(perTop > 0n && amountTop * perBottom <= 1_000_000n * perTop * amountBottom);
        const cost = costOf(usage, priceOf(book([price(amount, FROM, per)])));
        // cost / 10^12 against (usage / 10^9) × amount ÷ per, all brought to one denominator.
        const denominator = amountBottom * perTop;
        const distance = cost * denominator - usage * 1000n * amountTop * perBottom;
        const twice = 2n * (distance < 0n ? -distance : distance);
        expect(twice < denominator || (twice === denominator && cost % 2n === 0n)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
