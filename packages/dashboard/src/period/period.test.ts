import { describe, expect, it } from '@jest/globals';
import {
  type Comparison,
  comparedWindow,
  exceededCap,
  formatTimestamp,
  type Resolution,
  type Window,
} from '@meterline/catalog/plain';
import fc from 'fast-check';
import {
  bucketText,
  bucketWindow,
  dateText,
  monthOf,
  type PeriodChoice,
  PRESETS,
  periodMonths,
  periodText,
  periodWindow,
  tickText,
  unfinishedBucket,
  windowText,
} from './period.js';

const NOW_TEXT = '2026-03-21T16:49:00Z';
const NOW = Date.parse(NOW_TEXT);
const WEEK = 7 * 86_400_000;
const window = (from: string, to: string): Window => ({ startTime: Date.parse(from), endTime: Date.parse(to) });
/** `2026-03-21T16:49`. */
const minute = (instant: number) => formatTimestamp(instant).slice(0, 16);
const text = ({ startTime, endTime }: Window) => `${minute(startTime)} ${minute(endTime)}`;
const custom = (from: string, to: string): PeriodChoice => ({ from: Date.parse(from), to: Date.parse(to) });
const JANUARY = custom('2026-01-01', '2026-02-01');
const AUTUMN = custom('2025-10-01', '2026-01-01');

it.each([
  ['24h', '2026-03-20T17:00 2026-03-21T17:00', 'hourly'],
  ['7d', '2026-03-15T00:00 2026-03-22T00:00', 'hourly'],
  ['30d', '2026-02-20T00:00 2026-03-22T00:00', 'daily'],
  ['90d', '2025-12-22T00:00 2026-03-22T00:00', 'daily'],
  ['month', '2026-03-01T00:00 2026-03-22T00:00', 'daily'],
  ['last-month', '2026-02-01T00:00 2026-03-01T00:00', 'daily'],
  ['week', '2026-03-16T00:00 2026-03-22T00:00', 'hourly'],
  ['quarter', '2026-01-01T00:00 2026-03-22T00:00', 'daily'],
  ['year', '2026-01-01T00:00 2026-03-22T00:00', 'weekly'],
  ['12m', '2025-04-01T00:00 2026-03-22T00:00', 'weekly'],
] as const)('the preset %s has the window %s, which the resolution %s allows', (preset, expected, resolution) => {
  expect(text(periodWindow({ preset }, NOW))).toBe(expected);
  expect(exceededCap(resolution, periodWindow({ preset }, NOW))).toBeUndefined();
});

describe('the comparison', () => {
  /** `2026-03-13T17:00 2026-03-14T16:49 1 week earlier`. */
  function compared(period: PeriodChoice, resolution: Resolution, comparison: Comparison = 'period', asOf = NOW) {
    const months = periodMonths(period);
    const found = comparedWindow(comparison, { window: periodWindow(period, asOf), months, resolution, asOf });
    return found && `${text(found.window)} ${found.distance}`;
  }

  it.each<[string, PeriodChoice, Resolution, string]>([
    ['compares a day with the same weekday', { preset: '24h' }, 'hourly', '2026-03-13T17:00 2026-03-14T16:49 1 week'],
    ['compares a week with the previous week', { preset: '7d' }, 'daily', '2026-03-08T00:00 2026-03-14T16:49 1 week'],
    ['moves thirty days back by five weeks', { preset: '30d' }, 'daily', '2026-01-16T00:00 2026-02-14T16:49 5 weeks'],
    [
      'moves a month with daily bars back by four weeks',
      { preset: 'month' },
      'daily',
      '2026-02-01T00:00 2026-02-21T16:49 4 weeks',
    ],
    ['moves a month of 31 days back by five weeks', JANUARY, 'daily', '2025-11-27T00:00 2025-12-28T00:00 5 weeks'],
    [
      'moves a quarter with weekly bars back by 13 weeks',
      { preset: 'quarter' },
      'weekly',
      '2025-10-02T00:00 2025-12-20T16:49 13 weeks',
    ],
    [
      'moves a year with weekly bars back by 52 weeks',
      { preset: 'year' },
      'weekly',
      '2025-01-02T00:00 2025-03-22T16:49 52 weeks',
    ],
    ['compares monthly bars with months', { preset: '12m' }, 'monthly', '2024-04-01T00:00 2025-03-21T16:49 12 months'],
  ])('%s', (_what, period, resolution, before) => {
    expect(compared(period, resolution)).toBe(`${before} earlier`);
  });

  it.each<[string, PeriodChoice, string, string]>([
    [
      'a month to date is compared with the same part',
      { preset: 'month' },
      NOW_TEXT,
      '2026-02-01T00:00 2026-02-21T16:49 1 month',
    ],
    [
      'a past month is compared with a whole month',
      { preset: 'last-month' },
      NOW_TEXT,
      '2026-01-01T00:00 2026-02-01T00:00 1 month',
    ],
    [
      'past months are compared with the same number of months',
      AUTUMN,
      NOW_TEXT,
      '2025-07-01T00:00 2025-10-01T00:00 3 months',
    ],
    [
      'the end of a long month is compared with a whole shorter month',
      { preset: 'month' },
      '2026-03-30T12:00:00Z',
      '2026-02-01T00:00 2026-03-01T00:00 1 month',
    ],
  ])('by date, %s', (_what, period, asOf, before) => {
    expect(compared(period, 'daily', 'months', Date.parse(asOf))).toBe(`${before} earlier`);
  });

  it('there is no comparison before 1970 and for future windows', () => {
    expect(compared(custom('1970-01-02', '2026-01-01'), 'monthly')).toBeUndefined();
    expect(compared(custom('2027-01-01', '2027-01-02'), 'hourly')).toBeUndefined();
  });

  it('the previous period has the same weekdays and length, and never overlaps, for every preset at any time', () => {
    const moment = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2090, 0) });
    const resolution = fc.constantFrom<Resolution>('hourly', 'daily', 'weekly');
    fc.assert(
      fc.property(fc.constantFrom(...PRESETS), moment, resolution, ({ id }, asOf, by) => {
        const shown = periodWindow({ preset: id }, asOf);
        expect(shown.startTime).toBeLessThan(shown.endTime);
        const months = periodMonths({ preset: id });
        const before = comparedWindow('period', { window: shown, months, resolution: by, asOf })?.window;
        const passed = Math.min(shown.endTime, Math.max(asOf, shown.startTime));
        if (!before) return passed === shown.startTime;
        const shift = shown.startTime - before.startTime;
        expect(shift % WEEK).toBe(0);
        expect(passed - before.endTime).toBe(shift);
        return before.endTime <= shown.startTime;
      }),
    );
  });

  it('periods of whole months have a number of months, and others have none', () => {
    const periods = [{ preset: '30d' }, { preset: 'year' }, JANUARY, custom('2026-01-01', '2026-01-30')] as const;
    expect(periods.map(periodMonths)).toEqual([undefined, 12, 1, undefined]);
  });
});

