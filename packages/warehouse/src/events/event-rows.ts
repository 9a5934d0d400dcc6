/**
 * Priced events as numbers. What is collected for an insert is 92 bytes an event outside the heap, instead of an object with
 * two bigints and seven strings, which the garbage collector copies while it waits. Names are numbers of a {@link Names}.
 */
import {
  type BillingDimension,
  type EpochMs,
  isUuid,
  MS_PER_HOUR,
  type ResourceType,
  type UsageEvent,
} from '@meterline/catalog';
import type { AccountHours } from '../rollups/rollup-rows.js';

/** What pricing adds to an event. */
interface Pricing {
  /** USD, scaled by 10^12. */
  readonly cost: bigint;
  /** Raised by re-pricing; 0 at ingest. */
  readonly priceRevision: number;
  /** Version of the price book that the cost comes from. */
  readonly priceBook: number;
}

/** A row of usage_events. */
export type PricedEvent = UsageEvent & Pricing;

/** The fields of an event that are names. */
export type NameField =
  | 'accountId'
  | 'workspace'
  | 'resourceType'
  | 'resourceName'
  | 'resourceUuid'
  | 'billingDimension';

/** Where a row's words of 32 bits are. Longer numbers are little-endian, as in the Native format and in this processor. */
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
  readonly #view: DataView;
  #length = 0;
  #earliest: EpochMs = Number.POSITIVE_INFINITY;

  /** @param capacity the most events that it will hold */
  constructor(capacity: number, names: Names) {
    this.names = names;
    this.words = new Uint32Array(capacity * WORDS_PER_ROW);
    this.#view = new DataView(this.words.buffer);
  }

  /** @throws RangeError as {@link add} does */
  static of(events: readonly PricedEvent[], names: Names): EventRows {
    const rows = new EventRows(events.length, names);
    for (const [position, event] of events.entries()) rows.add(event, event, position);
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
  add(event: UsageEvent, { cost, priceRevision, priceBook }: Pricing, position: number): void {
    const { names, words } = this;
    const view = this.#view;
    const at = this.#length * WORDS_PER_ROW;
    if (at >= words.length) throw new RangeError(`there is room for ${this.#length} events only`);
    setUuid(view, at + WORD.eventId, event.eventId);
    setInt128(view, at + WORD.usage, event.usage);
    setInt128(view, at + WORD.cost, cost);
    view.setBigInt64(4 * (at + WORD.timestamp), BigInt(event.timestamp), true);
    words[at + WORD.accountId] = names.numberOf(event.accountId);
    words[at + WORD.workspace] = names.numberOf(event.workspace);
    words[at + WORD.resourceType] = names.numberOf(event.resourceType);
    words[at + WORD.resourceName] = names.numberOf(event.resourceName);
    words[at + WORD.resourceUuid] = names.numberOf(event.resourceUuid);
    words[at + WORD.billingDimension] = names.numberOf(event.billingDimension);
    words[at + WORD.revision] = uint16(event.revision) | (event.voided ? 0x1_0000 : 0);
    words[at + WORD.price] = uint16(priceRevision) | (uint16(priceBook) << 16);
    words[at + WORD.position] = position;
    if (event.timestamp < this.#earliest) this.#earliest = event.timestamp;
    this.#length += 1;
  }

  timestampOf(row: number): EpochMs {
    return Number(this.#view.getBigInt64(4 * (row * WORDS_PER_ROW + WORD.timestamp), true));
  }

  positionOf(row: number): number {
    return this.#word(row * WORDS_PER_ROW + WORD.position);
  }

  eventOf(row: number): PricedEvent {
    const at = row * WORDS_PER_ROW;
    const [revision, price] = [this.#word(at + WORD.revision), this.#word(at + WORD.price)];
    return {
      eventId: uuidAt(this.#view, at + WORD.eventId),
      accountId: this.#name(at + WORD.accountId),
      workspace: this.#name(at + WORD.workspace),
      // What was added as one of these.
      resourceType: this.#name(at + WORD.resourceType) as ResourceType,
      resourceName: this.#name(at + WORD.resourceName),
      resourceUuid: this.#name(at + WORD.resourceUuid),
      billingDimension: this.#name(at + WORD.billingDimension) as BillingDimension,
      usage: int128At(this.#view, at + WORD.usage),
      timestamp: this.timestampOf(row),
      revision: revision & 0xffff,
      voided: revision >>> 16 === 1,
      cost: int128At(this.#view, at + WORD.cost),
      priceRevision: price & 0xffff,
      priceBook: price >>> 16,
    };
  }

  /** The rows of these numbers, as a table of their own. */
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
  for (const part of parts) {
    const { names, words, earliest } = part;
    if (earliest >= end) continue;
    const seen = known.get(names) ?? new Set();
    known.set(names, seen);
    for (let row = 0; row < part.length; row += 1) {
      const timestamp = part.timestampOf(row);
      if (timestamp >= end) continue;
      const account = words[row * WORDS_PER_ROW + WORD.accountId] ?? 0;
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

/** @throws RangeError */
function setInt128(view: DataView, word: number, value: bigint): void {
  if (value !== BigInt.asIntN(128, value)) throw new RangeError(`${value} is out of range for Int128`);
  view.setBigInt64(4 * word, value, true);
  view.setBigInt64(4 * word + 8, value >> 64n, true);
}

function int128At(view: DataView, word: number): bigint {
  return (view.getBigInt64(4 * word + 8, true) << 64n) | view.getBigUint64(4 * word, true);
}

/** ClickHouse keeps a UUID as two numbers of 64 bits, the upper one first. @throws RangeError */
function setUuid(view: DataView, word: number, text: string): void {
  if (!isUuid(text)) throw new RangeError(`${text} is not a UUID`);
  const value = BigInt(`0x${text.replaceAll('-', '')}`);
  view.setBigInt64(4 * word, value >> 64n, true);
  view.setBigInt64(4 * word + 8, value, true);
}

function uuidAt(view: DataView, word: number): string {
  const value = (view.getBigUint64(4 * word, true) << 64n) | view.getBigUint64(4 * word + 8, true);
  return value
    .toString(16)
    .padStart(32, '0')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
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
