import { describe, expect, it } from '@jest/globals';
import { exceededCap, formatTimestamp, type Resolution, type Window } from '@meterline/catalog';
import {
  bucketText,
  bucketWindow,
  monthOf,
  parseDay,
  periodText,
  presetWindow,
  tickText,
  unfinishedBucket,
  windowText,
} from './period.js';

const NOW = Date.parse('2026-03-21T16:49:00Z');
const window = (from: string, to: string): Window => ({ startTime: Date.parse(from), endTime: Date.parse(to) });
const text = (of: Window | undefined) => of && [formatTimestamp(of.startTime), formatTimestamp(of.endTime)];

describe('a preset', () => {
  it.each([
    ['24h', '2026-03-20T17:00:00Z', '2026-03-21T17:00:00Z'],
    ['7d', '2026-03-15T00:00:00Z', '2026-03-22T00:00:00Z'],
    ['30d', '2026-02-20T00:00:00Z', '2026-03-22T00:00:00Z'],
    ['90d', '2025-12-22T00:00:00Z', '2026-03-22T00:00:00Z'],
    ['month', '2026-03-01T00:00:00Z', '2026-03-22T00:00:00Z'],
    ['last-month', '2026-02-01T00:00:00Z', '2026-03-01T00:00:00Z'],
    ['week', '2026-03-16T00:00:00Z', '2026-03-22T00:00:00Z'],
    ['quarter', '2026-01-01T00:00:00Z', '2026-03-22T00:00:00Z'],
    ['year', '2026-01-01T00:00:00Z', '2026-03-22T00:00:00Z'],
    ['12m', '2025-04-01T00:00:00Z', '2026-04-01T00:00:00Z'],
  ] as const)('%s is whole and holds the present', (preset, from, to) => {
    expect(text(presetWindow(preset, NOW))).toEqual([from, to]);
  });

  it.each([
    ['24h', 'hourly'],
    ['7d', 'hourly'],
    ['90d', 'daily'],
    ['12m', 'weekly'],
  ] as const)('%s is within the cap of %s', (preset, resolution) => {
    expect(exceededCap(resolution, presetWindow(preset, NOW))).toBeUndefined();
  });
});

describe('the instant that a screen is as of', () => {
  it('is in a bucket that is not over, unless the window ends before', () => {
    const days = ['2026-03-20T00:00:00Z', '2026-03-21T00:00:00Z', '2026-03-22T00:00:00Z'].map((day) => Date.parse(day));
    expect(unfinishedBucket(days, 'daily', NOW)).toBe(1);
    expect(unfinishedBucket(days.slice(0, 1), 'daily', NOW)).toBeUndefined();
    expect(unfinishedBucket(days, 'daily', days[1] ?? 0)).toBeUndefined();
    expect(unfinishedBucket([Date.parse('2026-03-01T00:00:00Z')], 'monthly', NOW)).toBe(0);
  });
});

describe('a calendar month', () => {
  it('is known by its name', () => {
    const february = window('2026-02-01T00:00:00Z', '2026-03-01T00:00:00Z');
    expect(monthOf(february)).toBe(february.startTime);
    expect(monthOf({ ...february, endTime: february.endTime + 1_000 })).toBeUndefined();
    expect(periodText({ from: february.startTime, to: february.endTime })).toBe('February 2026');
    expect(periodText({ preset: 'quarter' })).toBe('Quarter to date');
  });
});

describe('times as people read them', () => {
  it.each([
    ['2026-11-01T00:00:00Z', '2026-11-22T00:00:00Z', '1 Nov – 21 Nov 2026'],
    ['2025-12-01T00:00:00Z', '2026-02-01T00:00:00Z', '1 Dec 2025 – 31 Jan 2026'],
    ['2026-11-21T00:00:00Z', '2026-11-22T00:00:00Z', '21 Nov 2026'],
    ['2026-11-20T18:00:00Z', '2026-11-21T18:00:00Z', '20 Nov 18:00 – 21 Nov 2026 18:00'],
    ['2026-10-01T00:00:00Z', '2026-10-21T16:49:00Z', '1 Oct – 21 Oct 2026 16:49'],
  ])('%s to %s is %s', (from, to, expected) => {
    expect(windowText(window(from, to))).toBe(expected);
  });

  it('the year goes without saying where it is known', () => {
    const october = window('2026-10-01T00:00:00Z', '2026-10-21T16:49:00Z');
    expect(windowText(october, NOW)).toBe('1 Oct – 21 Oct 16:49');
    expect(windowText(october, Date.parse('2027-01-01T00:00:00Z'))).toBe('1 Oct – 21 Oct 2026 16:49');
  });

  it.each<[Resolution, string, string, string]>([
    ['hourly', '07:00', '07:00', 'Sat, 21 Nov 2026, 07:00–08:00'],
    ['hourly', '00:00', '21 Nov', 'Sat, 21 Nov 2026, 00:00–01:00'],
    ['daily', '00:00', '21 Nov', 'Sat, 21 Nov 2026'],
    ['weekly', '00:00', '21 Nov', 'Week of 21 Nov 2026'],
    ['monthly', '00:00', 'Nov 2026', 'November 2026'],
  ])('a bucket of a series that is %s, at %s', (resolution, time, tick, full) => {
    const bucket = Date.parse(`2026-11-21T${time}:00Z`);
    expect([tickText(bucket, resolution), bucketText(bucket, resolution)]).toEqual([tick, full]);
  });

  it('a bucket at the edge is as long as it is in the window', () => {
    const shown = window('2026-11-04T00:00:00Z', '2026-11-22T00:00:00Z');
    const monday = Date.parse('2026-11-02T00:00:00Z');
    expect(text(bucketWindow(monday, 'weekly', shown))).toEqual(['2026-11-04T00:00:00Z', '2026-11-09T00:00:00Z']);
    const november = Date.parse('2026-11-01T00:00:00Z');
    expect(text(bucketWindow(november, 'monthly', shown))).toEqual(['2026-11-04T00:00:00Z', '2026-11-22T00:00:00Z']);
  });
});

describe('a day that a person writes', () => {
  it.each([
    ['1 Nov 2026', '2026-11-01'],
    ['30 Sept 2026', '2026-09-30'],
    [' 21 november 2026 ', '2026-11-21'],
    ['2026-02-28', '2026-02-28'],
  ])('may be %s', (text, day) => {
    expect(parseDay(text)).toBe(Date.parse(day));
  });

  it.each(['', '31 Jun 2026', '2026-02-30', '11/01/2026', '1 Foo 2026', '5'])('cannot be %j', (text) => {
    expect(parseDay(text)).toBeUndefined();
  });
});
