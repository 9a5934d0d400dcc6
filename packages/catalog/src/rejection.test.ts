import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { parseJson, payloadOf, payloadReference, REJECTION_REASONS, referencedPosition } from './rejection.js';

it('the guide names every reason code, by which operators filter and alert, and no other', async () => {
  const guide = await readFile(new URL('../../../docs/guides/emitting.md', import.meta.url), 'utf8');
  const [, table = ''] = /^## Why events are rejected\n(.*?)^## /ms.exec(guide) ?? [];
  const codes = [...table.matchAll(/^\| (`\w+`(?:, `\w+`)*) \|/gm)].flatMap(
    ([, names = '']) => names.match(/\w+/g) ?? [],
  );
  // What never reaches a worker is the collector's alone.
  expect(codes.sort()).toEqual([...REJECTION_REASONS, 'invalid_cloud_event'].sort());
});

describe('the payload of a refused event', () => {
  it('is its JSON text', () => {
    expect(payloadOf({ usage: -1, text: 'é' })).toBe('{"usage":-1,"text":"é"}');
  });

  it('writes a number too large for a double as text', () => {
    expect(payloadOf(JSON.parse('{"usage":1e999,"other":[-1e999]}'))).toBe(
      '{"usage":"Infinity","other":["-Infinity"]}',
    );
  });

  it('cannot be written when it is nested deeper than the stack', () => {
    expect(payloadOf(JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`))).toBeUndefined();
  });
});

describe('a reference to the payload that holds the whole job', () => {
  it('is JSON and names its position', () => {
    expect(JSON.parse(payloadReference(4_999))).toBe('see the payload of position 4999 of this job');
    expect(referencedPosition(payloadReference(4_999))).toBe(4_999);
  });

  it.each(['{}', '""', 'see the payload of position 1 of this job', '"see the payload of position x of this job"'])(
    'is not read into %s',
    (payload) => expect(referencedPosition(payload)).toBeUndefined(),
  );
});

it.each([
  ['{"usage":1}', { usage: 1 }],
  ['null', null],
  ['{"usage":', undefined],
  ['', undefined],
])('the value of %j as JSON is %j', (text, value) => {
  expect(parseJson(text)).toEqual(value);
});
