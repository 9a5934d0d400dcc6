/**
 * Remembers what this worker saw lately, to notice two payloads that claim the same revision of an event. Storage
 * settles on one of them by itself; this only tells that a producer is at fault, without asking ClickHouse.
 *
 * An identity (account, event, hour, revision) is kept as 64 bits of hash and its content as 32. The memory is one array
 * of fixed size (4 MB), cut into lines of 64 bytes: an identity belongs to one line, five share it, and of these the one
 * that was not seen for longest makes room for a new one. So each event touches one line of the processor's cache, which
 * is most of what a look-up costs. Of identities that were seen 100,000 others ago 98 of 100 are still there, of those
 * 200,000 ago 81. Two identities in one hash, or two contents, are too rare to matter.
 */
import { MS_PER_HOUR } from '@meterline/catalog';
import type { PricedEvent } from '@meterline/warehouse';

const DEFAULT_LINES = 65_536;
const WORDS_PER_LINE = 16;
const ENTRIES_PER_LINE = 5;
/** Two of the identity, one of the content. */
const WORDS_PER_ENTRY = 3;

/** In place of a content: this identity has been found out, and is not told again. */
const CONFLICTING = 1;
/** 2^32 over the golden ratio, and a prime of xxHash: multipliers that spread every bit. */
const FIRST_PRIME = 0x9e3779b1;
const SECOND_PRIME = 0x85ebca6b;
const WORD = 2 ** 32;

export class RecentPayloads {
  /** Each line from the latest seen to the earliest; an entry of zeros is empty. */
  readonly #words: Uint32Array;
  readonly #lineMask: number;
  #high = 0;
  #low = 0;

  /** @param lines a power of two; five identities each */
  constructor(lines = DEFAULT_LINES) {
    this.#words = new Uint32Array(lines * WORDS_PER_LINE);
    this.#lineMask = lines - 1;
  }

  /** @returns whether another content came under the same revision, once for each event and revision */
  conflicts(event: PricedEvent): boolean {
    this.#hashIdentity(event);
    const content = contentHash(event);
    const line = (this.#low & this.#lineMask) * WORDS_PER_LINE;
    const last = line + (ENTRIES_PER_LINE - 1) * WORDS_PER_ENTRY;
    for (let entry = line; entry <= last; entry += WORDS_PER_ENTRY) {
      if (this.#words[entry] !== this.#high || this.#words[entry + 1] !== this.#low) continue;
      const known = this.#words[entry + 2];
      const conflicts = known !== CONFLICTING && known !== content;
      this.#putFirst(line, entry, known === content ? content : CONFLICTING);
      return conflicts;
    }
    this.#putFirst(line, last, content);
    return false;
  }

  /** Those before the entry move back by one, over it. */
  #putFirst(line: number, entry: number, content: number): void {
    const words = this.#words;
    if (entry > line) words.copyWithin(line + WORDS_PER_ENTRY, line, entry);
    words[line] = this.#high;
    words[line + 1] = this.#low;
    words[line + 2] = content;
  }

  /** Both words in one pass. The first is never 0, which marks an empty entry. */
  #hashIdentity({ accountId, eventId, timestamp, revision }: PricedEvent): void {
    let high = mixNumber(revision, timestamp / MS_PER_HOUR, FIRST_PRIME);
    let low = mixNumber(high, eventId.length, SECOND_PRIME);
    for (let index = 0; index < eventId.length; index += 1) {
      const code = eventId.charCodeAt(index);
      high = Math.imul(high ^ code, FIRST_PRIME);
      low = Math.imul(low ^ code, SECOND_PRIME);
    }
    for (let index = 0; index < accountId.length; index += 1) {
      const code = accountId.charCodeAt(index);
      high = Math.imul(high ^ code, FIRST_PRIME);
      low = Math.imul(low ^ code, SECOND_PRIME);
    }
    this.#high = finish(high) || 1;
    this.#low = finish(low);
  }
}

/**
 * What a producer owns of the row, and the table's own hash covers; never 0 or {@link CONFLICTING}. The resource's type
 * follows from the dimension. Two usages that are one double, from nine million units on, are taken for one.
 */
function contentHash(event: PricedEvent): number {
  const usage = Number(event.usage);
  let hash = mixText(FIRST_PRIME, event.workspace);
  hash = mixText(hash, event.resourceName);
  hash = mixText(hash, event.resourceUuid);
  hash = mixText(hash, event.billingDimension);
  hash = mixNumber(hash, usage, FIRST_PRIME);
  hash = mixNumber(hash, usage / WORD, FIRST_PRIME);
  hash = mixNumber(hash, event.timestamp, FIRST_PRIME);
  hash = mixNumber(hash, event.voided ? 1 : 0, FIRST_PRIME);
  return Math.max(finish(hash), CONFLICTING + 1);
}

/** The length goes in as well: "ab", "c" is not "a", "bc". */
function mixText(hash: number, text: string): number {
  let mixed = mixNumber(hash, text.length, FIRST_PRIME);
  for (let index = 0; index < text.length; index += 1) mixed = Math.imul(mixed ^ text.charCodeAt(index), FIRST_PRIME);
  return mixed ^ (mixed >>> 15);
}

/** Of the number its lowest 32 bits before the point. */
function mixNumber(hash: number, value: number, prime: number): number {
  const mixed = Math.imul(hash ^ value, prime);
  return mixed ^ (mixed >>> 13);
}

function finish(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 16), SECOND_PRIME);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
