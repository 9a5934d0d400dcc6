import { describe, expect, it } from '@jest/globals';
import { payloadReference } from '@meterline/catalog';
import { applyEdits, parseEdit, resendable } from './resendable.js';

const NO_EDITS = { set: new Map<string, unknown>(), unset: new Set<string>() };
const EVENT = { reason: 'invalid_usage', position: 0 } as const;
const DEEP = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;

describe('what is sent again', () => {
  it('is the event as it was rejected', () => {
    expect(resendable(EVENT, '{"usage":-1}', undefined, NO_EDITS)).toEqual({ kind: 'event', event: { usage: -1 } });
  });

  it('is the event with its edits', () => {
    const edits = { set: new Map([['usage', 1]]), unset: new Set(['extra']) };
    expect(resendable(EVENT, '{"usage":-1,"extra":{}}', undefined, edits)).toEqual({
      kind: 'event',
      event: { usage: 1 },
    });
  });

  it('gives a number beyond all doubles in words, rather than as null', () => {
    expect(resendable(EVENT, '{"usage":1e999}', undefined, NO_EDITS)).toEqual({
      kind: 'event',
      event: { usage: 'Infinity' },
    });
  });

  it('is an event that holds events, as one event', () => {
    const payload = '{"events":[{"eventId":"a"},{"eventId":"b"}]}';
    const rejection = { reason: 'missing_field', position: 0 } as const;
    expect(resendable(rejection, payload, undefined, NO_EDITS)).toEqual({ kind: 'event', event: JSON.parse(payload) });
  });

  it.each(['"text"', '[{"usage":1}]', '{"events":[]}', '{"events":[{}],"source":1}', 'null'])(
    'is the whole job when it was rejected whole: %s',
    (payload) => {
      const rejection = { reason: 'job_invalid', position: 0 } as const;
      expect(resendable(rejection, payload, undefined, NO_EDITS)).toEqual({
        kind: 'jobs',
        jobs: [JSON.parse(payload)],
      });
    },
  );

  it('is a job without the field that does not belong there', () => {
    const rejection = { reason: 'job_invalid', position: 0 } as const;
    const edits = { ...NO_EDITS, unset: new Set(['source']) };
    expect(resendable(rejection, '{"events":[{}],"source":1}', undefined, edits)).toEqual({
      kind: 'jobs',
      jobs: [{ events: [{}] }],
    });
  });

  it('is two jobs for one that held too many events', () => {
    const events = Array.from({ length: 5_001 }, (_, n) => ({ n }));
    const rejection = { reason: 'job_too_large', position: 0 } as const;
    expect(resendable(rejection, JSON.stringify({ events }), undefined, NO_EDITS)).toEqual({
      kind: 'jobs',
      jobs: [{ events: events.slice(0, 5_000) }, { events: events.slice(5_000) }],
    });
  });
});

describe('an event that is nested too deeply to be kept alone', () => {
  const job = `{"events":[{"usage":0},{"usage":1,"extra":${DEEP}},{"usage":2,"extra":${DEEP}}]}`;
  const unset = { ...NO_EDITS, unset: new Set(['extra']) };

  it('is found in its job, and sent once its depth is removed', () => {
    const rejection = { reason: 'unknown_field', position: 1 } as const;
    expect(resendable(rejection, job, undefined, unset)).toEqual({ kind: 'event', event: { usage: 1 } });
  });

  it('is found in the job that another rejection keeps', () => {
    const rejection = { reason: 'unknown_field', position: 2 } as const;
    expect(resendable(rejection, payloadReference(1), job, unset)).toEqual({ kind: 'event', event: { usage: 2 } });
  });

  it('is found when it was its job', () => {
    const rejection = { reason: 'unknown_field', position: 0 } as const;
    expect(resendable(rejection, `{"usage":3,"extra":${DEEP}}`, undefined, unset)).toEqual({
      kind: 'event',
      event: { usage: 3 },
    });
  });

  it.each([
    ['as it is', job, 1, undefined, 'nested too deeply'],
    ['as a reference that leads nowhere', payloadReference(1), 2, undefined, 'is gone'],
  ] as const)('cannot be sent %s', (_, payload, position, referenced, why) => {
    expect(resendable({ reason: 'unknown_field', position }, payload, referenced, NO_EDITS)).toEqual({
      kind: 'unsendable',
      why: expect.stringContaining(why),
    });
  });
});

it.each([
  ['{"eventId": oops', NO_EDITS, 'not JSON'],
  ['"text"', { ...NO_EDITS, unset: new Set(['x']) }, 'no fields to edit'],
])('%s cannot be sent', (payload, edits, why) => {
  expect(resendable(EVENT, payload, undefined, edits)).toEqual({
    kind: 'unsendable',
    why: expect.stringContaining(why),
  });
});

describe('an edit', () => {
  it.each([
    ['usage=5', 'usage', 5],
    ['usage="5"', 'usage', '5'],
    ['void=true', 'void', true],
    ['workspace=production', 'workspace', 'production'],
    ['workspace=', 'workspace', ''],
    ['resourceName=a=b', 'resourceName', 'a=b'],
    ['resourceName=a\nb', 'resourceName', 'a\nb'],
  ])('%j sets %s to %j', (text, field, value) => expect(parseEdit(text)).toEqual({ field, value }));

  it.each(['', 'usage', '=5'])('%j is none', (text) => expect(parseEdit(text)).toBeUndefined());
});

it('edits change, add and remove fields, and leave the others and the event itself alone', () => {
  const event = { eventId: 'e', usage: -1, extra: 1 };
  const edits = {
    set: new Map<string, unknown>([
      ['usage', 5],
      ['workspace', 'w'],
    ]),
    unset: new Set(['extra', 'none']),
  };
  expect(applyEdits(event, edits)).toEqual({ eventId: 'e', usage: 5, workspace: 'w' });
  expect(event).toEqual({ eventId: 'e', usage: -1, extra: 1 });
});

it('a field named __proto__ is a field like any other', () => {
  const edits = { set: new Map<string, unknown>(), unset: new Set(['__proto__']) };
  expect(applyEdits(JSON.parse('{"__proto__":1,"a":2}'), edits)).toEqual({ a: 2 });
});
