/** A line of a file or pipe: its bytes without the line end, or undefined when it is too long to be held. */
export interface ByteLine {
  /** From 1. */
  readonly number: number;
  readonly bytes: Buffer | undefined;
}

export const MAX_LINE_BYTES = 1_048_576;

const LINE_FEED = 0x0a;
const NOTHING = Buffer.alloc(0);

/**
 * Splits a stream at line feeds, holding one line at a time. Not node:readline, which also splits at U+2028 and U+2029:
 * JSON allows both inside a string. A carriage return is white space to JSON and may stay.
 */
export async function* byteLines(input: AsyncIterable<Buffer>): AsyncGenerator<ByteLine> {
  let number = 1;
  let rest: Buffer | undefined = NOTHING;
  for await (const chunk of input) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      yield { number, bytes: append(rest, chunk.subarray(start, end)) };
      number += 1;
      rest = NOTHING;
      start = end + 1;
    }
    rest = append(rest, chunk.subarray(start));
  }
  if (rest !== NOTHING) yield { number, bytes: rest };
}

/** Undefined once the line is too long: its remainder is passed over. */
function append(line: Buffer | undefined, bytes: Buffer): Buffer | undefined {
  if (line === undefined || line.length + bytes.length > MAX_LINE_BYTES) return undefined;
  if (bytes.length === 0) return line;
  return line.length === 0 ? bytes : Buffer.concat([line, bytes]);
}
