import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readEventJson } from './event-json.js';

it.each([
  ['12345678.123456789', '12345678.123456789'],
  ['123456789012345.123456789', '123456789012345.123456789'],
  ['9007199254740993', '9007199254740993'],
  ['1.23456781234567890E7', '12345678.123456789'],
  ['1.00000000000000006e-01', '0.100000000000000006'],
  // The shortest form of a double: what a producer that divides has.
  ['0.30000000000000004', 0.1 + 0.2],
  ['6.666666666666667e-08', 2e-7 / 3],
  ['0.1', 0.1],
  ['3.0000000000000000000', 3],
  // Rejected, or zero, whatever its digits are.
  ['1.234567890123456789e400', Number.POSITIVE_INFINITY],
  ['1.234567890123456789e-999999999', 0],
])('the usage %s of an event in JSON is %j', (number, usage) => {
  expect(readEventJson(`{"usage":${number},"revision":1}`)).toEqual({ usage, revision: 1 });
  expect(readEventJson(`{"data": {"usage" :\n${number} }}`)).toEqual({ data: { usage } });
});

it.each([
  String.raw`{"workspace":"\"usage\":12345678.123456789,"}`,
  String.raw`{"a\"usage":12345678.123456789}`,
  '{"workspace":"usage","usages":12345678.123456789,"revision":3}',
  '["usage",12345678.123456789]',
])('an event in JSON keeps all other members and texts: %s', (text) => {
  expect(readEventJson(text)).toEqual(JSON.parse(text));
});

it.each([
  '{"usage":0012345678.123456789}',
  '{"usage":12345678.123456789.1}',
  '{"usage":12345678.123456789:1}',
  '"usage":',
])('%s is no JSON', (text) => expect(() => readEventJson(text)).toThrow(SyntaxError));

it('an event in JSON has the digits that were sent', () => {
  const digits = fc.tuple(fc.stringMatching(/^[1-9]\d{0,14}$/), fc.stringMatching(/^\d{1,20}$/));
  fc.assert(
    fc.property(digits, ([integer, fraction]) => {
      const text = `${integer}.${fraction}`;
      const { usage } = Object(readEventJson(`{"usage":${text}}`));
      const shortest = (number: string) => number.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
      expect(shortest(String(usage))).toBe(shortest(text));
    }),
  );
});

it('an event in JSON of a producer with doubles is what JSON.parse reads', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), (usage) => {
      const text = JSON.stringify({ usage });
      expect(readEventJson(text)).toEqual(JSON.parse(text));
    }),
  );
});
