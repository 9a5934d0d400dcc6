/**
 * Priced events as numbers. What is collected for an insert is 92 bytes an event outside the heap, instead of an object with
 * two bigints and seven strings, which the garbage collector copies while it waits. Names are numbers of a {@link Names}.
 */
import {
  type BillingDimension,
  type EpochMs,
  MS_PER_HOUR,
  type ResourceType,
  type UsageEvent,
} from '@meterline/catalog';
import type { AccountHours } from '../rollups/rollup-rows.js';

const TWO_TO_32 = 0x1_0000_0000;

/** An event with its price applied: a row of usage_events. */
export interface PricedEvent extends UsageEvent {
  /** USD, scaled by 10^12. */
  readonly cost: bigint;
  /** Raised by re-pricing; 0 at ingest. */
  readonly priceRevision: number;
  /** Version of the price book that the cost comes from. */
  readonly priceBook: number;
}

/** Its fields that are names. */
export type NameField =
  | 'accountId'
  | 'workspace'
  | 'resourceType'
  | 'resourceName'
  | 'resourceUuid'
  | 'billingDimension';

/** The same, with amounts as numbers where they are safe integers. */
export type EventToStore = Omit<PricedEvent, 'usage' | 'cost'> & Readonly<Record<'usage' | 'cost', number | bigint>>;

/** Where a row's words of 32 bits are. Numbers of 64 and 128 bits have their lowest word first, as in the Native format. */
export const WORD = {
  usage: 0,
  cost: 4,
  eventId: 8,
  timestamp: 12,
  accountId: 14,
  workspace: 15,
  resourceType: 16,
  resourceName: 17,
  resourceUuid: 18,
  billingDimension: 19,
  /** The revision, and above its 16 bits whether the event is void. */
  revision: 20,
  /** The revision of the price, and above its 16 bits the version of the book. */
  price: 21,
  /** Index of the event in its job. */
  position: 22,
} as const;
export const WORDS_PER_ROW = 23;

export class EventRows {
  readonly names: Names;
  readonly words: Uint32Array;
  #length = 0;
  #earliest: EpochMs = Number.POSITIVE_INFINITY;

  /** @param capacity the most events that it will hold */
  constructor(capacity: number, names: Names) {
    this.names = names;
    this.words = new Uint32Array(capacity * WORDS_PER_ROW);
  }

  /** @throws RangeError as {@link add} does */
  static of(events: readonly PricedEvent[], names: Names): EventRows {
    const rows = new EventRows(events.length, names);
    for (const [position, event] of events.entries()) rows.add(event, position);
    return rows;
  }

  get length(): number {
    return this.#length;
  }

  /** The timestamp of the earliest event; Infinity when there is none. */
  get earliest(): EpochMs {
    return this.#earliest;
  }

