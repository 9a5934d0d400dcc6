import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  decimalOfNumber,
  divideHalfEven,
  formatScaled,
  isDecimalText,
  parseDecimalText,
  toScaled,
  USAGE_SCALE,
} from './decimal.js';

/** Whether `rounded` is numerator ÷ denominator to the nearest integer, ties to even: a definition, not an algorithm. */
function isNearestEven(rounded: bigint, numerator: bigint, denominator: bigint): boolean {
  const distance = rounded * denominator - numerator;
  const twice = 2n * (distance < 0n ? -distance : distance);
  return twice < denominator || (twice === denominator && rounded % 2n === 0n);
}

const digits = (minLength: number, maxLength: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength, maxLength }).map((list) => list.join(''));
/** Fractions that often are, or are close to, a tie at nine decimals. */
const fraction = fc.oneof(
  digits(0, 30),
  digits(9, 9).map((kept) => `${kept}5`),
  fc.tuple(digits(9, 9), digits(0, 12)).map(([kept, rest]) => `${kept}5000${rest}`),
);

function scaled(text: string, scale = USAGE_SCALE): bigint {
  const parsed = parseDecimalText(text);
  if (!parsed) throw new Error(`${text} is not plain decimal text`);
  return toScaled(parsed, scale);
}

describe('decimal text', () => {
  it.each(['0', '00', '7', '007', '1.5', '1.50', '0.000000001', '999999999999999.999999999'])('accepts %j', (text) => {
    expect(parseDecimalText(text)).toBeDefined();
  });

  it.each([
    ...['', ' ', ' 1', '1 ', '1\n', '-1', '-0', '+1', '1e3', '1E3', '1e-3', '.5', '5.', '.', '1.2.3', '1,5', '1_000'],
    ...['NaN', 'Infinity', '0x10', '１', '1.5n'],
  ])('refuses %j', (text) => {
    expect(parseDecimalText(text)).toBeUndefined();
  });

  it('keeps neither leading nor trailing zeros', () => {
    expect(parseDecimalText('0012.3400')).toEqual({ integer: '12', fraction: '34' });
    expect(parseDecimalText('000.000')).toEqual({ integer: '0', fraction: '' });
  });

  it('loses no digit of a very long text', () => {
    const integer = `1${'0123456789'.repeat(40)}`;
    const fractionText = `${'9876543210'.repeat(40)}1`;
    expect(parseDecimalText(`${integer}.${fractionText}`)).toEqual({ integer, fraction: fractionText });
  });

  it('reads a text of millions of characters', () => {
    const zeros = '0'.repeat(5_000_000);
    const read = () => parseDecimalText(`1.${zeros}10`)?.fraction;
    // An expression that backtracks would take hours; this takes a tenth of a second.
    expect(runInNewContext('read()', { read }, { timeout: 120_000 })).toHaveLength(zeros.length + 1);
  });
});

describe('a JSON number', () => {
  it.each([
    [-0, '0', ''],
    [0.1 + 0.2, '0', '30000000000000004'],
    [1e-7, '0', '0000001'],
    [1e21, '1000000000000000000000', ''],
    [Number.MIN_VALUE, '0', `${'0'.repeat(323)}5`],
  ])('%p means the decimal that JavaScript prints for it', (value, integer, fractionText) => {
    expect(decimalOfNumber(value)).toEqual({ integer, fraction: fractionText });
  });

  it('has, written out, exactly the digits that JavaScript prints, and reads back as the same number', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), (value) => {
        const { integer, fraction: fractionText } = decimalOfNumber(value);
        const significant = (text: string) => text.replace(/^0+/, '').replace(/0+$/, '');
        const [mantissa = ''] = String(value).split('e');
        expect(Number(`${integer}.${fractionText}`)).toBe(value);
        expect(significant(integer + fractionText)).toBe(significant(mantissa.replace('.', '')));
      }),
    );
  });
});

describe('rounding to a scale', () => {
  it.each([
    ['0.0000000005', 0n],
    ['0.0000000015', 2n],
    ['0.0000000025', 2n],
    ['0.00000000050000000000000000000000000000001', 1n],
    ['0.00000000049999999999999999999999999999999', 0n],
  ])('%s at nine decimals is %s: ties go to the even neighbour', (text, expected) => {
    expect(scaled(text)).toBe(expected);
  });

  it('gives the nearest value, ties to even, for any text', () => {
    fc.assert(
      fc.property(digits(1, 15), fraction, fc.integer({ min: 0, max: 18 }), (integer, fractionText, scale) => {
        const value = scaled(fractionText === '' ? integer : `${integer}.${fractionText}`, scale);
        const numerator = BigInt(integer + fractionText) * 10n ** BigInt(scale);
        expect(isNearestEven(value, numerator, 10n ** BigInt(fractionText.length))).toBe(true);
      }),
    );
  });

  it('divides to the nearest integer, ties to even', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 40n }), fc.bigInt({ min: 1n, max: 10n ** 20n }), (a, b) => {
        expect(isNearestEven(divideHalfEven(a, b), a, b)).toBe(true);
      }),
    );
  });

  it.each([
    [1n, 2n, 0n],
    [3n, 2n, 2n],
    [5n, 2n, 2n],
    [5n, 10n, 0n],
    [15n, 10n, 2n],
    [1n, 3n, 0n],
    [2n, 3n, 1n],
    [0n, 7n, 0n],
  ])('%p ÷ %p is %p', (numerator, denominator, expected) => {
    expect(divideHalfEven(numerator, denominator)).toBe(expected);
  });
});

describe('printing', () => {
  it.each([
    [0n, '0'],
    [1n, '0.000000000001'],
    [23_000_000_000n, '0.023'],
    [131_000_123_456_789_012n, '131000.123456789012'],
    [1_000_000_000_000n, '1'],
    [-1_500_000_000_000n, '-1.5'],
    [-1n, '-0.000000000001'],
    [10n ** 38n - 1n, '99999999999999999999999999.999999999999'],
  ])('%p at twelve decimals is %s: shortest, without an exponent', (value, expected) => {
    expect(formatScaled(value, 12)).toBe(expected);
  });

  it('prints an integer at scale 0', () => {
    expect(formatScaled(1200n, 0)).toBe('1200');
  });

  it('gives canonical decimal text that reads back as the same value', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 38n }), fc.integer({ min: 0, max: 18 }), (value, scale) => {
        expect(scaled(formatScaled(value, scale), scale)).toBe(value);
        expect([value, -value].every((each) => isDecimalText(formatScaled(each, scale)))).toBe(true);
      }),
    );
  });
});

describe('canonical decimal text', () => {
  it.each(['0', '10', '0.1', '-0.1', '131000.123456789012'])('is %s', (text) => {
    expect(isDecimalText(text)).toBe(true);
  });

  it.each(['', '00', '01', '1.0', '1.', '.1', '0.10', '1e3', '+1', 'nan', '1\n'])('is not %j', (text) => {
    expect(isDecimalText(text)).toBe(false);
  });
});
