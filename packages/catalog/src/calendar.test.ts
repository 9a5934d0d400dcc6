import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  bucketAxis,
  bucketCount,
  bucketStart,
  defaultResolution,
  exceededCap,
  isResolution,
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

describe('the names of resolutions', () => {
  it('are those of the specification, the finest first', () => {
    expect(RESOLUTIONS).toEqual(['hourly', 'daily', 'weekly', 'monthly']);
  });

  it.each(['', 'Hourly', 'minutely', 'yearly', 'length'])('do not include %j', (name) => {
    expect(isResolution(name)).toBe(false);
  });
});

const HOUR = 3_600_000;

function axis(start: string, end: string, resolution: Resolution): string[] {
  return bucketAxis({ startTime: Date.parse(start), endTime: Date.parse(end) }, resolution).map(formatTimestamp);
}

/** What "calendar start" means for each resolution, read off the UTC calendar. */
const IS_CALENDAR_START: Record<Resolution, (date: Date) => boolean> = {
  hourly: (date) => date.getTime() % HOUR === 0,
  daily: (date) => date.getTime() % DAY === 0,
  weekly: (date) => date.getTime() % DAY === 0 && date.getUTCDay() === 1,
  monthly: (date) => date.getTime() % DAY === 0 && date.getUTCDate() === 1,
};
const LONGEST: Record<Resolution, number> = { hourly: DAY, daily: 31 * DAY, weekly: 366 * DAY, monthly: 4000 * DAY };
const STEP: Record<Resolution, readonly number[]> = {
  hourly: [HOUR],
  daily: [DAY],
  weekly: [7 * DAY],
  monthly: [28, 29, 30, 31].map((days) => days * DAY),
};

describe.each(RESOLUTIONS)('the %s axis of any window', (resolution) => {
  const windows = fc
    .tuple(
      fc.integer({ min: START_OF_CALENDAR, max: Date.UTC(9990, 0) }),
      fc.integer({ min: 1, max: LONGEST[resolution] }),
    )
    .map(([startTime, length]) => ({ startTime, endTime: startTime + length }));

  it('has only calendar starts', () => {
    fc.assert(
      fc.property(windows, (window) => {
        const strays = bucketAxis(window, resolution).filter(
          (start) => !IS_CALENDAR_START[resolution](new Date(start)),
        );
        expect(strays).toEqual([]);
      }),
    );
  });

  it('begins with the bucket that holds startTime', () => {
    fc.assert(
      fc.property(windows, (window) => {
        const [first = Number.NaN, second = Infinity] = bucketAxis(window, resolution);
        expect(first).toBeLessThanOrEqual(window.startTime);
        expect(second).toBeGreaterThan(window.startTime);
        expect(first).toBe(bucketStart(window.startTime, resolution));
      }),
    );
  });

  it('ascends without a gap', () => {
    fc.assert(
      fc.property(windows, (window) => {
        const starts = bucketAxis(window, resolution);
        const steps = starts.slice(1).map((start, index) => start - (starts[index] ?? Number.NaN));
        expect(steps.filter((step) => !STEP[resolution].includes(step))).toEqual([]);
      }),
    );
  });

  it('ends with the bucket that holds the last millisecond', () => {
    fc.assert(
      fc.property(windows, (window) => {
        expect(bucketAxis(window, resolution).at(-1)).toBe(bucketStart(window.endTime - 1, resolution));
      }),
    );
  });

  it('has the bucket of every instant of the window', () => {
    fc.assert(
      fc.property(windows, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (window, share) => {
        const instant = window.startTime + Math.floor(share * (window.endTime - window.startTime));
        expect(bucketAxis(window, resolution)).toContain(bucketStart(instant, resolution));
      }),
    );
  });
});

describe('the axis', () => {
  it('of hours crosses the year', () => {
    expect(axis('2024-12-31T22:30:00Z', '2025-01-01T01:00:00.001Z', 'hourly')).toEqual([
      '2024-12-31T22:00:00Z',
      '2024-12-31T23:00:00Z',
      '2025-01-01T00:00:00Z',
      '2025-01-01T01:00:00Z',
    ]);
  });

  it('does not hold a bucket that begins at endTime, which is outside', () => {
    expect(axis('2025-10-01T00:00:00Z', '2025-10-02T00:00:00Z', 'daily')).toEqual(['2025-10-01T00:00:00Z']);
  });

  it('of a window of one millisecond is one bucket', () => {
    expect(axis('2025-10-15T13:14:15Z', '2025-10-15T13:14:15.001Z', 'monthly')).toEqual(['2025-10-01T00:00:00Z']);
  });

  it('of days has 29 February only in a leap year', () => {
    expect(axis('2024-02-28T12:00:00Z', '2024-03-01T12:00:00Z', 'daily')).toHaveLength(3);
    expect(axis('2025-02-28T12:00:00Z', '2025-03-01T12:00:00Z', 'daily')).toHaveLength(2);
  });

  it('of weeks follows ISO 8601: from Monday, whatever the year does', () => {
    expect(axis('2025-01-01T00:00:00Z', '2025-01-07T00:00:00Z', 'weekly')).toEqual([
      '2024-12-30T00:00:00Z',
      '2025-01-06T00:00:00Z',
    ]);
  });

  it('of weeks puts Sunday into the week that ends', () => {
    expect(axis('2025-10-05T23:59:59.999Z', '2025-10-06T00:00:00.001Z', 'weekly')).toEqual([
      '2025-09-29T00:00:00Z',
      '2025-10-06T00:00:00Z',
    ]);
  });

  it('of weeks crosses a 53rd week', () => {
    expect(axis('2020-12-27T00:00:00Z', '2021-01-05T00:00:00Z', 'weekly')).toEqual([
      '2020-12-21T00:00:00Z',
      '2020-12-28T00:00:00Z',
      '2021-01-04T00:00:00Z',
    ]);
  });

  it('of weeks begins in 1969 for a window from 1970, which was a Thursday', () => {
    expect(axis('1970-01-01T00:00:00Z', '1970-01-06T00:00:00Z', 'weekly')).toEqual([
      '1969-12-29T00:00:00Z',
      '1970-01-05T00:00:00Z',
    ]);
  });

  it('of months starts each on the first, also after a start on the 31st', () => {
    expect(axis('2025-01-31T23:00:00Z', '2025-04-01T00:00:00.001Z', 'monthly')).toEqual([
      '2025-01-01T00:00:00Z',
      '2025-02-01T00:00:00Z',
      '2025-03-01T00:00:00Z',
      '2025-04-01T00:00:00Z',
    ]);
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

  it('keep the time, and the day where the month has it, else take its last', () => {
    const instants = fc.integer({ min: START_OF_CALENDAR, max: Date.UTC(9990, 0) });
    fc.assert(
      fc.property(instants, fc.integer({ min: -100, max: 100 }), (instant, months) => {
        const [before, after] = [new Date(instant), new Date(plusMonths(instant, months))];
        const number = before.getUTCFullYear() * 12 + before.getUTCMonth() + months;
        // The calendar repeats itself every 400 years, and Date.UTC takes the years 0 to 99 for others.
        const days = new Date(Date.UTC(400, number + 1, 0)).getUTCDate();
        expect(after.getUTCFullYear() * 12 + after.getUTCMonth()).toBe(number);
        expect(after.getUTCDate()).toBe(Math.min(before.getUTCDate(), days));
        expect(after.getTime() - bucketStart(after.getTime(), 'daily')).toBe(instant - bucketStart(instant, 'daily'));
      }),
    );
  });
});
