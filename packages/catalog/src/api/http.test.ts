import { expect, it } from '@jest/globals';
import { parseRetryAfter } from './http.js';

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
