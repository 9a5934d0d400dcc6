import { describe, expect, it } from '@jest/globals';
import {
  eventsOfJob,
  MAX_JOB_BYTES,
  MAX_JOB_VALUES,
  QUEUE_NAME,
  QUEUE_PREFIX,
  tooManyBytes,
  tooManyValues,
} from './queue.js';

function reasonFor(data: unknown): string | undefined {
  const events = eventsOfJob(data);
  return events.ok ? undefined : events.reason;
}

describe('a job on the queue', () => {
  it('lies in usage-events, under the prefix of BullMQ', () => {
    expect([QUEUE_NAME, QUEUE_PREFIX]).toEqual(['usage-events', 'bull']);
  });

  it('may be one event', () => {
    const event = { eventId: 'e' };
    expect(eventsOfJob(event)).toEqual({ ok: true, value: [event] });
  });

  it('may be a list of events, good and bad ones alike', () => {
    const events = [{ eventId: 'e' }, 'not an event', null];
    expect(eventsOfJob({ events })).toEqual({ ok: true, value: events });
  });

  it.each([
    [5_000, undefined],
    [5_001, 'job_too_large'],
    [0, 'job_empty'],
  ])('of %d events is refused as %s', (events, reason) => {
    expect(reasonFor({ events: new Array(events).fill({}) })).toBe(reason);
  });

  it.each([[null], [undefined], ['text'], [1], [true], [[]], [[{}]]])('may not be %j', (data) => {
    expect(reasonFor(data)).toBe('job_not_an_object');
  });

  it.each([[null], ['text'], [{}], [1]])('may not have %j for its events', (events) => {
    expect(reasonFor({ events })).toBe('job_invalid');
  });

  it('may not have another field beside its events, and the message names it', () => {
    expect(eventsOfJob({ events: [{}], tenant: 'a' })).toEqual({
      ok: false,
      reason: 'job_invalid',
      message: 'beside "events" a job holds no other field, but this one has tenant',
    });
  });
});

const EVENT = {
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  accountId: '𝔸'.repeat(256),
  workspace: '𝔸'.repeat(256),
  resourceType: 'mcp_server',
  resourceName: '𝔸'.repeat(256),
  resourceUuid: '𝔸'.repeat(256),
  billingDimension: 'mcp_server_compute_runtime_gbs',
  usage: '123456789012345.123456789',
  timestamp: '2026-01-01T00:00:00.123456789+00:00',
  revision: 65_535,
  void: false,
};

describe('the size of a job', () => {
  it('has room for 5,000 of the longest events', () => {
    const text = JSON.stringify({ events: new Array(5_000).fill(EVENT) });
    expect(tooManyBytes(Buffer.byteLength(text))).toBeUndefined();
    expect(tooManyValues(text)).toBeUndefined();
  });

  it('has a limit in bytes, which the message names', () => {
    expect(tooManyBytes(MAX_JOB_BYTES)).toBeUndefined();
    expect(tooManyBytes(MAX_JOB_BYTES + 1)).toMatchObject({
      reason: 'job_oversized',
      message: 'the data of a job may have at most 25165824 bytes, this one has 25165825; split it',
    });
  });

  it.each([
    ['{}', '{"events":[', ']}', 4],
    ['[]', '[', ']', 2],
    ['0', '[', ']', 2],
  ])('has a limit of values, such as %s', (value, before, after, others) => {
    const text = (values: number) => before + new Array(values).fill(value).join(',') + after;
    // An object counts as one, and its comma as another.
    const each = value === '0' ? 1 : 2;
    expect(tooManyValues(text(Math.floor((MAX_JOB_VALUES - others) / each)))).toBeUndefined();
    expect(tooManyValues(text(MAX_JOB_VALUES / each + 2))).toMatchObject({ reason: 'job_oversized' });
  });

  it.each([',[{'.repeat(MAX_JOB_VALUES), '\\",'.repeat(MAX_JOB_VALUES), `${'\\\\'.repeat(MAX_JOB_VALUES)}\\",`])(
    'does not count what is inside a string (case %#)',
    (inside) => expect(tooManyValues(`{"workspace":"${inside}"}`)).toBeUndefined(),
  );

  it('counts after a string that ends with a backslash', () => {
    expect(tooManyValues(`["\\\\",${'0,'.repeat(MAX_JOB_VALUES)}0]`)).toBeDefined();
  });
});
