/** What usage costs at a price of a book: exactly, and in doubles where those are exact. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { BILLING_DIMENSIONS } from './dimensions.js';
import { costOf, costOfInteger, type Price, PriceBook } from './price-book.js';

const DIMENSION = 'sandbox_compute_runtime_gbs';

/** As a book has it. */
function priceOf(amount: string, per: string): Price {
  const price = { effectiveFrom: '1970-01-01T00:00:00Z', amount, per };
  const prices = BILLING_DIMENSIONS.map((billingDimension) => ({ ...price, billingDimension }));
  const found = new PriceBook({ version: 1, currency: 'USD', prices }).priceAt('acme', DIMENSION, 0);
  if (!found) throw new Error('no price');
  return found;
}

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
    ['a million asynchronous requests', 1_000_000_000_000_000n, '0.20', '1000000', 200_000_000_000n],
    ['a GB-month of a volume', 2_628_000_000_000_000n, '0.12', '2628000', 120_000_000_000n],
    ['one GB-second of a volume, which does not come out even', 1_000_000_000n, '0.12', '2628000', 45_662n],
    ['a tie, to the even neighbour below', 1_000_000_000n, '0.0000000000005', '1', 0n],
    ['a tie, to the even neighbour above', 1_000_000_000n, '0.0000000000015', '1', 2n],
    ['nothing', 0n, '20', '730', 0n],
    ['anything that is free', 10n ** 24n - 1n, '0', '1', 0n],
    ['the most that can be used at the highest price', 10n ** 24n - 1n, '1000000', '1', (10n ** 24n - 1n) * 10n ** 9n],
  ])('for %s is exact', (_, usage, amount, per, cost) => {
    expect(costOf(usage, priceOf(amount, per))).toBe(cost);
  });

  it('is usage × amount ÷ per to the nearest 10^-12 USD, ties to even, rounded once', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 24n - 1n }), decimals, decimals, (usage, amount, per) => {
        const [amountTop, amountBottom] = rational(amount);
        const [perTop, perBottom] = rational(per);
        fc.pre(perTop > 0n && amountTop * perBottom <= 1_000_000n * perTop * amountBottom);
        const cost = costOf(usage, priceOf(amount, per));
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

describe('a cost in doubles', () => {
  /** Usages and ratios whose product lies on both sides of 2^53, and quotients next to an integer and a half. */
  const nearTheEdge = fc
    .tuple(fc.bigInt({ min: 1n, max: 2n ** 53n }), fc.bigInt({ min: 0n, max: 2n ** 54n }), fc.constantFrom(0n, 1n, 2n))
    .map(([denominator, target, above]) => ({
      denominator,
      usages: [target / denominator, target - (target % denominator) + above, target, target >> 1n, 2n ** 53n - 1n],
    }));
  const parts = fc.constantFrom(
    ...[1n, 2n, 3n, 9n, 23n, 1_000n, 2_000n, 13_140n, 58_400n, 2n ** 31n, 2n ** 53n, 10n ** 18n],
  );

  it('is the exact one, or none', () => {
    let exact = 0;
    fc.assert(
      fc.property(nearTheEdge, parts, parts, ({ denominator: large, usages }, numerator, small) => {
        for (const denominator of [large, small]) {
          const ratio = { numerator: Number(numerator), denominator: Number(denominator) };
          const price = { effectiveFrom: 0, amount: '', per: '', numerator, denominator, ratio };
          for (const usage of usages.filter((each) => each < 2n ** 53n)) {
            const cost = costOfInteger(Number(usage), price);
            if (cost === undefined) continue;
            exact += 1;
            expect(BigInt(cost)).toBe(costOf(usage, price));
          }
        }
      }),
      { numRuns: 3_000 },
    );
    expect(exact).toBeGreaterThan(3_000);
  });

  it.each([
    ['a day of a sandbox of 4 GB', 345_600n * 10n ** 9n, '0.0000115', '1'],
    ['a month of a volume of 100 GB', 262_800_000n * 10n ** 6n, '0.12', '2628000'],
  ])('is there for %s', (_, usage, amount, per) => {
    const inForce = priceOf(amount, per);
    expect(costOfInteger(Number(usage), inForce)).toBe(Number(costOf(usage, inForce)));
  });
});
