/**
 * Remembers what this worker saw lately, to notice two payloads that claim the same revision of an event. Storage
 * settles on one of them by itself; this only tells that a producer is at fault, without asking ClickHouse.
 *
 * An identity (account, event, hour, revision) is kept as 64 bits of hash and its content as 32, in two tables of fixed
 * size. When the young one is full it becomes the old one and the old one is forgotten. So memory is bounded (12 bytes
 * a slot), and what was seen within the last `generation` identities is always remembered. Two identities in one hash,
 * or two contents, are too rare to matter: about one in 10^9 per full memory, and one conflict in 4·10^9 overlooked.
 */
import { MS_PER_HOUR } from '@meterline/catalog';
import type { PricedEvent } from '@meterline/warehouse';

const DEFAULT_GENERATION = 100_000;
/** A table is at most half full, so that a search ends after a step or two. */
const SLOTS_PER_ENTRY = 2;

/** In place of a content: this identity has been found out, and is not told again. */
const CONFLICTING = 1;
/** 2^32 over the golden ratio, and a prime of xxHash: multipliers that spread every bit. */
const FIRST_PRIME = 0x9e3779b1;
const SECOND_PRIME = 0x85ebca6b;
const WORD = 2 ** 32;

interface Generation {
  /** Two words an identity; zero in both is an empty slot. */
  readonly identities: Uint32Array;
  readonly contents: Uint32Array;
  size: number;
}

export class RecentPayloads {
  readonly #generation: number;
  readonly #mask: number;
  #young: Generation;
  #old: Generation;
  #high = 0;
  #low = 0;

  /** @param generation how many identities are remembered at least; twice as many at most */
  constructor(generation = DEFAULT_GENERATION) {
    this.#generation = generation;
    const slots = 2 ** Math.ceil(Math.log2(generation * SLOTS_PER_ENTRY));
    this.#mask = slots - 1;
    this.#young = emptyGeneration(slots);
    this.#old = emptyGeneration(slots);
  }

  /** @returns whether another content came under the same revision, once for each event and revision */
  conflicts(event: PricedEvent): boolean {
    this.#hashIdentity(event);
    const high = this.#high;
    const low = this.#low;
    const content = contentHash(event);
    const young = this.#find(this.#young, high, low);
    const known = this.#young.contents[young] || this.#old.contents[this.#find(this.#old, high, low)];
    if (known === undefined || known === 0) {
      this.#remember(young, high, low, content);
      return false;
    }
    const conflicts = known !== CONFLICTING && known !== content;
    // What comes again is remembered anew, with what is known of it.
    if (this.#young.contents[young] !== 0) this.#young.contents[young] = conflicts ? CONFLICTING : known;
    else this.#remember(young, high, low, conflicts ? CONFLICTING : known);
    return conflicts;
  }

  /** Both words in one pass: it is the greater part of the cost. */
  #hashIdentity({ accountId, eventId, timestamp, revision }: PricedEvent): void {
    let high = mixNumber(revision, Math.floor(timestamp / MS_PER_HOUR), FIRST_PRIME);
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

  /** The slot of an identity, or the empty one where it belongs. */
  #find({ identities }: Generation, high: number, low: number): number {
    let slot = low & this.#mask;
    for (;;) {
      const there = identities[2 * slot];
      if (there === 0 || (there === high && identities[2 * slot + 1] === low)) return slot;
      slot = (slot + 1) & this.#mask;
    }
  }

  #remember(slot: number, high: number, low: number, content: number): void {
    const { identities, contents } = this.#young;
    identities[2 * slot] = high;
    identities[2 * slot + 1] = low;
    contents[slot] = content;
    this.#young.size += 1;
    if (this.#young.size < this.#generation) return;
    const forgotten = this.#old;
    this.#old = this.#young;
    forgotten.identities.fill(0);
    forgotten.contents.fill(0);
    forgotten.size = 0;
    this.#young = forgotten;
  }
}

function emptyGeneration(slots: number): Generation {
  return { identities: new Uint32Array(2 * slots), contents: new Uint32Array(slots), size: 0 };
}

/** What a producer owns of the row, and the table's own hash covers; never 0 or {@link CONFLICTING}. */
function contentHash(event: PricedEvent): number {
  let hash = FIRST_PRIME;
  hash = mixText(hash, event.workspace, FIRST_PRIME);
  hash = mixText(hash, event.resourceType, FIRST_PRIME);
  hash = mixText(hash, event.resourceName, FIRST_PRIME);
  hash = mixText(hash, event.resourceUuid, FIRST_PRIME);
  hash = mixText(hash, event.billingDimension, FIRST_PRIME);
  // Two usages that are one double, from nine million units on, are taken for one.
  const usage = Number(event.usage);
  hash = mixNumber(hash, usage % WORD, FIRST_PRIME);
  hash = mixNumber(hash, Math.floor(usage / WORD), FIRST_PRIME);
  hash = mixNumber(hash, event.timestamp % MS_PER_HOUR, FIRST_PRIME);
  hash = mixNumber(hash, event.voided ? 1 : 0, FIRST_PRIME);
  return Math.max(finish(hash), CONFLICTING + 1);
}

/** The length goes in as well: "ab", "c" is not "a", "bc". */
function mixText(hash: number, text: string, prime: number): number {
  let mixed = mixNumber(hash, text.length, prime);
  for (let index = 0; index < text.length; index += 1) mixed = Math.imul(mixed ^ text.charCodeAt(index), prime);
  return mixed ^ (mixed >>> 15);
}

function mixNumber(hash: number, value: number, prime: number): number {
  const mixed = Math.imul(hash ^ value, prime);
  return mixed ^ (mixed >>> 13);
}

function finish(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 16), SECOND_PRIME);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
