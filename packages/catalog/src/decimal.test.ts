import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readExactJson } from './api/exact-json.js';
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
  const LONG = ['0123456789'.repeat(40), '9876543210'.repeat(40)] as const;

  it.each([
    ['0', '0', ''],
    ['000.000', '0', ''],
    ['7', '7', ''],
    ['0012.3400', '12', '34'],
    ['0.000000001', '0', '000000001'],
    [`1${LONG[0]}.${LONG[1]}1`, `1${LONG[0]}`, `${LONG[1]}1`],
  ])('decimal text such as %s loses no digit, and keeps neither leading nor trailing zeros', (text, integer, rest) => {
    expect(parseDecimalText(text)).toEqual({ integer, fraction: rest });
  });

  it.each([
    ...['', ' ', ' 1', '1 ', '1\n', '-1', '-0', '+1', '1e3', '1E3', '1e-3', '.5', '5.', '.', '1.2.3', '1,5', '1_000'],
    ...['NaN', 'Infinity', '0x10', '１', '1.5n'],
  ])('decimal text is not %j', (text) => {
    expect(parseDecimalText(text)).toBeUndefined();
  });

  it('decimal text of millions of characters is read', () => {
    const zeros = '0'.repeat(5_000_000);
    const read = () => parseDecimalText(`1.${zeros}10`)?.fraction;
    // An expression that backtracks would take hours; this takes a tenth of a second.
    expect(runInNewContext('read()', { read }, { timeout: 120_000 })).toHaveLength(zeros.length + 1);
  });

  it('decimal text of a number has exactly the digits that JavaScript prints, and reads back as the same number', () => {
    const significant = (text: string) => text.replace(/^0+/, '').replace(/0+$/, '');
    fc.assert(
      fc.property(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), (value) => {
        const { integer, fraction: rest } = decimalOfNumber(value);
        const [mantissa = ''] = String(value).split('e');
        expect(parseDecimalText(rest === '' ? integer : `${integer}.${rest}`)).toEqual({ integer, fraction: rest });
        expect(Number(`${integer}.${rest}`)).toBe(value);
        expect(significant(integer + rest)).toBe(significant(mantissa.replace('.', '')));
      }),
      { examples: [[0], [0.1 + 0.2], [1e-7], [1e21], [Number.MIN_VALUE], [Number.MAX_VALUE]] },
    );
    expect(decimalOfNumber(-0)).toEqual({ integer: '0', fraction: '' });
  });

  it.each(['', '00', '01', '1.0', '1.', '.1', '0.10', '1e3', '+1', 'nan', '1\n'])(
    'decimal text in its shortest form is not %j',
    (text) => {
      expect(isDecimalText(text)).toBe(false);
    },
  );
});

describe('a scaled decimal', () => {
  it('a scaled decimal is the nearest value to any text, ties to even', () => {
    fc.assert(
      fc.property(digits(1, 15), fraction, fc.integer({ min: 0, max: 18 }), (integer, rest, scale) => {
        const value = scaled(rest === '' ? integer : `${integer}.${rest}`, scale);
        const numerator = BigInt(integer + rest) * 10n ** BigInt(scale);
        expect(isNearestEven(value, numerator, 10n ** BigInt(rest.length))).toBe(true);
      }),
      { examples: ['5', '15', '25', `5${'0'.repeat(40)}1`, `4${'9'.repeat(40)}`].map((end) => ['0', end, 0]) },
    );
  });

  it('a scaled decimal is divided to the nearest integer, ties to even', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 40n }), fc.bigInt({ min: 1n, max: 10n ** 20n }), (a, b) => {
        expect(isNearestEven(divideHalfEven(a, b), a, b)).toBe(true);
      }),
      { examples: [1n, 3n, 5n].map((a) => [a, 2n]) },
    );
  });

  it.each([
    [0n, '0'],
    [1n, '0.000000000001'],
    [131_000_123_456_789_012n, '131000.123456789012'],
    [1_000_000_000_000n, '1'],
    [-1_500_000_000_000n, '-1.5'],
    [-1n, '-0.000000000001'],
  ])('a scaled decimal of %p at scale 12 is printed as %s', (value, expected) => {
    expect(formatScaled(value, 12)).toBe(expected);
  });

  it('a scaled decimal is printed in its shortest form, which reads back as the same value', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 38n }), fc.integer({ min: 0, max: 18 }), (value, scale) => {
        expect(scaled(formatScaled(value, scale), scale)).toBe(value);
        expect([value, -value].every((each) => isDecimalText(formatScaled(each, scale)))).toBe(true);
      }),
      { examples: [[1200n, 0]] },
    );
  });
});

/** What the reader makes of a value: numbers as JavaScript writes them. */
function withTexts(value: unknown): unknown {
  if (typeof value === 'number') return JSON.stringify(value);
  if (Array.isArray(value)) return value.map(withTexts);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withTexts(member)]));
}

it.each([
  ['{"cost":123456789012345678901234.123456789012}', { cost: '123456789012345678901234.123456789012' }],
  ['[-0.10,5,0,1E+2]', ['-0.10', '5', '0', '1E+2']],
  [String.raw`{"1":"costs 1.5","\"2\\":"\\\"3\\\\"}`, { '1': 'costs 1.5', '"2\\': '\\"3\\\\' }],
])('exact JSON keeps every digit of a number, and leaves those of strings and names alone: %s', (text, value) => {
  expect(readExactJson(text)).toEqual(value);
});

it('exact JSON is what JSON.parse reads', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'binary' }), (text) => {
      expect(readExactJson(text)).toEqual(withTexts(JSON.parse(text)));
    }),
  );
});

it('readExactJson rejects every text that JSON.parse rejects', () => {
  const nearlyJson = fc.string({ unit: fc.constantFrom(...'"\\01e.,:[]{} -'), maxLength: 10 });
  const accepts = (read: (text: string) => unknown, text: string) => {
    try {
      read(text);
      return true;
    } catch (error) {
      return !(error instanceof SyntaxError);
    }
  };
  fc.assert(
    fc.property(nearlyJson, (text) => accepts(readExactJson, text) === accepts(JSON.parse, text)),
    // A number is not the name of a member.
    { numRuns: 1_000, examples: [['{1:2}'], ['{1 :2}']] },
  );
});
