import { expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog/plain';
import type { AlertResponse } from '@meterline/client';
import { amountIn, budgetOf } from '../alerts/alerts.js';
import { budgetShare } from './forecast.js';

it('the share of a budget is a whole percentage', () => {
  expect(budgetShare(decimalText('620'), decimalText('1000'))).toBe('62%');
  expect(budgetShare(decimalText('1080'), decimalText('1000'))).toBe('108%');
});

const alert = (change: Partial<AlertResponse>): AlertResponse => ({
  ...{ id: 'alr_1', name: 'Spend', period: 'month', measure: 'cost', amount: '100', thresholds: [100], filters: {} },
  ...{ forecast: [], forecastFired: [] },
  ...{ url: 'https://example.com/', createdAt: '', updatedAt: '', fired: [] },
  ...change,
});

it('an amount may have a dollar sign, spaces and thousands separators', () => {
  const grouped = ['1000', ' $1,000.50 ', '1,234,567', '1 000'];
  expect(grouped.map(amountIn)).toEqual(['1000', '1000.50', '1234567', '1000']);
  // The API rejects these, because the comma may be a decimal separator.
  const ambiguous = ['0,125', '00,125', '1000,500', '1000,50', '1,5', '1 000,250', '1,00,000', '1,000,5', '1.000,500'];
  expect(ambiguous.map(amountIn)).toEqual(ambiguous.map((text) => text.replace(' ', '')));
});

it('the budget is the smallest amount of the alerts on monthly cost', () => {
  const others = [alert({ period: 'day', amount: '1' }), alert({ measure: 'usage', amount: '2' })];
  expect(budgetOf([alert({ amount: '900' }), alert({ amount: '1000' }), ...others], {})).toBe('900');
  expect(budgetOf(others, {})).toBeUndefined();
  expect(budgetOf(undefined, {})).toBeUndefined();
});

it('the budget comes from an alert with exactly the filters of the view, in any order', () => {
  const alerts = [alert({}), alert({ amount: '7', filters: { resourceType: ['job', 'agent'] } })];
  expect(budgetOf(alerts, { resourceType: ['agent', 'job'], workspace: undefined })).toBe('7');
  expect(budgetOf(alerts, { resourceType: 'agent' })).toBeUndefined();
});

it('a view that excludes values has no budget, because alerts cannot exclude values', () => {
  expect(budgetOf([alert({})], { excludeWorkspace: 'main' })).toBeUndefined();
  expect(budgetOf([alert({})], { withoutResourceUuid: true })).toBeUndefined();
});
