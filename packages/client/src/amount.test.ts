import { expect, it } from '@jest/globals';
import { Amount, amount } from './index.js';

it('an Amount rounds half to even', () => {
  expect(['0.125', '0.375'].map((text) => `${amount(text).round(2)}`)).toEqual(['0.12', '0.38']);
});

it('an Amount converts to the nearest number, and to text in JSON', () => {
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
])('an Amount of %s has the text %s', (value, text) => {
  expect(new Amount(value).toString()).toBe(text);
});

it('an Amount throws for operators, which would calculate with floating-point numbers or text', () => {
  const calculate = new Function('a', 'b', 'return a + b');
  const isLess = new Function('a', 'b', 'return a < b');
  for (const operate of [calculate, isLess]) {
    expect(() => operate(amount('9'), amount('10'))).toThrow('an Amount does not support operators');
  }
});
