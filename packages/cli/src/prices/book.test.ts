import { expect, it } from '@jest/globals';
import type { Unit } from '@meterline/catalog';
import { priceText } from './book.js';

it.each<[string, string, Unit, string]>([
  ['0.0000115', '1', 'gbs', '$0.0000115 per GB-s'],
  ['0.12', '2628000', 'gbs', '$0.12 per GB-month'],
  ['1000', '3600', 'gbs', '$1,000 per 3,600 GB-s'],
  ['0.20', '1000000', 'count', '$0.20 per 1,000,000 events'],
  ['0.01', '1', 'count', '$0.01 per event'],
  ['20', '730', 'hours', '$20 per month (730 h)'],
  ['0.03', '1', 'hours', '$0.03 per h'],
])('%s for %s %s is %s', (amount, per, unit, expected) => {
  expect(priceText({ amount, per }, unit)).toBe(expected);
});
