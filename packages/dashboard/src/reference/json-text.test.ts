import { describe, expect, it } from '@jest/globals';
import { indentJson } from './json-text.js';

describe('the text of an answer', () => {
  it('has a member a line, and every digit', () => {
    expect(indentJson('{"cost":131000.123456789012,"data":[{"a":"x, {\\"y\\": 1}"},[],{}],"more":false}')).toBe(`{
  "cost": 131000.123456789012,
  "data": [
    {
      "a": "x, {\\"y\\": 1}"
    },
    [],
    {}
  ],
  "more": false
}`);
  });

  it('is what JSON.stringify makes of what it can read', () => {
    const value = { a: [1, [2, { b: null }], 'c"\\'], d: { e: true, f: -1.5e-7, g: '' } };
    expect(indentJson(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
  });
});
