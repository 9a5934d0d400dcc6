import { describe, expect, it } from '@jest/globals';
import { type Comparison, comparedWindow, formatTimestamp, type Resolution, type Window } from '@meterline/catalog';
import fc from 'fast-check';
import { type PeriodChoice, PRESETS, periodMonths, periodWindow, presetWindow } from './period.js';

const NOW = Date.parse('2026-03-21T16:49:00Z');
const DAY = 86_400_000;
/** Whole days. */
const custom = (from: string, to: string): PeriodChoice => ({ from: Date.parse(from), to: Date.parse(to) });
const JANUARY = custom('2026-01-01', '2026-02-01');
const AUTUMN = custom('2025-10-01', '2026-01-01');

/** `2026-03-13T17:00 2026-03-14T16:49 1 week earlier`. */
function compared(period: PeriodChoice, resolution: Resolution, comparison: Comparison = 'period', asOf = NOW) {
  const window = periodWindow(period, asOf);
  const found = comparedWindow(comparison, { window, months: periodMonths(period), resolution, asOf });
  const { startTime, endTime } = found?.window ?? { startTime: 0, endTime: 0 };
  return found && [...[startTime, endTime].map((at) => formatTimestamp(at).slice(0, 16)), found.distance].join(' ');
}

describe('the period before', () => {
  it.each<[string, PeriodChoice, Resolution, string]>([
    ['a day faces the same weekday', { preset: '24h' }, 'hourly', '2026-03-13T17:00 2026-03-14T16:49 1 week'],
    ['a week faces the one before', { preset: '7d' }, 'daily', '2026-03-08T00:00 2026-03-14T16:49 1 week'],
    ['thirty days go back five weeks', { preset: '30d' }, 'daily', '2026-01-16T00:00 2026-02-14T16:49 5 weeks'],
    ['a month by days goes back four', { preset: 'month' }, 'daily', '2026-02-01T00:00 2026-02-21T16:49 4 weeks'],
    ['a month of 31 days goes back five', JANUARY, 'daily', '2025-11-27T00:00 2025-12-28T00:00 5 weeks'],
    ['a quarter by weeks goes back 13', { preset: 'quarter' }, 'weekly', '2025-10-02T00:00 2025-12-20T16:49 13 weeks'],
    ['a year by weeks goes back 52', { preset: 'year' }, 'weekly', '2025-01-02T00:00 2025-03-22T16:49 52 weeks'],
    ['months face months', { preset: '12m' }, 'monthly', '2024-04-01T00:00 2025-03-21T16:49 12 months'],
  ])('%s', (_what, period, resolution, before) => {
    expect(compared(period, resolution)).toBe(`${before} earlier`);
  });

  it.each<[string, PeriodChoice, string]>([
    [
      'a month to date faces as much of the one before',
      { preset: 'month' },
      '2026-02-01T00:00 2026-02-21T16:49 1 month',
    ],
    ['a month that is over faces a whole one', { preset: 'last-month' }, '2026-01-01T00:00 2026-02-01T00:00 1 month'],
    ['months that are over face as many', AUTUMN, '2025-07-01T00:00 2025-10-01T00:00 3 months'],
  ])('by date, %s', (_what, period, before) => {
    expect(compared(period, 'daily', 'months')).toBe(`${before} earlier`);
  });

  it('by date does not reach into the present month', () => {
    const late = Date.parse('2026-03-30T12:00:00Z');
    expect(compared({ preset: 'month' }, 'daily', 'months', late)).toMatch(/ 2026-03-01T00:00 /);
  });

  it('is not there before 1970, nor for what is yet to come', () => {
    expect(compared(custom('1970-01-02', '2026-01-01'), 'monthly')).toBeUndefined();
    expect(compared(custom('2027-01-01', '2027-01-02'), 'hourly')).toBeUndefined();
  });

  it('has weekends where the weekends are, is as long, and never overlaps, for every preset at every moment', () => {
    const moment = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2090, 0) });
    const resolution = fc.constantFrom<Resolution>('hourly', 'daily', 'weekly');
    fc.assert(
      fc.property(fc.constantFrom(...PRESETS), moment, resolution, ({ id }, asOf, by) => {
        const window = presetWindow(id, asOf);
        expect(window.startTime).toBeLessThan(window.endTime);
        const months = periodMonths({ preset: id });
        const before = comparedWindow('period', { window, months, resolution: by, asOf })?.window;
        const passed: Window = { ...window, endTime: Math.min(window.endTime, Math.max(asOf, window.startTime)) };
        if (!before) return passed.endTime === passed.startTime;
        const shift = passed.startTime - before.startTime;
        expect(shift % (7 * DAY)).toBe(0);
        expect(passed.endTime - before.endTime).toBe(shift);
        return before.endTime <= passed.startTime;
      }),
    );
  });

  it('goes by months for what is meant as months', () => {
    const periods: PeriodChoice[] = [
      { preset: '30d' },
      { preset: 'year' },
      JANUARY,
      custom('2026-01-01', '2026-01-30'),
    ];
    expect(periods.map(periodMonths)).toEqual([undefined, 12, 1, undefined]);
  });
});
