import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
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

it.each([
  [{ usage: -1, text: 'é' }, '{"usage":-1,"text":"é"}'],
  [JSON.parse('{"usage":1e999,"other":[-1e999]}'), '{"usage":"Infinity","other":["-Infinity"]}'],
])(
  'the payload of a rejected event is its JSON text, with numbers too large for a double as text (case %#)',
  (input, text) => {
    expect(payloadOf(input)).toBe(text);
  },
);

it('the payload of a rejected event cannot be written when it is nested deeper than the stack', () => {
  expect(payloadOf(JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`))).toBeUndefined();
});

it('the payload that refers to the whole job is JSON and names its position', () => {
  expect(JSON.parse(payloadReference(4_999))).toBe('see the payload of position 4999 of this job');
  const payloads = [
    payloadReference(4_999),
    ...['{}', '""', 'see the payload of position 1 of this job', '"see the payload of position x of this job"'],
  ];
  expect(payloads.map(referencedPosition)).toEqual([4_999, undefined, undefined, undefined, undefined]);
});

it('a text that is no JSON has no value', () => {
  expect(['{"usage":1}', 'null', '{"usage":', ''].map(parseJson)).toEqual([{ usage: 1 }, null, undefined, undefined]);
});
