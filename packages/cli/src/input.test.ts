import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { jsonLines, MAX_LINE_BYTES } from './input.js';

/** Returns the object or problem of each line, with its number. */
async function linesOf(...chunks: readonly (string | Buffer)[]): Promise<(readonly [number, object | string])[]> {
  async function* stream() {
    for (const chunk of chunks) yield Buffer.from(chunk);
  }
  const lines = [];
  for await (const line of jsonLines(stream())) {
    lines.push([line.number, 'problem' in line ? line.problem : line.object] as const);
  }
  return lines;
}

it('a line ends at a line feed or at the end of the stream, and blank lines are skipped', async () => {
  expect(await linesOf('{"a":1}\n\n \r\n{"b":1}\r\n')).toEqual([
    [1, { a: 1 }],
    [4, { b: 1 }],
  ]);
  expect(await linesOf('{"a":1}\n{"b":1}')).toEqual(await linesOf('{"a":1}\n{"b":1}\n'));
  expect(await linesOf('')).toEqual([]);
});

it('a line may contain the line separators that JSON allows in strings', async () => {
  expect(await linesOf('{"a":"b\u2028c\u2029d"}\n')).toEqual([[1, { a: 'b\u2028c\u2029d' }]]);
});

it('lines do not depend on the chunks of the stream', async () => {
  const texts = fc.array(fc.string({ unit: 'grapheme' }));
  await fc.assert(
    fc.asyncProperty(texts, fc.integer({ min: 1, max: 7 }), async (names, size) => {
      const bytes = Buffer.from(names.map((name) => `${JSON.stringify({ name })}\n`).join(''));
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      );
      expect(await linesOf(...chunks)).toEqual(names.map((name, n) => [n + 1, { name }]));
    }),
  );
});

it('a line over the size limit is reported and skipped', async () => {
  const part = 'x'.repeat(MAX_LINE_BYTES / 2);
  const tooLong = `longer than ${MAX_LINE_BYTES} bytes`;
  expect(await linesOf(part, part, 'x', 'x\n{}\n')).toEqual([
    [1, tooLong],
    [2, {}],
  ]);
  expect(await linesOf(part, `${part}\n`)).toEqual([[1, expect.stringMatching(/^not JSON: /)]]);
});

it('a line keeps every digit of usage', async () => {
  expect(await linesOf('{"usage":12345678.123456789}')).toEqual([[1, { usage: '12345678.123456789' }]]);
});

it('a line that is not UTF-8 is reported', async () => {
  expect(await linesOf(Buffer.from([0x22, 0xff]))).toEqual([[1, 'not UTF-8']]);
});
