import { expect, it } from '@jest/globals';
import type { AlertResponse } from '@meterline/client';
import { amountIn, budgetOf } from './alerts.js';

const alert = (change: Partial<AlertResponse>): AlertResponse => ({
  ...{ id: 'alr_1', name: 'Spend', period: 'month', measure: 'cost', amount: '100', thresholds: [100], filters: {} },
  ...{ url: 'https://example.com/', createdAt: '', updatedAt: '', fired: [] },
  ...change,
});

it('an amount is taken as it is typed, but for the sign and commas between thousands', () => {
  const typed = ['1000', ' $1,000.50 ', '1,234,567', '1000,50', '1,5'];
  expect(typed.map(amountIn)).toEqual(['1000', '1000.50', '1234567', '1000,50', '1,5']);
});

it('the budget that is drawn is the smallest amount of the alerts on what a month costs', () => {
  const others = [alert({ period: 'day', amount: '1' }), alert({ measure: 'usage', amount: '2' })];
  expect(budgetOf([alert({ amount: '900' }), alert({ amount: '1000' }), ...others], {})).toBe('900');
  expect(budgetOf(others, {})).toBeUndefined();
  expect(budgetOf(undefined, {})).toBeUndefined();
});

it('the budget that is drawn is of an alert with exactly the filters of the view, in whatever order', () => {
  const alerts = [alert({}), alert({ amount: '7', filters: { resourceType: ['job', 'agent'] } })];
  expect(budgetOf(alerts, { resourceType: ['agent', 'job'], workspace: undefined })).toBe('7');
  expect(budgetOf(alerts, { resourceType: 'agent' })).toBeUndefined();
});

it('the budget that is drawn is not there where the view leaves something out, as no alert does', () => {
  expect(budgetOf([alert({})], { excludeWorkspace: 'main' })).toBeUndefined();
  expect(budgetOf([alert({})], { withoutResourceUuid: true })).toBeUndefined();
});
