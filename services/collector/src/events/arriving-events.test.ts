/** A body that is read while it arrives is read as the whole of it would be, which `readEvents` does with JSON.parse. */

import { describe, expect, it } from '@jest/globals';
import { ApiError } from '@meterline/api';
import fc from 'fast-check';
import { arrivingEvents } from './arriving-events.js';
import { TextPieces, textOf } from './decoding.js';
import { type Format, type Found, readEvents } from './formats.js';

const RUNS = process.env.METERLINE_TEST_SHORT ? 400 : 3_000;
const ACCOUNT = 'acme';
const HEADERS = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': 's', 'ce-type': 't' };

type Outcome = { readonly found: readonly Found[] } | { readonly code: string; readonly message: string };

function outcomeOf(read: () => readonly Found[]): Outcome {
  try {
    return { found: read() };
  } catch (error) {
    if (error instanceof ApiError) return { code: error.code, message: error.message };
    throw error;
  }
}

const whole = (body: Buffer, format: Format) => outcomeOf(() => readEvents(textOf(body), format, ACCOUNT, HEADERS));

/** @param cuts where pieces end; those beyond the body are not */
function inPieces(body: Buffer, format: Format, cuts: readonly number[]): Outcome {
  const ends = [...new Set(cuts.filter((cut) => cut < body.length)), body.length].sort((a, b) => a - b);
  return outcomeOf(() => {
    const texts = new TextPieces();
    const found: Found[] = [];
    let from = 0;
    let events: ReturnType<typeof arrivingEvents> | undefined;
    for (const end of ends) {
      // As a buffer that is used again: nothing may be kept of it.
      const piece = Buffer.from(body.subarray(from, end));
      const text = texts.push(piece);
      piece.fill(0);
      events ??= arrivingEvents(text, format, ACCOUNT, HEADERS);
      found.push(...events.push(text));
      from = end;
    }
    texts.end();
    found.push(...(events?.end() ?? []));
    return found;
  });
}

const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const number = fc.constantFrom('0', '-0', '1e999', '1E-7', '123456789012345678901234567890', '0.1', '1.0', '-5.50');
const text = fc.oneof(
  fc.string({ unit: 'grapheme' }).map((value) => JSON.stringify(value)),
  fc.constantFrom(String.raw`"\\"`, String.raw`"\\\""`, String.raw`"[{,]}\u0022\ud800"`, '"\u2028é😀"', '"\ufeff"'),
);
const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, number, text, fc.constantFrom('true', 'null'), tie('list'), tie('object')),
  list: fc
    .array(fc.tuple(space, tie('value'), space))
    .map((items) => `[${items.map((parts) => parts.join('')).join()}]`),
  object: fc
    .array(fc.tuple(fc.constantFrom('"a"', '"events"', '"a\\u0062"', '"__proto__"'), space, tie('value')))
    .map((members) => `{${members.map(([name, gap, member]) => `${name}${gap}:${gap}${member}`).join()}}`),
}));
const array = fc
  .tuple(fc.constantFrom('', '\ufeff'), space, fc.array(fc.tuple(space, value, space)), space)
  .map(([mark, before, items, after]) => `${mark}${before}[${items.map((parts) => parts.join('')).join()}]${after}`);
const lines = fc
  .array(fc.oneof(value, space, fc.constantFrom('"', '\\"', 'nope', '\u00a0', '\ufeff', '{"a":1}\r')))
  .map((parts) => parts.join('\n'));
const cloudEvents = fc
  .array(fc.constantFrom('{"specversion":"1.0","id":"1","source":"s","type":"t","data":{"usage":1}}', '{}', '7'))
  .map((items) => `[${items.join(' , ')}]`);
const body = fc.oneof(
  array,
  lines,
  cloudEvents,
  value,
  value.map((events) => `{"events":${events}}`),
);
const format = fc.constantFrom<Format[]>('json', 'ndjson', 'cloudEvent', 'cloudEventBatch', 'binaryCloudEvent');
const cuts = fc.oneof(
  fc.array(fc.nat(200), { maxLength: 12 }),
  fc.constant(Array.from({ length: 300 }, (_, at) => at)),
);

