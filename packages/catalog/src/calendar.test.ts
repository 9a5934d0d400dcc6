import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  bucketAxis,
  bucketCount,
  bucketStart,
  defaultResolution,
  exceededCap,
  formatTimestamp,
  lastUnits,
  parseTimestamp,
  plusMonths,
  RESOLUTIONS,
  type Resolution,
  START_OF_CALENDAR,
  upTo,
  type Window,
  wholeMonths,
} from './calendar.js';

const DAY = 86_400_000;

function window(start: string, end: string | number): Window {
  const startTime = Date.parse(start);
  return { startTime, endTime: typeof end === 'number' ? startTime + end : Date.parse(end) };
}

it.each([
  ['1 ms', window('2025-01-01', 1), 'hourly', ''],
  ['1 ms under 7 days', window('2025-01-01', 7 * DAY - 1), 'hourly', ''],
  ['7 days', window('2025-01-01', 7 * DAY), 'daily', ''],
  ['1 ms over 7 days', window('2025-01-01', 7 * DAY + 1), 'daily', 'hourly'],
  ['1 ms under 90 days', window('2025-01-01', 90 * DAY - 1), 'daily', 'hourly'],
  ['90 days', window('2025-01-01', 90 * DAY), 'weekly', 'hourly'],
  ['1 ms over 90 days', window('2025-01-01', 90 * DAY + 1), 'weekly', 'hourly daily'],
  ['1 ms under a year', window('2025-03-05T06:00Z', '2026-03-05T05:59:59.999Z'), 'weekly', 'hourly daily'],
  ['a year', window('2025-03-05T06:00Z', '2026-03-05T06:00Z'), 'monthly', 'hourly daily'],
  ['1 ms over a year', window('2025-01-01', '2026-01-01T00:00:00.001Z'), 'monthly', 'hourly daily weekly'],
  ['365 days of a leap year, which are less than it', window('2024-01-01', 365 * DAY), 'weekly', 'hourly daily'],
  ['366 days of a leap year', window('2024-01-01', 366 * DAY), 'monthly', 'hourly daily'],
  ['29 to 1 ms before 28 February', window('2024-02-29', '2025-02-27T23:59:59.999Z'), 'weekly', 'hourly daily'],
  ['29 to 28 February', window('2024-02-29', '2025-02-28'), 'monthly', 'hourly daily'],
  ['29 to 1 ms over 28 February', window('2024-02-29', '2025-02-28T00:00:00.001Z'), 'monthly', 'hourly daily weekly'],
  ['130 years', window('1970-01-01', '2100-01-01'), 'monthly', 'hourly daily weekly'],
])(
  'a window of %s has its default resolution, and is too long for the finer ones',
  (_, requested, resolution, tooFine) => {
    expect(defaultResolution(requested)).toBe(resolution);
    expect(RESOLUTIONS.filter((each) => exceededCap(each, requested) !== undefined).join(' ')).toBe(tooFine);
  },
);

it('resolutions are those of the specification, the finest first, with the longest window of each', () => {
  const always = window('1970-01-01', '2100-01-01');
  expect(RESOLUTIONS.map((each) => [each, exceededCap(each, always)])).toEqual([
    ['hourly', '7 days'],
    ['daily', '90 days'],
    ['weekly', '1 year'],
    ['monthly', undefined],
  ]);
});

function axis(start: string, end: string, resolution: Resolution): string[] {
  return bucketAxis(window(start, end), resolution).map(formatTimestamp);
}

const LONGEST: Record<Resolution, number> = { hourly: DAY, daily: 31 * DAY, weekly: 366 * DAY, monthly: 4000 * DAY };

