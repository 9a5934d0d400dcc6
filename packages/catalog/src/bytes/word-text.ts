/** Bytes compared four at a time, which takes a third of the time. */

const WORD_BYTES = 4;

/** A text of four bytes or more to look for. */
export class WordText {
  readonly length: number;
  /** The last one overlaps the one before it where the length is no multiple of four. */
  readonly #words: Int32Array;

  constructor(text: string) {
    const { buffer, byteOffset, byteLength } = new TextEncoder().encode(text);
    const bytes = new DataView(buffer, byteOffset, byteLength);
    this.length = byteLength;
    const count = Math.ceil(this.length / WORD_BYTES);
    const last = this.length - WORD_BYTES;
    this.#words = Int32Array.from({ length: count }, (_, word) =>
      bytes.getInt32(Math.min(word * WORD_BYTES, last), true),
    );
  }

  isAt(data: DataView, at: number): boolean {
    if (at + this.length > data.byteLength) return false;
    const words = this.#words;
    const last = words.length - 1;
    for (let word = 0; word < last; word += 1)
      if (data.getInt32(at + word * WORD_BYTES, true) !== words[word]) return false;
    return data.getInt32(at + this.length - WORD_BYTES, true) === words[last];
  }
}

/** Whether as many bytes are the same from two places on. @throws RangeError when there are not as many */
export function areSame(data: DataView, one: number, other: number, length: number): boolean {
  let at = 0;
  for (; at + WORD_BYTES <= length; at += WORD_BYTES)
    if (data.getInt32(one + at, true) !== data.getInt32(other + at, true)) return false;
  for (; at < length; at += 1) if (data.getUint8(one + at) !== data.getUint8(other + at)) return false;
  return true;
}
