import { expect, it } from '@jest/globals';
import { formatRejectionId, parseRejectionId } from './rejection-selection.js';

it.each([
  [0, 0n, '0-0'],
  [Date.UTC(2026, 0, 1), 123_456_789n, 'mjuohs00-21i3v9'],
  [Date.UTC(2200, 0, 1) - 1, 2n ** 64n - 1n, '2kmc0anzz-3w5e11264sgsf'],
])('%d and %d are %s, and back', (receivedAt, fingerprint, text) => {
  expect(formatRejectionId({ receivedAt, fingerprint })).toBe(text);
  expect(parseRejectionId(text)).toEqual({ receivedAt, fingerprint });
});

it.each(['', '1', '-', '1-', 'A-1', '1-3w5e11264sgsg', '1-1-1'])('"%s" is no id', (text) => {
  expect(parseRejectionId(text)).toBeUndefined();
});
