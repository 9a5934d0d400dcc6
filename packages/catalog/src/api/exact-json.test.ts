import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readExactJson } from './exact-json.js';

const RUNS = 1_000;

/** What the reader makes of a value: numbers as JavaScript writes them. */
function withTexts(value: unknown): unknown {
  if (typeof value === 'number') return JSON.stringify(value);
  if (Array.isArray(value)) return value.map(withTexts);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withTexts(member)]));
}

describe('readExactJson', () => {
  it('keeps every digit of a number', () => {
    const text = '{"cost":123456789012345678901234.123456789012,"usage":-0.10,"count":5,"none":0}';
    expect(readExactJson(text)).toEqual({
      cost: '123456789012345678901234.123456789012',
      usage: '-0.10',
      count: '5',
      none: '0',
    });
  });

  it('takes no number for the name of a member', () => {
    expect(() => readExactJson('{1:2}')).toThrow(SyntaxError);
    expect(() => readExactJson('{1 :2}')).toThrow(SyntaxError);
  });

  it('leaves the digits inside of strings and names alone', () => {
    const value = { '1': 'costs 1.5', '"2\\': '\\"3\\\\', '': '4\u20285' };
    expect(readExactJson(JSON.stringify(value))).toEqual(value);
  });

  it('reads what JSON.parse reads', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'binary' }), (text) => {
        expect(readExactJson(text)).toEqual(withTexts(JSON.parse(text)));
      }),
    );
  });

  it('refuses what JSON.parse refuses', () => {
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
      fc.property(nearlyJson, (text) => {
        return accepts(readExactJson, text) === accepts(JSON.parse, text);
      }),
      { numRuns: RUNS },
    );
  });
});
