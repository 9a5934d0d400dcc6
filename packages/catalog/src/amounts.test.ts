import { expect, it } from '@jest/globals';
import Big from 'big.js';
import {
  changeFrom,
  formatUsage,
  formatUsd,
  formatUsdExact,
  percentChangeText,
  priceText,
  shareText,
} from './amount-format.js';
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

it.each([
  ['0', '$0.00'],
  ['1234567.895', '$1,234,567.90'],
  ['0.01', '$0.01'],
  ['0.00994', '$0.0099'],
  ['0.00999', '$0.01'],
  ['0.0000115', '$0.000012'],
  ['0.000000000001', '$0.000000000001'],
  ['-0.004', '-$0.004'],
  ['-1234.5', '-$1,234.50'],
  ['999.999', '$1,000.00'],
])('money of %s reads %s', (amount, expected) => {
  expect(formatUsd(decimalText(amount))).toBe(expected);
});

it('what was calculated is shown in any form of text, or as it is', () => {
  expect([formatUsd(new Big('3.50')), formatUsd('3.50'), formatUsage('1.0', 'count')]).toEqual([
    '$3.50',
    '$3.50',
    '1 event',
  ]);
  expect([shareText('0.00', '4'), shareText('1.0', new Big(4))]).toEqual(['0.0%', '25.0%']);
});

it.each([
  ['131000.123456789012', '$131,000.123456789012'],
  ['7', '$7.00'],
])('money of %s reads exactly %s where exactness counts', (amount, expected) => {
  expect(formatUsdExact(amount)).toBe(expected);
});

it.each([
  ['1234567.123456789', 'gbs', undefined, '1,234,567.123456789 GB-s'],
  ['1234567.126', 'gbs', 2, '1,234,567.13 GB-s'],
  ['1000', 'count', undefined, '1,000 events'],
  ['1', 'count', undefined, '1 event'],
  ['730', 'hours', undefined, '730 h'],
] as const)('usage of %s %s with %p digits reads %s', (amount, unit, digits, expected) => {
  expect(formatUsage(decimalText(amount), unit, digits)).toBe(expected);
});

it.each([
  ['1', '8', '12.5%'],
  ['1', '4', '25.0%'],
  ['8', '8', '100.0%'],
  ['0.00001', '8', '<0.1%'],
  ['0', '8', '0.0%'],
  ['7.9999', '8', '>99.9%'],
  ['0', '0', '–'],
])('a share of %s of %s is %s', (part, whole, text) => {
  expect(shareText(decimalText(part), decimalText(whole))).toBe(text);
});

it.each([
  ['100', '112.34', '12.34', '+12.3%', 'up'],
  ['100', '99.9', '-0.1', '-0.1%', 'down'],
  ['0', '3', '3', 'new', 'up'],
  ['0', '0', '0', '0%', 'same'],
] as const)('a change from %s to %s is %s, %s', (before, now, difference, percent, direction) => {
  const change = changeFrom(decimalText(before), decimalText(now));
  expect([change.difference, percentChangeText(change), change.direction]).toEqual([difference, percent, direction]);
});

it.each([
  ['0.0000115', '1', 'gbs', '$0.0000115 per GB-s'],
  ['0.12', '2628000', 'gbs', '$0.12 per GB-month'],
  ['1000', '3601', 'gbs', '$1,000.00 per 3,601 GB-s'],
  ['0.2', '1000000', 'count', '$0.20 per 1,000,000 events'],
  ['0.01', '1', 'count', '$0.01 per event'],
  ['20', '730', 'hours', '$20.00 per month (730 h)'],
  ['0.03', '1', 'hours', '$0.03 per h'],
] as const)('a price of %s for %s (%s) reads %s', (amount, per, unit, expected) => {
  expect(priceText({ amount, per }, unit)).toBe(expected);
});
