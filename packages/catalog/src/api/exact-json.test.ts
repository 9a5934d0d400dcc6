import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readExactJson } from './exact-json.js';

/** What the reader makes of a value: numbers as JavaScript writes them. */
function withTexts(value: unknown): unknown {
  if (typeof value === 'number') return JSON.stringify(value);
  if (Array.isArray(value)) return value.map(withTexts);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withTexts(member)]));
}

it.each([
  ['{"cost":123456789012345678901234.123456789012}', { cost: '123456789012345678901234.123456789012' }],
  ['[-0.10,5,0,1E+2]', ['-0.10', '5', '0', '1E+2']],
  [String.raw`{"1":"costs 1.5","\"2\\":"\\\"3\\\\"}`, { '1': 'costs 1.5', '"2\\': '\\"3\\\\' }],
])('exact JSON keeps every digit of a number, and leaves those of strings and names alone: %s', (text, value) => {
  expect(readExactJson(text)).toEqual(value);
});

it('exact JSON is what JSON.parse reads', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'binary' }), (text) => {
      expect(readExactJson(text)).toEqual(withTexts(JSON.parse(text)));
    }),
  );
});

it('exact JSON is nothing that JSON.parse refuses', () => {
  const nearlyJson = fc.string({ unit: fc.constantFrom(...'"\\01e.,:[]{} -'), maxLength: 10 });
  const accepts = (read: (text: string) => unknown, text: string) => {
    try {
      read(text);
      return true;
    } catch (error) {
      return !(error instanceof SyntaxError);
    }
  };
  fc.assert(
    fc.property(nearlyJson, (text) => accepts(readExactJson, text) === accepts(JSON.parse, text)),
    // A number is not the name of a member.
    { numRuns: 1_000, examples: [['{1:2}'], ['{1 :2}']] },
  );
});
