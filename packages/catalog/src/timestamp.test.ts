import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { formatTimestamp, parseTimestamp } from './timestamp.js';

const OCTOBER = Date.UTC(2025, 9, 1);

describe('an accepted timestamp', () => {
  it.each(['Z', 'z', '+00:00'])('ends in %s', (offset) => {
    expect(parseTimestamp(`2025-10-01T00:00:00${offset}`)).toBe(OCTOBER);
  });

  it('may have a lower-case t (RFC 3339, section 5.6)', () => {
    expect(parseTimestamp('2025-10-01t00:00:00Z')).toBe(OCTOBER);
  });

  it.each([
    ['', 0],
    ['.1', 100],
    ['.12', 120],
    ['.123', 123],
    ['.1239', 123],
    ['.12399', 123],
    ['.123999', 123],
    ['.1239999', 123],
    ['.12399999', 123],
    ['.123999999', 123],
    ['.000999999', 0],
  ])('has 0 to 9 fraction digits, cut to the millisecond: "%s" is %p ms', (fraction, milliseconds) => {
    expect(parseTimestamp(`2025-10-01T00:00:00${fraction}Z`)).toBe(OCTOBER + milliseconds);
  });

  it.each(['2024-02-29', '2000-02-29', '2400-02-29', '2025-12-31', '0001-01-01'])('is on a real day: %s', (day) => {
    expect(parseTimestamp(`${day}T23:59:59.999Z`)).toBe(new Date(`${day}T23:59:59.999Z`).getTime());
  });

  it('is cut downwards before 1970 too', () => {
    expect(parseTimestamp('1969-12-31T23:59:59.9999Z')).toBe(-1);
  });
});

describe('a refused timestamp', () => {
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
    ['30 February', '2024-02-30T00:00:00Z'],
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
  ])('has %s', (_, text) => {
    expect(parseTimestamp(text)).toBeUndefined();
  });
});

describe('a printed timestamp', () => {
  it.each([
    [OCTOBER, '2025-10-01T00:00:00Z'],
    [OCTOBER + 1, '2025-10-01T00:00:00.001Z'],
    [OCTOBER + 120, '2025-10-01T00:00:00.12Z'],
    [OCTOBER + 500, '2025-10-01T00:00:00.5Z'],
    [0, '1970-01-01T00:00:00Z'],
    [-1, '1969-12-31T23:59:59.999Z'],
  ])('%p is %s: a fraction only if it is not zero', (instant, text) => {
    expect(formatTimestamp(instant)).toBe(text);
  });

  it('reads back as the same instant', () => {
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(1970, 0), max: Date.UTC(2101, 0) }), (instant) => {
        expect(parseTimestamp(formatTimestamp(instant))).toBe(instant);
      }),
    );
  });
});
