import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { formatTimestamp, parseRetryAfter, parseTimestamp } from './timestamp.js';

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

it.each([
  ['0', 0],
  ['120', 120_000],
  [' 5 ', 5_000],
  ['Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
  ['Saturday, 21-Nov-26 12:00:30 GMT', 30_000],
  ['Sat, 21 Nov 2026 11:59:00 GMT', 0],
  ...[null, '', 'soon', '-1', '1.5', '2026-11-21', 'Sat, 99 Nov 2026 12:00:30 GMT'].map(
    (value) => [value, undefined] as const,
  ),
])('a Retry-After of %j asks for a pause of %p ms', (value, expected) => {
  expect(parseRetryAfter(value, new Date('2026-11-21T12:00:00Z'))).toBe(expected);
});
