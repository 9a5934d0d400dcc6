import { expect, it } from '@jest/globals';
import { addDecimals, divideDecimals, percentOf, roundDecimal, sumDecimals } from './amounts.js';
import { decimalText } from './decimal.js';

it('decimals add up to the last digit, where doubles do not', () => {
  expect(addDecimals(decimalText('0.1'), decimalText('0.2'))).toBe('0.3');
  const many = Array.from({ length: 1_000 }, () => decimalText('123456789012.000000000001'));
  expect(sumDecimals(many)).toBe('123456789012000.000000001');
  expect(sumDecimals([])).toBe('0');
});

it.each([
  ['1.005', 2, '1'],
  ['-1.015', 2, '-1.02'],
  ['-0.0049', 2, '0'],
  ['9.999', 2, '10'],
  ['12', 2, '12'],
])('a decimal of %s rounded to %d digits is %s, half to even', (amount, digits, expected) => {
  expect(roundDecimal(decimalText(amount), digits)).toBe(expected);
});

it.each([
  ['2', '3', 1, '66.7'],
  ['-1', '3', 1, '-33.3'],
  ['1', '-4', 0, '-25'],
  ['0', '5', 1, '0'],
  ['5', '0', 1, undefined],
  ['1', '1000000', 4, '0.0001'],
])('a decimal of %s is of %s in percent with %d digits %s', (part, whole, digits, expected) => {
  expect(percentOf(decimalText(part), decimalText(whole), digits)).toBe(expected);
});

it.each([
  ['2', '3', 4, '0.6667'],
  ['0.0414', '1', 12, '0.0414'],
  ['1', '8', 2, '0.12'],
  ['3', '8', 2, '0.38'],
  ['-1', '8', 2, '-0.12'],
  ['1', '-4', 2, '-0.25'],
  ['1', '0', 2, undefined],
])('a decimal of %s ÷ %s with %d digits is %s, half to even', (a, b, digits, expected) => {
  expect(divideDecimals(decimalText(a), decimalText(b), digits)).toBe(expected);
});
