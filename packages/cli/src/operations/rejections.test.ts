import { expect, it } from '@jest/globals';
import type { OpenRejection } from '@meterline/warehouse';
import { formatRejectionId, parseRejectionId, settlementGroups } from './rejections.js';

function rejection(payloadBytes: number, reason: OpenRejection['reason'] = 'invalid_usage'): OpenRejection {
  const key = { receivedAt: 0, fingerprint: 0n, jobId: '1', position: 0 };
  return { ...key, accountId: '', reason, message: '', payloadBytes };
}
const job = (megabytes: number) => rejection(megabytes * 1024 * 1024, 'job_too_large');

it.each<[string, OpenRejection[], number[]]>([
  ['at most 500 rejections', Array.from({ length: 1_001 }, () => rejection(100)), [500, 500, 1]],
  ['at most 4 MB, or one rejection', [job(2), job(2), job(1), job(9), job(1)], [2, 1, 1, 1]],
  [
    'one that may hold others as their first alone',
    [50, 50, 9_000, 50, 9_000].map((size) => rejection(size)),
    [2, 2, 1],
  ],
  ['nothing where there is nothing', [], []],
])('groups have %s', (_what, rejections, sizes) => {
  expect(settlementGroups(rejections).map((group) => group.length)).toEqual(sizes);
});

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
