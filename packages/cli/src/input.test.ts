import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { byteLines, jsonLines, MAX_LINE_BYTES } from './input.js';

async function linesOf(...chunks: readonly (string | Buffer)[]): Promise<(string | undefined)[]> {
  async function* stream() {
    for (const chunk of chunks) yield Buffer.from(chunk);
  }
  const lines: (string | undefined)[] = [];
  for await (const { number, bytes } of byteLines(stream())) {
    expect(number).toBe(lines.length + 1);
    lines.push(bytes?.toString());
  }
  return lines;
}

describe('lines of a stream', () => {
  it('end at line feeds, the last one anywhere', async () => {
    expect(await linesOf('a\n\nb\n')).toEqual(['a', '', 'b']);
    expect(await linesOf('a\nb')).toEqual(['a', 'b']);
    expect(await linesOf('')).toEqual([]);
  });

  it('may hold the line separators that JSON allows in strings', async () => {
    expect(await linesOf('"a\u2028b\u2029c"\n')).toEqual(['"a\u2028b\u2029c"']);
  });

  it('are the same however the stream is cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme' })),
        fc.integer({ min: 1, max: 7 }),
        async (texts, size) => {
          const bytes = Buffer.from(texts.map((text) => `${text.replaceAll('\n', '')}\n`).join(''));
          const chunks: Buffer[] = [];
          for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
          expect(await linesOf(...chunks)).toEqual(await linesOf(bytes));
        },
      ),
    );
  });

  it('pass over one that is too long to be held, and go on', async () => {
    const part = 'x'.repeat(MAX_LINE_BYTES / 2);
    expect(await linesOf(part, part, 'x', 'x\nshort\n')).toEqual([undefined, 'short']);
    expect((await linesOf(part, `${part}\n`))[0]).toHaveLength(MAX_LINE_BYTES);
  });
});

it('a line that is no JSON object in UTF-8 has its fault, and a blank one is passed over', async () => {
  async function* stream() {
    yield Buffer.concat([Buffer.from('\n{"a":1}\r\nnope\n[1]\n'), Buffer.from([0x22, 0xff, 0x0a])]);
  }
  const lines = [];
  for await (const line of jsonLines(stream())) lines.push('fault' in line ? line.fault : line.object);
  expect(lines).toEqual([{ a: 1 }, expect.stringMatching(/^not JSON: /), 'not a JSON object', 'not UTF-8']);
});
