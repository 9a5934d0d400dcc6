import { describe, expect, it } from '@jest/globals';
import { MeterlineConnectionError, MeterlineError } from '@meterline/client';
import {
  problemOf,
  retryDelay,
  shouldRetry,
  shouldRetryExport,
  signInProblem,
  waitingText,
  waitText,
} from './problem.js';

const failure = (status: number, code = 'some_code', retryAfter?: number) =>
  new MeterlineError({ status, code, message: 'The message of the API.', requestId: 'r-1', retryAfter });

it.each([
  [failure(403, 'forbidden'), 'You don’t have access to acme', false],
  [failure(403, 'insufficient_scope'), 'This token cannot read billing data', false],
  [failure(400, 'cursor_expired'), 'This list has expired', true],
  [failure(400, 'invalid_parameter'), 'The service rejected the request', false],
  [failure(429, 'too_many_stored_groups', 86_400), 'The service rejected the request', true],
  [new TypeError('x'), 'Something went wrong on this page', true],
])('the problem of %s has the title %s and a retry button: %s', (error, title, canRetry) => {
  expect(problemOf(error, 'acme')).toMatchObject({ title, canRetry });
});

it('the problem of a forbidden account has the reason and the next step', () => {
  const details = [{ message: 'The key belongs to another account.' }];
  const error = new MeterlineError({ status: 403, code: 'forbidden', message: 'Access denied', details });
  expect(problemOf(error, 'acme').text).toMatch(/^The key belongs to another account\. Choose another account/);
  expect(problemOf(failure(403, 'forbidden'), 'acme').text).toMatch(/^The account does not exist, or your key/);
});

it('a failed sign-in shows the message of the API', () => {
  const expired = 'The API key expired at 2026-11-23T15:26:00.000Z; ask an admin of the account for another one.';
  expect(signInProblem(new MeterlineError({ status: 401, code: 'unauthorized', message: expired }))).toBe(expired);
});

describe('the page', () => {
  it.each([
    [failure(429), 'Too many requests.'],
    [failure(500), 'The service returned an error (500, request ID r-1).'],
    [failure(502), 'The service returned an error (502, request ID r-1).'],
    [failure(408), 'The service returned an error (408, request ID r-1).'],
    [new MeterlineConnectionError('x'), 'The service is unreachable.'],
  ])('after %s, the page shows the reason and retries forever, and an export retries a few times', (error, text) => {
    expect(shouldRetry(error)).toBe(true);
    expect(waitingText(error)).toBe(text);
    expect([0, 4].map((failures) => shouldRetryExport(failures, error))).toEqual([true, false]);
  });

  const full = failure(429, 'too_many_stored_groups', 86_400);
  it.each([failure(400), failure(401), failure(403), failure(501), full, new TypeError('x')])(
    'the page does not retry after %s',
    (error) => {
      expect(shouldRetry(error)).toBe(false);
    },
  );

  it('the delay is the Retry-After of the service or a growing back-off, and an export waits at most a minute', () => {
    expect(retryDelay(0, failure(429, 'some_code', 20))).toBe(20_000);
    expect([0, 1, 2, 9].map((failures) => retryDelay(failures, failure(503)))).toEqual([1_000, 2_000, 4_000, 15_000]);
    expect([60, 61].map((requested) => shouldRetryExport(0, failure(429, 'some_code', requested)))).toEqual([
      true,
      false,
    ]);
    expect([7, 3600].map(waitText)).toEqual(['in 7 s', 'in 60 minutes']);
  });
});