describe('the axis', () => {
  it.each(RESOLUTIONS)(
    'the %s axis of any window begins and ends with its buckets and has all between',
    (resolution) => {
      const instant = fc.integer({ min: START_OF_CALENDAR, max: Date.UTC(9990, 0) });
      fc.assert(
        fc.property(instant, fc.integer({ min: 1, max: LONGEST[resolution] }), (startTime, length) => {
          const window = { startTime, endTime: startTime + length };
          const starts = bucketAxis(window, resolution);
          expect([starts[0], starts.at(-1)]).toEqual(
            [startTime, window.endTime - 1].map((at) => bucketStart(at, resolution)),
          );
          // The millisecond before a start belongs to the bucket before it, and the start to its own.
          expect(starts.slice(1).map((start) => bucketStart(start - 1, resolution))).toEqual(starts.slice(0, -1));
          expect(starts.map((start) => bucketStart(start, resolution))).toEqual(starts);
          expect(bucketCount(window, resolution)).toBe(starts.length);
        }),
      );
    },
  );

  it.each<[string, Resolution, string, string, string]>([
    ['crosses the year', 'hourly', '2024-12-31T23:30Z', '2025-01-01T00:00:00.001Z', '2024-12-31T23 2025-01-01T00'],
    ['leaves out a bucket that begins at endTime', 'daily', '2025-10-01', '2025-10-02', '2025-10-01'],
    ['has one bucket for a millisecond', 'monthly', '2025-10-15T13:14:15Z', '2025-10-15T13:14:15.001Z', '2025-10-01'],
    ['has 29 February in a leap year', 'daily', '2024-02-28', '2024-03-02', '2024-02-28 2024-02-29 2024-03-01'],
    ['has none in another', 'daily', '2025-02-28', '2025-03-02', '2025-02-28 2025-03-01'],
    ['begins weeks on Monday, whatever the year does', 'weekly', '2025-01-01', '2025-01-07', '2024-12-30 2025-01-06'],
    ['puts Sunday into the week that ends', 'weekly', '2025-10-05', '2025-10-07', '2025-09-29 2025-10-06'],
    ['crosses a 53rd week', 'weekly', '2020-12-27', '2021-01-05', '2020-12-21 2020-12-28 2021-01-04'],
    ['begins in 1969 for a window from 1970', 'weekly', '1970-01-01', '1970-01-06', '1969-12-29 1970-01-05'],
    ['starts months on the first, also after a 31st', 'monthly', '2025-01-31', '2025-03-01', '2025-01-01 2025-02-01'],
  ])('the axis %s', (_, resolution, start, end, expected) => {
    const length = resolution === 'hourly' ? 'YYYY-MM-DDThh'.length : 'YYYY-MM-DD'.length;
    expect(axis(start, end, resolution).map((each) => each.slice(0, length))).toEqual(expected.split(' '));
  });

  it('the axis is the longest where the caps allow: 169 hours, 91 days, 54 weeks', () => {
    expect(axis('2025-01-01T00:30:00Z', '2025-01-08T00:30:00Z', 'hourly')).toHaveLength(169);
    expect(axis('2025-01-01T00:30:00Z', '2025-04-01T00:30:00Z', 'daily')).toHaveLength(91);
    expect(axis('2023-12-31T12:00:00Z', '2024-12-31T12:00:00Z', 'weekly')).toHaveLength(54);
  });

  it('the axis of all years has all their months', () => {
    const months = axis('0001-01-01T00:00:00Z', '9999-12-31T00:00:00Z', 'monthly');
    expect([months.length, months[1_199]]).toEqual([9_999 * 12, '0100-12-01T00:00:00Z']);
  });
});

it.each([
  ['2026-01-31T12:30:00Z', 1, '2026-02-28T12:30:00Z'],
  ['2024-03-31T00:00:00.001Z', -1, '2024-02-29T00:00:00.001Z'],
  ['2024-02-29T00:00:00Z', 12, '2025-02-28T00:00:00Z'],
  ['2025-11-30T23:59:59Z', 3, '2026-02-28T23:59:59Z'],
  ['0099-12-15T00:00:00Z', 1, '0100-01-15T00:00:00Z'],
])('the same day as %s %d months later is %s', (from, months, to) => {
  expect(formatTimestamp(plusMonths(Date.parse(from), months))).toBe(to);
});

const NOW = Date.parse('2026-03-21T16:49:00Z');

it.each([
  [24, 'hourly', NOW, '2026-03-20T17:00Z', '2026-03-21T17:00Z'],
  [1, 'daily', NOW, '2026-03-21', '2026-03-22'],
  [30, 'daily', NOW, '2026-02-20', '2026-03-22'],
  [2, 'daily', Date.parse('2026-03-21'), '2026-03-20', '2026-03-22'],
] as const)('the last %d (%s) at %d are whole and hold the present', (count, unit, now, from, to) => {
  expect(lastUnits(count, unit, now)).toEqual(window(from, to));
});