  /**
   * @param position index of the event in its job
   * @throws RangeError when a value does not fit its column: a defect of ours
   */
  add(event: EventToStore, position: number): void {
    const { names, words } = this;
    const at = this.#length * WORDS_PER_ROW;
    if (at >= words.length) throw new RangeError(`there is room for ${this.#length} events only`);
    if (!setUuid(words, at + WORD.eventId, event.eventId)) throw new RangeError(`${event.eventId} is not a UUID`);
    setAmount(words, at + WORD.usage, event.usage);
    setAmount(words, at + WORD.cost, event.cost);
    setSafeInteger(words, at + WORD.timestamp, event.timestamp);
    words[at + WORD.accountId] = names.numberOf(event.accountId);
    words[at + WORD.workspace] = names.numberOf(event.workspace);
    words[at + WORD.resourceType] = names.numberOf(event.resourceType);
    words[at + WORD.resourceName] = names.numberOf(event.resourceName);
    words[at + WORD.resourceUuid] = names.numberOf(event.resourceUuid);
    words[at + WORD.billingDimension] = names.numberOf(event.billingDimension);
    words[at + WORD.revision] = uint16(event.revision) | (event.voided ? 0x1_0000 : 0);
    words[at + WORD.price] = uint16(event.priceRevision) | (uint16(event.priceBook) << 16);
    words[at + WORD.position] = position;
    if (event.timestamp < this.#earliest) this.#earliest = event.timestamp;
    this.#length += 1;
  }

  timestampOf(row: number): EpochMs {
    return safeIntegerAt(this.words, row * WORDS_PER_ROW + WORD.timestamp);
  }

  positionOf(row: number): number {
    return this.#word(row * WORDS_PER_ROW + WORD.position);
  }

  eventOf(row: number): PricedEvent {
    const at = row * WORDS_PER_ROW;
    const [revision, price] = [this.#word(at + WORD.revision), this.#word(at + WORD.price)];
    return {
      eventId: uuidAt(this.words, at + WORD.eventId),
      accountId: this.#name(at + WORD.accountId),
      workspace: this.#name(at + WORD.workspace),
      // What was added as one of these.
      resourceType: this.#name(at + WORD.resourceType) as ResourceType,
      resourceName: this.#name(at + WORD.resourceName),
      resourceUuid: this.#name(at + WORD.resourceUuid),
      billingDimension: this.#name(at + WORD.billingDimension) as BillingDimension,
      usage: int128At(this.words, at + WORD.usage),
      timestamp: this.timestampOf(row),
      revision: revision & 0xffff,
      voided: revision >>> 16 === 1,
      cost: int128At(this.words, at + WORD.cost),
      priceRevision: price & 0xffff,
      priceBook: price >>> 16,
    };
  }

  /** These rows as a table of its own. */
  pick(rows: readonly number[]): EventRows {
    const picked = new EventRows(rows.length, this.names);
    for (const row of rows) {
      const at = row * WORDS_PER_ROW;
      picked.words.set(this.words.subarray(at, at + WORDS_PER_ROW), picked.#length * WORDS_PER_ROW);
      picked.#earliest = Math.min(picked.#earliest, this.timestampOf(row));
      picked.#length += 1;
    }
    return picked;
  }

  #name(at: number): string {
    return this.names.textOf(this.#word(at));
  }

  #word(at: number): number {
    return this.words[at] ?? 0;
  }
}

/** More than there are hours in four centuries. */
const HOURS = 2 ** 22;

/** In which hours before an instant the accounts have events: an account once, its hours about once. */
export function hoursBefore(end: EpochMs, parts: readonly EventRows[]): AccountHours[] {
  const byAccount = new Map<string, EpochMs[]>();
  const known = new Map<Names, Set<number>>();
  for (const { names, words, length, earliest } of parts) {
    if (earliest >= end) continue;
    const seen = known.get(names) ?? new Set();
    known.set(names, seen);
    for (let at = 0; at < length * WORDS_PER_ROW; at += WORDS_PER_ROW) {
      const timestamp = safeIntegerAt(words, at + WORD.timestamp);
      if (timestamp >= end) continue;
      const account = words[at + WORD.accountId] ?? 0;
      const hour = Math.floor(timestamp / MS_PER_HOUR);
      const key = account * HOURS + hour;
      if (seen.has(key)) continue;
      seen.add(key);
      const accountId = names.textOf(account);
      const hours = byAccount.get(accountId);
      if (hours) hours.push(hour * MS_PER_HOUR);
      else byAccount.set(accountId, [hour * MS_PER_HOUR]);
    }
  }
  return Array.from(byAccount, ([accountId, hours]) => ({ accountId, hours }));
}

function uint16(value: number): number {
  if (value !== (value & 0xffff)) throw new RangeError(`${value} is out of range for UInt16`);
  return value;
}

function setSafeInteger(words: Uint32Array, at: number, value: number): void {
  const low = value >>> 0;
  words[at] = low;
  words[at + 1] = (value - low) / TWO_TO_32;
}

function safeIntegerAt(words: Uint32Array, at: number): number {
  return (words[at] ?? 0) + ((words[at + 1] ?? 0) | 0) * TWO_TO_32;
}

/** @throws RangeError */
function setAmount(words: Uint32Array, at: number, value: number | bigint): void {
  if (typeof value === 'number') {
    setSafeInteger(words, at, value);
    words[at + 2] = 0;
    words[at + 3] = 0;
    return;
  }
  if (value !== BigInt.asIntN(128, value)) throw new RangeError(`${value} is out of range for Int128`);
  for (let word = 0; word < 4; word += 1) words[at + word] = Number(BigInt.asUintN(32, value >> BigInt(32 * word)));
}

function int128At(words: Uint32Array, at: number): bigint {
  let value = 0n;
  for (let word = 3; word >= 0; word -= 1) value = (value << 32n) + BigInt(words[at + word] ?? 0);
  return BigInt.asIntN(128, value);
}

/**
 * Texts by number: what events are called (accounts, workspaces, resources, types, dimensions) repeats from event to event.
 * Number 0 is the empty text. It only grows; when it {@link isLarge}, start a new one.
 */
export class Names {
  readonly #numbers = new Map<string, number>([['', 0]]);
  readonly #texts: string[] = [''];
  #characters = 0;

  get size(): number {
    return this.#texts.length;
  }

  /** Some tens of megabytes: there may be as many uuids of resources as events. */
  get isLarge(): boolean {
    return this.#texts.length > 65_536 || this.#characters > 4_000_000;
  }

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#texts.length;
    this.#numbers.set(text, number);
    this.#texts.push(text);
    this.#characters += text.length;
    return number;
  }

  /** @throws RangeError for a number that no text has */
  textOf(number: number): string {
    const text = this.#texts[number];
    if (text === undefined) throw new RangeError(`no text has the number ${number}`);
    return text;
  }
}

/** UUIDs as ClickHouse keeps them, two numbers of 64 bits: here four words of 32, each number's lower one first. */

const UUID_LENGTH = 36;
/** By character code; so large for what is no digit that it shows in a number of four digits. */
const NO_DIGIT = 0x1_0000;
const HEX_DIGITS = new Int32Array(256).fill(NO_DIGIT);
for (let digit = 0; digit < 16; digit += 1) {
  HEX_DIGITS['0123456789abcdef'.charCodeAt(digit)] = digit;
  HEX_DIGITS['0123456789ABCDEF'.charCodeAt(digit)] = digit;
}
const HYPHENS = [8, 13, 18, 23] as const;
const HYPHEN = '-'.charCodeAt(0);
/** Where the halves of each word stand in the text. */
const UPPER = [9, 0, 28, 19] as const;
const LOWER = [14, 4, 32, 24] as const;

/** @returns whether the text is a UUID, in either case; words may be changed if it is not */
function setUuid(words: Uint32Array, at: number, text: string): boolean {
  if (text.length !== UUID_LENGTH) return false;
  for (const hyphen of HYPHENS) if (text.charCodeAt(hyphen) !== HYPHEN) return false;
  for (const [word, upper] of UPPER.entries()) {
    const [high, low] = [fourDigits(text, upper), fourDigits(text, LOWER[word] ?? 0)];
    if ((high | low) >= NO_DIGIT) return false;
    words[at + word] = (high << 16) | low;
  }
  return true;
}

/** 65,536 or more when one of them is no digit. */
function fourDigits(text: string, at: number): number {
  return (digit(text, at) << 12) | (digit(text, at + 1) << 8) | (digit(text, at + 2) << 4) | digit(text, at + 3);
}

function digit(text: string, at: number): number {
  return HEX_DIGITS[text.charCodeAt(at)] ?? NO_DIGIT;
}

function uuidAt(words: Uint32Array, at: number): string {
  const [b, a, d, c] = [0, 1, 2, 3].map((word) => (words[at + word] ?? 0).toString(16).padStart(8, '0'));
  return `${a}-${b?.slice(0, 4)}-${b?.slice(4)}-${c?.slice(0, 4)}-${c?.slice(4)}${d}`;
}
