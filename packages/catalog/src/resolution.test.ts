import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { defaultResolution, exceededCap, isResolution, RESOLUTIONS } from './resolution.js';

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
    const instant = fc.integer({ min: 0, max: Date.UTC(2100, 0) });
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
