import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  bucketAxis,
  bucketCount,
  bucketStart,
  defaultResolution,
  exceededCap,
  plusMonths,
  RESOLUTIONS,
  type Resolution,
} from './calendar.js';
import { formatTimestamp, START_OF_CALENDAR } from './timestamp.js';

const DAY = 86_400_000;

function window(start: string, end: string | number) {
  const startTime = Date.parse(start);
  return { startTime, endTime: typeof end === 'number' ? startTime + end : Date.parse(end) };
}

describe('the default resolution', () => {
  it.each([
    ['1 ms', window('2025-01-01T00:00Z', 1), 'hourly'],
    ['1 ms under 7 days', window('2025-01-01T00:00Z', 7 * DAY - 1), 'hourly'],
    ['7 days', window('2025-01-01T00:00Z', 7 * DAY), 'daily'],
    ['1 ms over 7 days', window('2025-01-01T00:00Z', 7 * DAY + 1), 'daily'],
    ['1 ms under 90 days', window('2025-01-01T00:00Z', 90 * DAY - 1), 'daily'],
    ['90 days', window('2025-01-01T00:00Z', 90 * DAY), 'weekly'],
    ['1 ms under a year', window('2025-03-05T06:00Z', '2026-03-05T05:59:59.999Z'), 'weekly'],
    ['a year', window('2025-03-05T06:00Z', '2026-03-05T06:00Z'), 'monthly'],
    ['365 days of a leap year, which are less than it', window('2024-01-01T00:00Z', 365 * DAY), 'weekly'],
    ['366 days of a leap year', window('2024-01-01T00:00Z', 366 * DAY), 'monthly'],
    ['29 February to 1 ms before 28 February', window('2024-02-29T00:00Z', '2025-02-27T23:59:59.999Z'), 'weekly'],
    ['29 February to 28 February', window('2024-02-29T00:00Z', '2025-02-28T00:00Z'), 'monthly'],
    ['28 February over 29 February', window('2024-02-28T00:00Z', '2025-02-28T00:00Z'), 'monthly'],
    ['130 years', window('1970-01-01T00:00Z', '2100-01-01T00:00Z'), 'monthly'],
  ])('for %s is right', (_, asked, resolution) => {
    expect(defaultResolution(asked)).toBe(resolution);
  });

  it('never exceeds its own cap', () => {
    const instant = fc.integer({ min: START_OF_CALENDAR, max: Date.UTC(9990, 0) });
    fc.assert(
      fc.property(instant, fc.integer({ min: 1, max: 800 * DAY }), (startTime, length) => {
        const asked = { startTime, endTime: startTime + length };
        expect(exceededCap(defaultResolution(asked), asked)).toBeUndefined();
      }),
    );
  });
});

describe('the longest window of a resolution', () => {
  it.each([
    ['hourly', window('2025-01-01T00:00Z', 7 * DAY - 1), undefined],
    ['hourly', window('2025-01-01T00:00Z', 7 * DAY), undefined],
    ['hourly', window('2025-01-01T00:00Z', 7 * DAY + 1), '7 days'],
    ['daily', window('2025-01-01T00:00Z', 90 * DAY - 1), undefined],
    ['daily', window('2025-01-01T00:00Z', 90 * DAY), undefined],
    ['daily', window('2025-01-01T00:00Z', 90 * DAY + 1), '90 days'],
    ['weekly', window('2025-01-01T00:00Z', '2025-12-31T23:59:59.999Z'), undefined],
    ['weekly', window('2025-01-01T00:00Z', '2026-01-01T00:00Z'), undefined],
    ['weekly', window('2025-01-01T00:00Z', '2026-01-01T00:00:00.001Z'), '1 year'],
    ['weekly', window('2024-01-01T00:00Z', 366 * DAY), undefined],
    ['weekly', window('2024-01-01T00:00Z', 366 * DAY + 1), '1 year'],
    ['weekly', window('2024-02-29T00:00Z', '2025-02-28T00:00Z'), undefined],
    ['weekly', window('2024-02-29T00:00Z', '2025-02-28T00:00:00.001Z'), '1 year'],
    ['monthly', window('1970-01-01T00:00Z', '2100-01-01T00:00Z'), undefined],
  ] as const)('%s over %j exceeds %p', (resolution, asked, cap) => {
    expect(exceededCap(resolution, asked)).toBe(cap);
  });
});