describe('events that arrive in pieces', () => {
  it('are those of the whole text, wherever it is cut', () => {
    fc.assert(
      fc.property(body, format, cuts, (text, format, cuts) => {
        const bytes = Buffer.from(text);
        expect(inPieces(bytes, format, cuts)).toEqual(whole(bytes, format));
      }),
      { numRuns: RUNS },
    );
  });

  it('of a broken body are refused for the same reason, or for a fault that comes before a wrong byte', () => {
    const wrong = fc.constantFrom(
      ...[...'[]{},:"\\\n0x', '\0'].map((one) => Buffer.from(one)),
      ...[0xff, 0x80, 0xe2, 0xf0].map((byte) => Buffer.of(byte)),
      Buffer.of(),
    );
    fc.assert(
      fc.property(body, format, cuts, fc.nat(60), fc.nat(2), wrong, (text, format, cuts, at, removed, inserted) => {
        const bytes = Buffer.from(text);
        const broken = Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + removed)]);
        const [read, expected] = [inPieces(broken, format, cuts), whole(broken, format)];
        const isNotText = 'message' in expected && expected.message === 'The body is not UTF-8.';
        expect(isNotText ? codeOf(read) : read).toEqual(isNotText ? 'invalid_body' : expected);
      }),
      { numRuns: RUNS },
    );
  });

  it.each([
    ['brackets', '['.repeat(250_001)],
    ['objects', `[${'{},'.repeat(125_001)}{}]`],
    ['lines of values', `${'0,'.repeat(100)}\n`.repeat(2_600)],
    ['depth', `[${'['.repeat(100_000)}${']'.repeat(100_000)}]`],
    ['strings that hide values', `["${'[,'.repeat(200_000)}"]`],
    ['events', `[${'0,'.repeat(5_000)}0]`],
    ['the most events', `[${'0,'.repeat(4_999)}0]`],
    ['lines', '0\n'.repeat(5_001)],
    ['the most lines', '0\n\n'.repeat(5_000)],
    ['spaces', `${' '.repeat(200_000)}[1]`],
  ])('of a body with many %s are those of the whole text', (_what, text) => {
    const bytes = Buffer.from(text);
    const cuts = Array.from({ length: 10 }, (_, piece) => piece * 65_536);
    for (const format of ['json', 'ndjson', 'cloudEventBatch'] as const) {
      // As texts: the comparison of values that are so deep has no stack for them.
      const [read, expected] = [inPieces(bytes, format, cuts), whole(bytes, format)].map(shape);
      expect(read).toEqual(expected);
    }
  });

  it('have the values of every line, also after one whose string does not end', () => {
    const values = `[${'[],'.repeat(125_000)}[]]`;
    for (const open of ['"', '"\\', '{"a":"\\"'])
      expect(inPieces(Buffer.from(`${open}\n${values}\n`), 'ndjson', [1, 2, 3, 9, 100_000])).toEqual({
        code: 'body_too_large',
        message: expect.stringMatching(/^The JSON of a body may have 250000 values in all/),
      });
  });

  it('end with the first one that is too many, and with the first fault', () => {
    const events = arrivingEvents('[', 'json', ACCOUNT, {});
    events.push(`[${'0,'.repeat(4_000)}`);
    expect(() => events.push('0,'.repeat(1_001))).toThrow(expect.objectContaining({ code: 'too_many_events' }));
    const broken = arrivingEvents('[', 'json', ACCOUNT, {});
    expect(() => broken.push('[{"a":1},{"a":},')).toThrow(expect.objectContaining({ code: 'invalid_body' }));
  });
});

function codeOf(outcome: Outcome): string | undefined {
  return 'code' in outcome ? outcome.code : undefined;
}

/** The number of the events stands for them. */
function shape(outcome: Outcome): unknown {
  return 'found' in outcome ? outcome.found.length : outcome;
}
