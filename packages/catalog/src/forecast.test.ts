import { expect, it } from '@jest/globals';
import { bucketAxis, MS_PER_DAY } from './calendar.js';
import { decimalText, ZERO } from './decimal.js';
import { monthFigures, monthWindow } from './forecast.js';

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
