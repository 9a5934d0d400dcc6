import { expect, it } from '@jest/globals';
import { Amount, amount } from './index.js';

it('an amount calculates without losing a digit', () => {
  const cost = amount('131000.123456789012');
  expect(`${cost.plus('0.000000000001')}`).toBe('131000.123456789013');
  expect(`${cost.minus(131_000)}`).toBe('0.123456789012');
  expect(`${cost.times('1.19')}`).toBe('155890.14691357892428');
  expect(`${cost.times('1.19').round(2)}`).toBe('155890.15');
  expect(`${amount('0.5').minus('2.5').times(-3)}`).toBe('6');
});

it('amounts compare by their value', () => {
  const amounts = ['10', '9.5', '-1', '9.50'].map(amount);
  expect(amounts.sort((a, b) => a.cmp(b)).map(String)).toEqual(['-1', '9.5', '9.5', '10']);
});

it('an amount is the nearest number where one is wanted, and text elsewhere', () => {
  expect(amount('131000.123456789012').toNumber()).toBe(131000.123456789);
  expect(JSON.stringify({ cost: amount('0.1').plus('0.2') })).toBe('{"cost":"0.3"}');
});

it.each<[string | number | Amount, string]>([
  ['0012.500', '12.5'],
  ['-0.00', '0'],
  [1e-7, '0.0000001'],
  [-1e21, '-1000000000000000000000'],
  [0.1 + 0.2, '0.30000000000000004'],
  [amount('7'), '7'],
])('an amount of %s is %s', (value, text) => {
  expect(new Amount(value).toString()).toBe(text);
});

it.each(['', '1,5', '--1', ' 1', Number.NaN, Number.POSITIVE_INFINITY])('%j is no amount', (value) => {
  expect(() => amount(value)).toThrow('Invalid number');
});

it('an amount refuses the operators, which would calculate with doubles or with text', () => {
  const calculate = new Function('a', 'b', 'return a + b');
  const isLess = new Function('a', 'b', 'return a < b');
  for (const operate of [calculate, isLess]) {
    expect(() => operate(amount('9'), amount('10'))).toThrow('an Amount has no operators');
  }
});
