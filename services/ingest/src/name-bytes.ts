/**
 * The numbers of names by their bytes in UTF-8: a hash table beside a {@link Names}, so that a name that is known need not
 * become a text to be looked up. It goes when the Names go, which are replaced at 65,536.
 */
import { isName } from '@meterline/catalog';
import type { Names } from '@meterline/warehouse';

/** A power of two. Names are replaced at 65,536, and one job of 5,000 events brings 30,000 new ones at most. */
const SLOTS = 2 ** 18;
/** A name that finds its place no sooner has none: nobody can make the table slow with names that he chose for it. */
const MOST_PROBES = 32;
const NOT_UTF8 = '\ufffd';

export class NameBytes {
  readonly names: Names;
  /** Of each slot the number of a name; 0: empty. */
  readonly #slots = new Uint32Array(SLOTS);
  /** By number. */
  readonly #bytes: (Buffer | undefined)[] = [];

  constructor(names: Names) {
    this.names = names;
  }

  /** FNV-1a. To be called for each byte of a name, first with 0. */
  static hashed(hash: number, byte: number): number {
    return Math.imul(hash ^ byte, 0x0100_0193);
  }

  /**
   * @param hash of all bytes from the first on, and up to the last
   * @returns 0, the number of the empty text, for what is no name or no UTF-8, and for a name without a place
   */
  numberOf(data: Uint8Array, from: number, to: number, hash: number): number {
    const first = hash ^ (hash >>> 15);
    for (let probe = 0; probe < MOST_PROBES; probe += 1) {
      const slot = (first + probe) & (SLOTS - 1);
      const number = this.#slots[slot] ?? 0;
      if (number === 0) return this.#add(data.subarray(from, to), slot);
      if (isSame(this.#bytes[number], data, from, to)) return number;
    }
    return 0;
  }

  #add(bytes: Uint8Array, slot: number): number {
    const kept = Buffer.from(bytes);
    const text = kept.toString();
    // Several sequences of bytes that are no UTF-8 would be one text.
    if (text.includes(NOT_UTF8) || !isName(text)) return 0;
    const number = this.names.numberOf(text);
    this.#bytes[number] = kept;
    this.#slots[slot] = number;
    return number;
  }
}

function isSame(known: Buffer | undefined, data: Uint8Array, from: number, to: number): boolean {
  if (known?.length !== to - from) return false;
  for (let at = from; at < to; at += 1) if (known[at - from] !== data[at]) return false;
  return true;
}
