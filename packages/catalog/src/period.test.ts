import { describe, expect, it } from '@jest/globals';
import type { Window } from './calendar.js';
import { lastUnits, monthsTouched, upTo, wholeMonths } from './period.js';
import { formatTimestamp } from './timestamp.js';

const NOW = Date.parse('2026-03-21T16:49:00Z');
const window = (from: string, to: string): Window => ({ startTime: Date.parse(from), endTime: Date.parse(to) });
const text = (of: Window | undefined) => of && [formatTimestamp(of.startTime), formatTimestamp(of.endTime)];

describe('the last hours and days', () => {
  it.each([
    [24, 'hourly', NOW, '2026-03-20T17:00:00Z', '2026-03-21T17:00:00Z'],
    [1, 'daily', NOW, '2026-03-21T00:00:00Z', '2026-03-22T00:00:00Z'],
    [30, 'daily', NOW, '2026-02-20T00:00:00Z', '2026-03-22T00:00:00Z'],
    [2, 'daily', Date.parse('2026-03-21T00:00:00Z'), '2026-03-20T00:00:00Z', '2026-03-22T00:00:00Z'],
  ] as const)('%d, %s, at %d are whole and hold the present', (count, unit, now, from, to) => {
    expect(text(lastUnits(count, unit, now))).toEqual([from, to]);
  });
});

describe('the instant that answers are as of', () => {
  it('ends what is asked, and leaves a window in the future alone', () => {
    const march = window('2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z');
    expect(text(upTo(march, NOW))).toEqual(['2026-03-01T00:00:00Z', '2026-03-21T16:49:00Z']);
    const february = window('2026-02-01T00:00:00Z', '2026-03-01T00:00:00Z');
    expect(upTo(february, NOW)).toEqual(february);
    const april = window('2026-04-01T00:00:00Z', '2026-05-01T00:00:00Z');
    expect(upTo(april, NOW)).toEqual(april);
  });
});

describe('calendar months', () => {
  it.each([
    ['2026-02-01T00:00:00Z', '2026-03-01T00:00:00Z', 1, 1],
    ['2025-11-01T00:00:00Z', '2026-02-01T00:00:00Z', 3, 3],
    ['2026-02-01T00:00:00Z', '2026-03-01T00:00:01Z', undefined, 2],
    ['2026-02-28T23:00:00Z', '2026-03-01T00:00:00Z', undefined, 1],
  ])('%s to %s', (from, to, whole, touched) => {
    expect([wholeMonths(window(from, to)), monthsTouched(window(from, to))]).toEqual([whole, touched]);
  });
});
