import { describe, expect, it } from '@jest/globals';
import { applyEdits, parseEdit } from './edits.js';

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
