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
  new MeterlineError({ status, code, message: 'What the API says.', requestId: 'r-1', retryAfter });

it.each([
  [failure(403, 'forbidden'), 'You have no access to acme', false],
  [failure(403, 'insufficient_scope'), 'This token may not read billing data', false],
  [failure(400, 'cursor_expired'), 'This list is too old to continue', true],
  [failure(400, 'invalid_parameter'), 'The service refused the request', false],
  [failure(429, 'too_many_stored_groups', 86_400), 'The service refused the request', true],
  [new TypeError('x'), 'Something went wrong in this page', true],
])('the problem shown for %s has a title, and a way on where there is one', (error, title, canRetry) => {
  expect(problemOf(error, 'acme')).toMatchObject({ title, canRetry });
});

it('the problem shown for a forbidden account says why, and what to do', () => {
  const details = [{ message: 'The key belongs to another account.' }];
  const refused = new MeterlineError({ status: 403, code: 'forbidden', message: 'Access denied', details });
  expect(problemOf(refused, 'acme').text).toMatch(/^The key belongs to another account\. Choose one of your accounts/);
  expect(problemOf(failure(403, 'forbidden'), 'acme').text).toMatch(/^There is no such account, or your key/);
});

it('a sign-in shows what the API says of a key that it does not accept', () => {
  const expired = 'The API key expired at 2026-11-23T15:26:00.000Z; ask an admin of the account for another one.';
  expect(signInProblem(new MeterlineError({ status: 401, code: 'unauthorized', message: expired }))).toBe(expired);
});

describe('the page', () => {
  it.each([
    [failure(429), 'Too many requests: the service asks to wait.'],
    [failure(500), 'The service has a problem (500, request r-1).'],
    [failure(502), 'The service has a problem (502, request r-1).'],
    [failure(408), 'The service has a problem (408, request r-1).'],
    [new MeterlineConnectionError('x'), 'The service cannot be reached.'],
  ])('the page tries again for ever after %s, and says so, and an export a few times', (error, text) => {
    expect(shouldRetry(error)).toBe(true);
    expect(waitingText(error)).toBe(text);
    expect([0, 4].map((failures) => shouldRetryExport(failures, error))).toEqual([true, false]);
  });

  const full = failure(429, 'too_many_stored_groups', 86_400);
  it.each([failure(400), failure(401), failure(403), failure(501), full, new TypeError('x')])(
    'the page does not try again after %s',
    (error) => {
      expect(shouldRetry(error)).toBe(false);
    },
  );

  it('the page waits as long as the service asks, or else longer each time, and no export longer than a minute', () => {
    expect(retryDelay(0, failure(429, 'some_code', 20))).toBe(20_000);
    expect([0, 1, 2, 9].map((failures) => retryDelay(failures, failure(503)))).toEqual([1_000, 2_000, 4_000, 15_000]);
    expect([60, 61].map((requested) => shouldRetryExport(0, failure(429, 'some_code', requested)))).toEqual([
      true,
      false,
    ]);
    expect([7, 3600].map(waitText)).toEqual(['in 7 s', 'in 60 minutes']);
  });
});
