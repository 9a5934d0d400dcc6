import { describe, expect, it } from '@jest/globals';
import { parseUsageEvent } from '@meterline/catalog';
import { MeterlineConnectionError, MeterlineError } from '@meterline/client';
import { firstEvent, keyCommand, producerCode, sendCommand } from './first-event.js';
import { problemOf, retryDelay, shouldRetry } from './problem.js';

const failure = (status: number, code = 'some_code', retryAfter?: number) =>
  new MeterlineError({ status, code, message: 'What the API says.', requestId: 'r-1', retryAfter });

describe('a problem', () => {
  it.each([
    [failure(403, 'forbidden'), 'You have no access to acme', false],
    [failure(403, 'insufficient_scope'), 'This token may not read billing data', false],
    [failure(429, 'too_many_requests', 7), 'Too many requests', true],
    [failure(503, 'storage_unavailable'), 'The service has a problem', true],
    [failure(400, 'cursor_expired'), 'This list is too old to continue', true],
    [failure(400, 'invalid_parameter'), 'The service refused the request', false],
    [new MeterlineConnectionError('x'), 'The service cannot be reached', true],
    [new TypeError('x'), 'Something went wrong in this page', true],
  ])('has a title, and a way on where there is one: %s', (error, title, canRetry) => {
    expect(problemOf(error, 'acme')).toMatchObject({ title, canRetry });
  });

  it('names the request, and the wait that is asked for', () => {
    expect(problemOf(failure(429, 'too_many_requests', 7), 'acme')).toMatchObject({
      requestId: 'r-1',
      text: expect.stringContaining('in 7 seconds'),
    });
  });
});

describe('trying again', () => {
  const asking = (status: number, retryAfter: number) => failure(status, 'some_code', retryAfter);

  it.each([429, 502, 503, 504])('makes sense a few times after %d', (status) => {
    expect([shouldRetry(0, failure(status)), shouldRetry(4, failure(status))]).toEqual([true, false]);
  });

  it('makes none when the service asks for too long a wait', () => {
    expect([shouldRetry(0, asking(429, 60)), shouldRetry(0, asking(429, 61))]).toEqual([true, false]);
  });

  it.each([400, 401, 403, 500])('makes none after %d', (status) => {
    expect(shouldRetry(0, failure(status))).toBe(false);
  });

  it('makes sense when no answer came, and none after an error in the page', () => {
    expect(shouldRetry(0, new MeterlineConnectionError('x'))).toBe(true);
    expect(shouldRetry(0, new TypeError('x'))).toBe(false);
  });

  it('waits as long as the service asks, or else longer each time', () => {
    expect(retryDelay(0, asking(429, 20))).toBe(20_000);
    expect([0, 1, 2, 9].map((failures) => retryDelay(failures, failure(503)))).toEqual([1_000, 2_000, 4_000, 15_000]);
  });
});

describe('the first event', () => {
  const now = new Date('2026-11-21T16:49:12.345Z');
  const event = firstEvent("o'hara & co", now, new Uint8Array(10).fill(0xff));

  it('is one that the worker accepts', () => {
    expect(parseUsageEvent(event, now.getTime())).toMatchObject({ ok: true });
    // 2026-11-21T16:49:12.345Z in milliseconds, then version 7 and the variant.
    expect(event.eventId).toBe(
      `${now
        .getTime()
        .toString(16)
        .padStart(12, '0')
        .replace(/^(.{8})/, '$1-')}-7fff-bfff-ffffffffffff`,
    );
  });

  it('is sent by a command that leaves every name alone', () => {
    const [command, _headers, json, end] = sendCommand(event, 'https://collector.example.com').split('\n');
    expect([command, end]).toEqual([
      'curl -sS "https://collector.example.com/v0/accounts/o%27hara%20%26%20co/events" \\',
      'EVENT',
    ]);
    expect(JSON.parse(json ?? '')).toEqual(event);
    expect(keyCommand("o'hara & co")).toContain("--account 'o'\\''hara & co' ");
  });

  it('is sent to where a variable says, when the page does not know the collector', () => {
    expect(sendCommand(event)).toContain('curl -sS "$COLLECTOR/v0/accounts/');
    expect(producerCode(event)).toContain('url: process.env.COLLECTOR,');
  });
});