it('the part of a window up to now ends there, and a window in the past or the future is left alone', () => {
  const [february, march, april] = [
    window('2026-02-01', '2026-03-01'),
    window('2026-03-01', '2026-04-01'),
    window('2026-04-01', '2026-05-01'),
  ];
  expect(upTo(march, NOW)).toEqual({ ...march, endTime: NOW });
  expect([upTo(february, NOW), upTo(april, NOW)]).toEqual([february, april]);
});

it.each([
  ['2026-02-01', '2026-03-01', 1],
  ['2025-11-01', '2026-02-01', 3],
  ['2026-02-01', '2026-03-01T00:00:01Z', undefined],
  ['2026-02-28T23:00:00Z', '2026-03-01', undefined],
])('the window from %s to %s is made of %p calendar months', (from, to, months) => {
  expect(wholeMonths(window(from, to))).toBe(months);
});

const OCTOBER = Date.UTC(2025, 9, 1);

it.each([
  ['2025-10-01T00:00:00Z', OCTOBER],
  ['2025-10-01t00:00:00z', OCTOBER],
  ['2025-10-01T00:00:00+00:00', OCTOBER],
  ['2025-10-01T00:00:00.1Z', OCTOBER + 100],
  ['2025-10-01T00:00:00.12Z', OCTOBER + 120],
  ['2025-10-01T00:00:00.1239Z', OCTOBER + 123],
  ['2025-10-01T00:00:00.123999999Z', OCTOBER + 123],
  ['2025-10-01T00:00:00.000999999Z', OCTOBER],
  ['1969-12-31T23:59:59.9999Z', -1],
  ...['2024-02-29', '2000-02-29', '2400-02-29', '2025-12-31', '0001-01-01'].map(
    (day) => [`${day}T23:59:59.999Z`, new Date(`${day}T23:59:59.999Z`).getTime()] as const,
  ),
])('the timestamp %s is read to the millisecond', (text, instant) => {
  expect(parseTimestamp(text)).toBe(instant);
});

it.each([
  ['another offset', '2025-10-01T00:00:00+01:00'],
  ['the unknown local offset of RFC 3339', '2025-10-01T00:00:00-00:00'],
  ['no offset', '2025-10-01T00:00:00'],
  ['a plus that became a space', '2025-10-01T00:00:00 00:00'],
  ['an offset without a colon', '2025-10-01T00:00:00+0000'],
  ['ten fraction digits', '2025-10-01T00:00:00.0000000000Z'],
  ['a point without digits', '2025-10-01T00:00:00.Z'],
  ['a comma', '2025-10-01T00:00:00,5Z'],
  ['a second of three digits', '2025-10-01T00:00:001Z'],
  ['a leap second', '2016-12-31T23:59:60Z'],
  ['minute 60', '2025-10-01T00:60:00Z'],
  ['hour 24', '2025-10-01T24:00:00Z'],
  ['29 February of a common year', '2025-02-29T00:00:00Z'],
  ['29 February of a century that is no leap year', '1900-02-29T00:00:00Z'],
  ['31 April', '2025-04-31T00:00:00Z'],
  ['day 0', '2025-10-00T00:00:00Z'],
  ['month 0', '2025-00-01T00:00:00Z'],
  ['month 13', '2025-13-01T00:00:00Z'],
  ['a space for the T', '2025-10-01 00:00:00Z'],
  ['a date alone', '2025-10-01'],
  ['a year with a sign', '+002025-10-01T00:00:00Z'],
  ['digits of another script', '２025-10-01T00:00:00Z'],
  ['a newline at the end', '2025-10-01T00:00:00Z\n'],
  ['a space before', ' 2025-10-01T00:00:00Z'],
  ['nothing', ''],
])('a timestamp may not have %s', (_, text) => {
  expect(parseTimestamp(text)).toBeUndefined();
});

it.each([
  [OCTOBER, '2025-10-01T00:00:00Z'],
  [OCTOBER + 1, '2025-10-01T00:00:00.001Z'],
  [OCTOBER + 120, '2025-10-01T00:00:00.12Z'],
])('the timestamp of %p is printed as %s: with a fraction only if it is not zero', (instant, text) => {
  expect(formatTimestamp(instant)).toBe(text);
});

it('a timestamp that is printed reads back as the same instant', () => {
  fc.assert(
    fc.property(fc.integer({ min: Date.UTC(1969, 0), max: Date.UTC(2101, 0) }), (instant) => {
      expect(parseTimestamp(formatTimestamp(instant))).toBe(instant);
    }),
  );
});
