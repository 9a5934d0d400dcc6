import { crc32 } from 'node:zlib';
import type { EpochMs } from '@meterline/catalog';

/** Repeatable random values: the same seed gives the same values in the same order. */
export class SeededRandom {
  #state: number;

  constructor(seed: number | string) {
    this.#state = crc32(String(seed));
  }

  /** A number in [0, 1), by the generator mulberry32, whose state is one 32-bit number. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer between both ends, inclusive. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** @throws RangeError for an empty list */
  pick<T>(from: readonly [T, ...T[]] | readonly T[]): T {
    const picked = from[this.integer(0, from.length - 1)];
    if (picked === undefined) throw new RangeError('the list is empty');
    return picked;
  }

  /** A new list in random order. */
  shuffled<T>(list: readonly T[]): T[] {
    const keyed = list.map((item) => ({ item, key: this.next() }));
    return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
  }

  /** A UUID of version 7 (RFC 9562): the time in its first 48 bits, the others random. */
  uuid(time: EpochMs): string {
    const ms = time.toString(16).padStart(12, '0');
    const [a, b, c] = [this.#hex(), this.#hex(), this.#hex()];
    return `${ms.slice(0, 8)}-${ms.slice(8)}-7${a.slice(5)}-8${b.slice(5)}-${a.slice(0, 4)}${c}`;
  }

  /** Eight random digits. */
  #hex(): string {
    return Math.floor(this.next() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  }
}
