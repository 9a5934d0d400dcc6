import { expect, it } from '@jest/globals';
import { bucketAxis, decimalText, MS_PER_DAY, ZERO } from '@meterline/catalog/plain';
import type { AlertResponse } from '@meterline/client';
import { amountIn, budgetOf } from '../alerts/alerts.js';
import { budgetShare, monthFigures, monthWindow } from './forecast.js';

/** A Sunday. */
const NOW = Date.parse('2026-11-22T06:00:00Z');
const TODAY = Date.parse('2026-11-22T00:00:00Z');
const daysOf = (asOf: number) => bucketAxis(monthWindow(asOf), 'daily');

/** Costs 10 on working days and 2 on weekends, starting at `from`. */
function weekly(asOf: number, from = 0, today = ZERO) {
  const days = daysOf(asOf);
  const costs = days.map((day) => {
    if (day === asOf - (asOf % MS_PER_DAY)) return today;
    if (day < from) return ZERO;
    return decimalText(new Date(day).getUTCDay() % 6 === 0 ? '2' : '10');
  });
  return { days, costs };
}

it('the forecast needs the current month and the last four weeks', () => {
  expect(monthWindow(NOW)).toEqual({ startTime: Date.parse('2026-10-25T00:00:00Z'), endTime: NOW });
  const late = Date.parse('2026-10-31T12:00:00Z');
  expect(monthWindow(late).startTime).toBe(Date.parse('2026-10-01T00:00:00Z'));
});

it('the forecast uses the average of each weekday', () => {
  const { toDate, forecast, expected } = monthFigures(weekly(NOW), NOW);
  // 1 to 21 November has 15 working days and 6 weekend days.
  expect(toDate).toBe('162');
  // Today and 28, 29: 2 each. 23 to 27 and 30: 10 each.
  expect(forecast).toBe('228');
  expect([...expected.values()]).toEqual(['2', '10', '10', '10', '10', '10', '2', '2', '10']);
  expect([...expected.keys()][0]).toBe(TODAY);
});

it('the forecast uses the actual cost of today if it exceeds the average', () => {
  const { forecast, expected } = monthFigures(weekly(NOW, 0, decimalText('7.5')), NOW);
  expect(forecast).toBe('233.5');
  expect(expected.get(TODAY)).toBe(ZERO);
  expect(monthFigures(weekly(NOW, 0, decimalText('0.5')), NOW).forecast).toBe('228');
});

it('the forecast ignores the days before the first usage', () => {
  const { forecast } = monthFigures(weekly(NOW, Date.parse('2026-11-16T00:00:00Z')), NOW);
  // Monday to Saturday cost 52. Sundays have no history, so they use the average of the six days, 8.666666666667.
  expect(forecast).toBe('131.333333333334');
});

it('there is no forecast without usage before today', () => {
  expect(monthFigures(weekly(NOW, Number.POSITIVE_INFINITY, decimalText('3')), NOW)).toEqual({
    toDate: '3',
    forecast: undefined,
    expected: new Map(),
  });
});

it('the share of a budget is a whole percentage', () => {
  expect(budgetShare(decimalText('620'), decimalText('1000'))).toBe('62%');
  expect(budgetShare(decimalText('1080'), decimalText('1000'))).toBe('108%');
});

const alert = (change: Partial<AlertResponse>): AlertResponse => ({
  ...{ id: 'alr_1', name: 'Spend', period: 'month', measure: 'cost', amount: '100', thresholds: [100], filters: {} },
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