it('the bucket in progress contains the current time, and is undefined if the window has ended', () => {
  const days = ['2026-03-20', '2026-03-21', '2026-03-22'].map((day) => Date.parse(day));
  expect(unfinishedBucket(days, 'daily', NOW)).toBe(1);
  expect(unfinishedBucket(days.slice(0, 1), 'daily', NOW)).toBeUndefined();
  expect(unfinishedBucket(days, 'daily', days[1] ?? 0)).toBeUndefined();
  expect(unfinishedBucket([Date.parse('2026-03-01')], 'monthly', NOW)).toBe(0);
});

it('a period is shown as a calendar month or as the name of its preset', () => {
  const february = window('2026-02-01', '2026-03-01');
  expect(monthOf(february)).toBe(february.startTime);
  expect(monthOf({ ...february, endTime: february.endTime + 1_000 })).toBeUndefined();
  expect(periodText(custom('2026-02-01', '2026-03-01'))).toBe('February 2026');
  expect(periodText({ preset: 'quarter' })).toBe('Quarter to date');
});

it.each([
  ['2026-11-01T00:00:00Z', '2026-11-22T00:00:00Z', undefined, '1 Nov – 21 Nov 2026'],
  ['2025-12-01T00:00:00Z', '2026-02-01T00:00:00Z', undefined, '1 Dec 2025 – 31 Jan 2026'],
  ['2026-11-21T00:00:00Z', '2026-11-22T00:00:00Z', undefined, '21 Nov 2026'],
  ['2026-11-20T18:00:00Z', '2026-11-21T18:00:00Z', undefined, '20 Nov 18:00 – 21 Nov 2026 18:00'],
  ['2026-10-01T00:00:00Z', '2026-10-21T16:49:00Z', '2026-01-01', '1 Oct – 21 Oct 16:49'],
  ['2026-10-01T00:00:00Z', '2026-10-21T16:49:00Z', '2027-01-01', '1 Oct – 21 Oct 2026 16:49'],
])('the window from %s to %s, without the year of %s, is shown as %s', (from, to, known, expected) => {
  expect(windowText(window(from, to), known === undefined ? undefined : Date.parse(known))).toBe(expected);
});

it.each<[Resolution, string, string, string]>([
  ['hourly', '07:00', '07:00', 'Sat, 21 Nov 2026, 07:00–08:00'],
  ['hourly', '00:00', '21 Nov', 'Sat, 21 Nov 2026, 00:00–01:00'],
  ['daily', '00:00', '21 Nov', 'Sat, 21 Nov 2026'],
  ['weekly', '00:00', '21 Nov', 'Week of 21 Nov 2026'],
  ['monthly', '00:00', 'Nov 2026', 'November 2026'],
])('a %s bucket at %s is %s on the axis and %s in full', (resolution, time, tick, full) => {
  const bucket = Date.parse(`2026-11-21T${time}:00Z`);
  expect([tickText(bucket, resolution), bucketText(bucket, resolution)]).toEqual([tick, full]);
});

it.each([
  ['weekly', '2026-11-02', '2026-11-04T00:00 2026-11-09T00:00'],
  ['monthly', '2026-11-01', '2026-11-04T00:00 2026-11-22T00:00'],
] as const)('a %s bucket at the edge of a window is cut at the window', (resolution, bucket, expected) => {
  const shown = window('2026-11-04', '2026-11-22');
  expect(text(bucketWindow(Date.parse(bucket), resolution, shown))).toBe(expected);
});

it('a date is the value of a date input', () => {
  expect(dateText(NOW)).toBe('2026-03-21');
});