it('resolutions are those of the specification, the finest first', () => {
  expect(RESOLUTIONS).toEqual(['hourly', 'daily', 'weekly', 'monthly']);
});

function axis(start: string, end: string, resolution: Resolution): string[] {
  return bucketAxis({ startTime: Date.parse(start), endTime: Date.parse(end) }, resolution).map(formatTimestamp);
}

const LONGEST: Record<Resolution, number> = { hourly: DAY, daily: 31 * DAY, weekly: 366 * DAY, monthly: 4000 * DAY };

it.each(RESOLUTIONS)(
  'the %s axis of any window begins and ends with its buckets and has every one between',
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

describe('the axis', () => {
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
  ])('%s', (_, resolution, start, end, expected) => {
    const length = resolution === 'hourly' ? 'YYYY-MM-DDThh'.length : 'YYYY-MM-DD'.length;
    expect(axis(start, end, resolution).map((each) => each.slice(0, length))).toEqual(expected.split(' '));
  });

  it.each([
    ['New York springs forward', '2025-03-09'],
    ['New York falls back', '2025-11-02'],
    ['Berlin springs forward', '2025-03-30'],
    ['Berlin falls back', '2025-10-26'],
    ['Sydney springs forward', '2025-10-05'],
  ])('has 24 hours and one day of 24 hours when %s', (_, day) => {
    const next = formatTimestamp(Date.parse(day) + DAY);
    expect(axis(`${day}T00:00:00Z`, next, 'hourly')).toHaveLength(24);
    expect(axis(`${day}T00:00:00Z`, next, 'daily')).toEqual([`${day}T00:00:00Z`]);
  });

  it('is the longest where the caps allow: 169 hours, 91 days, 54 weeks', () => {
    expect(axis('2025-01-01T00:30:00Z', '2025-01-08T00:30:00Z', 'hourly')).toHaveLength(169);
    expect(axis('2025-01-01T00:30:00Z', '2025-04-01T00:30:00Z', 'daily')).toHaveLength(91);
    expect(axis('2023-12-31T12:00:00Z', '2024-12-31T12:00:00Z', 'weekly')).toHaveLength(54);
  });
});

it('the axis of all years has all their months', () => {
  const always = { startTime: Date.parse('0001-01-01T00:00:00Z'), endTime: Date.parse('9999-12-31T00:00:00Z') };
  expect(bucketCount(always, 'monthly')).toBe(9_999 * 12);
  const months = bucketAxis(always, 'monthly').map(formatTimestamp);
  expect([months.length, months[0], months[1_199], months.at(-1)]).toEqual([
    9_999 * 12,
    '0001-01-01T00:00:00Z',
    '0100-12-01T00:00:00Z',
    '9999-12-01T00:00:00Z',
  ]);
});

describe('months later, and earlier', () => {
  it.each([
    ['2026-01-31T12:30:00Z', 1, '2026-02-28T12:30:00Z'],
    ['2024-01-31T00:00:00Z', 1, '2024-02-29T00:00:00Z'],
    ['2024-03-31T00:00:00.001Z', -1, '2024-02-29T00:00:00.001Z'],
    ['2024-02-29T00:00:00Z', 12, '2025-02-28T00:00:00Z'],
    ['2024-02-29T00:00:00Z', 48, '2028-02-29T00:00:00Z'],
    ['2025-11-30T23:59:59Z', 3, '2026-02-28T23:59:59Z'],
    ['0099-12-15T00:00:00Z', 1, '0100-01-15T00:00:00Z'],
  ])('of %s by %d is %s', (from, months, to) => {
    expect(formatTimestamp(plusMonths(Date.parse(from), months))).toBe(to);
  });
});
