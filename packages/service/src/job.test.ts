import { describe, expect, it } from '@jest/globals';
import { MAX_JOB_BYTES, MAX_JOB_VALUES, QUEUE_NAME, QUEUE_PREFIX } from '@meterline/catalog/plain';
import { eventsOfJob, tooManyBytes, tooManyValues } from './job.js';

describe('a job on the queue', () => {
  it('jobs are in the queue usage-events, with the prefix of BullMQ', () => {
    expect([QUEUE_NAME, QUEUE_PREFIX]).toEqual(['usage-events', 'bull']);
  });

  it.each<[unknown, readonly unknown[]]>([
    [{ eventId: 'e' }, [{ eventId: 'e' }]],
    [{ events: [{ eventId: 'e' }, 'no event', null] }, [{ eventId: 'e' }, 'no event', null]],
    [{ events: Array(5_000).fill({}) }, Array(5_000).fill({})],
  ])('a job may be one event, or a list of up to 5,000, good and bad ones alike (case %#)', (data, value) => {
    expect(eventsOfJob(data)).toEqual({ ok: true, value });
  });

  it.each([
    ['job_not_an_object', [null, undefined, 'text', 1, true, [], [{}]]],
    ['job_invalid', [null, 'text', {}, 1].map((events) => ({ events }))],
    ['job_empty', [{ events: [] }]],
    ['job_too_large', [{ events: Array(5_001).fill({}) }]],
  ])('a job is rejected whole as %s', (reason, data) => {
    expect(data.map(eventsOfJob)).toMatchObject(data.map(() => ({ ok: false, reason })));
  });

  it('a job with events must not have other fields, and the message names them', () => {
    const message = 'a job with "events" must have no other field; remove tenant';
    expect(eventsOfJob({ events: [{}], tenant: 'a' })).toEqual({ ok: false, reason: 'job_invalid', message });
  });
});

const NAME = '𝔸'.repeat(256);
const LONGEST = {
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  ...{ accountId: NAME, workspace: NAME, resourceType: 'mcp_server', resourceName: NAME, resourceUuid: NAME },
  billingDimension: 'mcp_server_compute_runtime_gbs',
  usage: '123456789012345.123456789',
  timestamp: '2026-01-01T00:00:00.123456789+00:00',
  ...{ revision: 65_535, void: false },
};

describe('the size of a job', () => {
  it('a job may hold 5,000 events of maximum size, and the message for larger jobs names the limit in bytes', () => {
    const text = JSON.stringify({ events: Array(5_000).fill(LONGEST) });
    expect([tooManyBytes(Buffer.byteLength(text)), tooManyValues(text)]).toEqual([undefined, undefined]);
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
  ])('the size of a job has a limit of values, such as %s', (value, before, after, others) => {
    const text = (values: number) => before + Array(values).fill(value).join(',') + after;
    // An object counts as one, and its comma as another.
    const each = value === '0' ? 1 : 2;
    expect(tooManyValues(text(Math.floor((MAX_JOB_VALUES - others) / each)))).toBeUndefined();
    expect(tooManyValues(text(MAX_JOB_VALUES / each + 2))).toMatchObject({ reason: 'job_oversized' });
  });

  it('counting JSON values skips strings and continues after them', () => {
    const inside = [
      ',[{'.repeat(MAX_JOB_VALUES),
      '\\",'.repeat(MAX_JOB_VALUES),
      `${'\\\\'.repeat(MAX_JOB_VALUES)}\\",`,
    ];
    expect(inside.map((text) => tooManyValues(`{"workspace":"${text}"}`))).toEqual(inside.map(() => undefined));
    expect(tooManyValues(`["\\\\",${'0,'.repeat(MAX_JOB_VALUES)}0]`)).toBeDefined();
  });
});
