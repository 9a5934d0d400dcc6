import { describe, expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog';
import { budgetShare, readBudget } from './budget.js';

describe('a budget', () => {
  it.each([
    ['1200', '1200'],
    ['$1,200.50', '1200.5'],
    [' 0099 ', '99'],
    ['0.05', '0.05'],
  ])('%s is %s', (text, amount) => {
    expect(readBudget(text)).toBe(amount);
  });

  it.each(['', '0', '0.00', '-5', 'much', '1.234', '1e3', '.5'])('is not %j', (text) => {
    expect(readBudget(text)).toBeUndefined();
  });

  it('is used by a share in whole percent', () => {
    expect(budgetShare(decimalText('620'), decimalText('1000'))).toBe('62%');
    expect(budgetShare(decimalText('1080'), decimalText('1000'))).toBe('108%');
  });
});
