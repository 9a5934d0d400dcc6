import { describe, expect, it } from '@jest/globals';
import { type Comparison, comparedWindow, formatTimestamp, type Resolution, type Window } from '@meterline/catalog';
import fc from 'fast-check';
import { type PeriodChoice, PRESETS, periodMonths, periodWindow, presetWindow } from './period.js';

const NOW = Date.parse('2026-03-21T16:49:00Z');
const DAY = 86_400_000;
const custom = (from: string, to: string): PeriodChoice => ({ from: Date.parse(from), to: Date.parse(to) });

function compared(period: PeriodChoice, resolution: Resolution, comparison: Comparison = 'period', asOf = NOW) {
  const window = periodWindow(period, asOf);
  const found = comparedWindow(comparison, { window, months: periodMonths(period), resolution, asOf });
  if (!found) return undefined;
  const { startTime, endTime } = found.window;
  return [formatTimestamp(startTime), formatTimestamp(endTime), found.distance];
}

describe('the period before', () => {
  it.each<[string, PeriodChoice, Resolution, string, string, string]>([
    [
      'a day faces the same weekday',
      { preset: '24h' },
      'hourly',
      '2026-03-13T17:00:00Z',
      '2026-03-14T16:49:00Z',
      '1 week',
    ],
    [
      'a week faces the one before',
      { preset: '7d' },
      'daily',
      '2026-03-08T00:00:00Z',
      '2026-03-14T16:49:00Z',
      '1 week',
    ],
    [
      'thirty days go back five weeks',
      { preset: '30d' },
      'daily',
      '2026-01-16T00:00:00Z',
      '2026-02-14T16:49:00Z',
      '5 weeks',
    ],
    [
      'a month by days goes back four weeks',
      { preset: 'month' },
      'daily',
      '2026-02-01T00:00:00Z',
      '2026-02-21T16:49:00Z',
      '4 weeks',
    ],
    [
      'a whole month of 31 days goes back five',
      custom('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'),
      'daily',
      '2025-11-27T00:00:00Z',
      '2025-12-28T00:00:00Z',
      '5 weeks',
    ],
    [
      'a quarter by weeks goes back 13',
      { preset: 'quarter' },
      'weekly',
      '2025-10-02T00:00:00Z',
      '2025-12-20T16:49:00Z',
      '13 weeks',
    ],
    [
      'a year by weeks goes back 52',
      { preset: 'year' },
      'weekly',
      '2025-01-02T00:00:00Z',
      '2025-03-22T16:49:00Z',
      '52 weeks',
    ],
    ['months face months', { preset: '12m' }, 'monthly', '2024-04-01T00:00:00Z', '2025-03-21T16:49:00Z', '12 months'],
  ])('%s', (_what, period, resolution, from, to, distance) => {
    expect(compared(period, resolution)).toEqual([from, to, `${distance} earlier`]);
  });

  it.each<[string, PeriodChoice, string, string, string]>([
    [
      'month to date faces as much of the month before',
      { preset: 'month' },
      '2026-02-01T00:00:00Z',
      '2026-02-21T16:49:00Z',
      '1 month',
    ],
    [
      'a month that is over faces the whole one before',
      { preset: 'last-month' },
      '2026-01-01T00:00:00Z',
      '2026-02-01T00:00:00Z',
      '1 month',
    ],
    [
      'months that are over face as many',
      custom('2025-10-01T00:00:00Z', '2026-01-01T00:00:00Z'),
      '2025-07-01T00:00:00Z',
      '2025-10-01T00:00:00Z',
      '3 months',
    ],
  ])('by date, %s', (_what, period, from, to, distance) => {
    expect(compared(period, 'daily', 'months')).toEqual([from, to, `${distance} earlier`]);
  });

  it('by date does not reach into the present month', () => {
    const late = Date.parse('2026-03-30T12:00:00Z');
    expect(compared({ preset: 'month' }, 'daily', 'months', late)?.[1]).toBe('2026-03-01T00:00:00Z');
  });

  it('is not there before 1970, nor for what is yet to come', () => {
    expect(compared(custom('1970-01-02T00:00:00Z', '2026-01-01T00:00:00Z'), 'monthly')).toBeUndefined();
    expect(compared(custom('2027-01-01T00:00:00Z', '2027-01-02T00:00:00Z'), 'hourly')).toBeUndefined();
  });

  it('has weekends where the weekends are, is as long, and never overlaps, for every preset at every moment', () => {
    const moment = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2090, 0) });
    const resolution = fc.constantFrom<Resolution>('hourly', 'daily', 'weekly');
    fc.assert(
      fc.property(fc.constantFrom(...PRESETS), moment, resolution, ({ id }, asOf, by) => {
        const window = presetWindow(id, asOf);
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
    const february = { from: Date.parse('2026-02-01T00:00:00Z'), to: Date.parse('2026-03-01T00:00:00Z') };
    expect(periodMonths({ preset: '30d' })).toBeUndefined();
    expect(periodMonths({ preset: 'year' })).toBe(12);
    expect(periodMonths(february)).toBe(1);
    expect(periodMonths({ ...february, to: NOW })).toBeUndefined();
  });
});
