import { describe, expect, it } from '@jest/globals';
import { addDecimals, changeFrom, decimalText } from '@meterline/catalog';
import { quantityOf } from './quantities.js';
import { amountText, axisText, changePercentText, differenceText, exactText, filterText, shareOf } from './texts.js';

const GB_HOUR = quantityOf('agent_compute_runtime_gbs');

describe('rounded amounts', () => {
  it.each([
    ['1234.567', '$1,234.57'],
    ['0.0000123', '$0.000012'],
    ['0', '$0.00'],
    ['-3.2', '−$3.20'],
  ])('%s of money is %s: what is tiny stays visible', (amount, text) => {
    expect(amountText(decimalText(amount), undefined)).toBe(text);
  });

  it('usage has its unit, whose hyphen stays', () => {
    expect(amountText(decimalText('-4444416'), GB_HOUR)).toBe('−1,234.56 GB-h');
  });

  it('have all their digits behind them, usage in the unit in which it is exact', () => {
    expect(exactText(decimalText('-1234.567890123456'), undefined)).toBe('−$1,234.567890123456');
    expect(exactText(decimalText('4444416.5'), GB_HOUR)).toBe('4,444,416.5 GB-s');
  });

  it('a difference has its sign', () => {
    const change = changeFrom(decimalText('1'), decimalText('1.5'));
    expect(differenceText(change, undefined)).toBe('+$0.50');
    expect(differenceText(changeFrom(decimalText('1.5'), decimalText('1')), undefined)).toBe('−$0.50');
  });

  it.each([
    [0, undefined, '$0'],
    [1_200, undefined, '$1.2K'],
    [0.000002, undefined, '$0.000002'],
    [0.30000000000000004, undefined, '$0.3'],
    [150e6, GB_HOUR, '150M'],
    [0, GB_HOUR, '0'],
  ] as const)('%s on an axis (%s) is %s', (value, unit, text) => {
    expect(axisText(value, unit)).toBe(text);
  });
});

describe('a filter', () => {
  it.each([
    [['agent'], false, 'Agent'],
    [['agent', 'job'], false, '2 values'],
    [['job'], true, 'all but Job'],
  ])('%j, excluded: %s, is %s', (values, isExcluded, text) => {
    expect(filterText('resourceType', { values, isExcluded })).toBe(text);
  });
});

describe('a share', () => {
  it('has a bar between nothing and everything', () => {
    expect(shareOf(decimalText('1'), decimalText('4'))).toBe(0.25);
    expect(shareOf(decimalText('1'), decimalText('0'))).toBe(0);
  });
});

describe('a change', () => {
  it.each([
    ['100', '112.34', '12.34', '+12.3%', 'up'],
    ['100', '99.9', '-0.1', '−0.1%', 'down'],
    ['5', '5', '0', '0.0%', 'same'],
    ['0', '3', '3', 'new', 'up'],
    ['0', '0', '0', '0%', 'same'],
    ['2', '0', '-2', '−100.0%', 'down'],
    ['0.000001', '1', '0.999999', '+99,999,900.0%', 'up'],
  ] as const)('from %s to %s', (before, now, difference, percent, direction) => {
    const change = changeFrom(decimalText(before), decimalText(now));
    expect([change.difference, changePercentText(change), change.direction]).toEqual([difference, percent, direction]);
    expect(addDecimals(decimalText(before), change.difference)).toBe(now);
  });
});
