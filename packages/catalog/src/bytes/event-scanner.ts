/**
 * Reads events from the bytes of JSON without JSON.parse, which makes a dozen objects and strings of each (docs/decisions/0034): what
 * JSON.stringify writes of usual events, with strings in which nothing is escaped. It says yes, or nothing: an event with anything else
 * in it is left to JSON.parse and `parsePricedEvent`. The ingest worker makes rows of what this reads, the collector jobs; property
 * tests hold both to the verdict of the long way.
 */
import { DIMENSIONS, isBillingDimension } from '../dimensions.js';
import { MAX_CLOCK_SKEW_MS } from '../event.js';
import { MAX_REVISION, type UsageEventField } from '../event-schema.js';
import type { Price, PriceBook } from '../price-book.js';
import type { EpochMs } from '../timestamp.js';
import { asciiText, MILLISECONDS_LENGTH, TimestampBytes } from './timestamp-bytes.js';
import { MOST_USAGE_CHARACTERS, usualUsage } from './usual-usage.js';
import { areSame, WordText } from './word-text.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const FIRST_PRINTABLE = 0x20;

const NO_VIEW = new DataView(new ArrayBuffer(0));
const ID_LENGTH = 36;

export const FIELD = {
  eventId: 0,
  accountId: 1,
  workspace: 2,
  resourceType: 3,
  resourceName: 4,
  resourceUuid: 5,
  billingDimension: 6,
  usage: 7,
  timestamp: 8,
  revision: 9,
  void: 10,
} as const satisfies Record<UsageEventField, number>;
const KEYS = Object.keys(FIELD).map((field) => new WordText(`"${field}":`));
/** Sets of fields, a bit for each. */
const NAMES = fieldSet(['accountId', 'workspace', 'resourceType', 'resourceName', 'resourceUuid', 'billingDimension']);
const TEXTS = NAMES | fieldSet(['eventId', 'timestamp', 'usage']);
const REQUIRED = TEXTS & ~fieldSet(['resourceUuid']);
/** By field, what a value without quotes must look like. In JSON a number begins with a zero only before its point. */
const LITERALS = byField({
  usage: /^(0|[1-9]\d*)(\.\d+)?$/,
  revision: /^(0|[1-9]\d{0,4})$/,
  void: /^(true|false)$/,
});
/** By field, where a text most likely ends. Of these two every character is checked later, so none is looked at before. */
const LENGTHS = byField({ eventId: ID_LENGTH, timestamp: MILLISECONDS_LENGTH });

function byField<T>(values: Partial<Record<UsageEventField, T>>): readonly (T | undefined)[] {
  return Object.keys(FIELD).map((field) => values[field as UsageEventField]);
}

function fieldSet(fields: readonly UsageEventField[]): number {
  return fields.reduce((set, field) => set | (1 << FIELD[field]), 0);
}

export abstract class EventScanner<Data extends Uint8Array> {
  readonly #book: PriceBook;
  readonly #nothing: Data;
  readonly #required: number;
  #data: Data;
  /** The same. */
  #view: DataView = NO_VIEW;
  /** The next byte to be read. */
  protected at = 0;
  /** By field: its value's first byte and the one after its last, without quotes. */
  protected readonly from = new Int32Array(KEYS.length);
  protected readonly to = new Int32Array(KEYS.length);
  /** Of the event that was read last, as these are: */
  protected usage = 0;
  protected timestamp: EpochMs = 0;
  protected revision = 0;
  protected voided = false;
  protected price: Price | undefined;
  /** By field, the one that came after it: most likely it does again. */
  readonly #next = new Int8Array(KEYS.length);
  readonly #timestamps = new TimestampBytes();

  /**
   * @param nothing no bytes, to be held while there are none to be read
   * @param mayLack fields that an event need not have here
   */
  constructor(book: PriceBook, nothing: Data, mayLack: readonly UsageEventField[] = []) {
    this.#book = book;
    this.#nothing = nothing;
    this.#data = nothing;
    this.#required = REQUIRED & ~fieldSet(mayLack);
  }

  /**
   * Reads a name that is not that of the event before.
   * @param from its first byte, after the quote
   * @returns where its quote is; -1 for one that is no name, or an unusual one
   */
  protected abstract readName(field: number, data: Data, from: number): number;

  /** The name that the field has in the event that is being read. */
  protected abstract nameOf(field: number): string;

  /** Begins with these bytes. */
  protected open(data: Data): void {
    this.#data = data;
    this.#view = new DataView(data.buffer, data.byteOffset, data.length);
    this.at = 0;
    // No event of these has a name yet.
    this.from.fill(0);
    this.to.fill(-1);
  }

  protected close(): void {
    this.#data = this.#nothing;
    this.#view = NO_VIEW;
  }

  /**
   * Reads an event as far as its braces. That its id has 36 bytes is all that is known of it then.
   * @param now for the rule "not more than 10 minutes in the future"
   * @returns the set of its fields, a bit for each; 0 for an event that is unusual or wrong, or ends after the data
   */
  protected readEvent(now: EpochMs): number {
    const fields = this.#readFields();
    if ((fields & this.#required) !== this.#required) return 0;
    const { from, to } = this;
    const id = from[FIELD.eventId] ?? 0;
    const dimension = this.nameOf(FIELD.billingDimension);
    if (to[FIELD.eventId] !== id + ID_LENGTH || !isBillingDimension(dimension)) return 0;
    const { unit, resourceType } = DIMENSIONS[dimension];
    if (this.nameOf(FIELD.resourceType) !== resourceType) return 0;

    const timestamp = this.#timestamps.parse(this.#data, from[FIELD.timestamp] ?? 0, to[FIELD.timestamp] ?? 0);
    if (timestamp === undefined || timestamp < 0 || timestamp > now + MAX_CLOCK_SKEW_MS) return 0;
    const usage = usualUsage(this.#data, from[FIELD.usage] ?? 0, to[FIELD.usage] ?? 0, unit);
    const price = this.#book.priceAt(this.nameOf(FIELD.accountId), dimension, timestamp);
    const revision = fields & (1 << FIELD.revision) ? Number(this.#text(FIELD.revision)) : 0;
    if (usage === undefined || !price || revision > MAX_REVISION) return 0;
    this.usage = usage;
    this.timestamp = timestamp;
    this.revision = revision;
    this.voided = (fields & (1 << FIELD.void)) !== 0 && this.#text(FIELD.void) === 'true';
    this.price = price;
    return fields;
  }

  /** @returns the set of its fields; 0 when one is unknown, there twice or has an unusual value */
  #readFields(): number {
    let fields = 0;
    let field = 0;
    if (!this.skipByte(OPENING_BRACE)) return 0;
    do {
      const guess = this.#next[field] ?? 0;
      const read = this.#skipKey(KEYS[guess]) ? guess : KEYS.findIndex((key) => this.#skipKey(key));
      if (read === -1 || fields & (1 << read)) return 0;
      this.#next[field] = read;
      field = read;
      fields |= 1 << field;
      if (!this.#readValue(field)) return 0;
    } while (this.skipByte(COMMA));
    return this.skipByte(CLOSING_BRACE) ? fields : 0;
  }

  #readValue(field: number): boolean {
    if (!this.skipByte(QUOTE)) return this.#readLiteral(field);
    const bit = 1 << field;
    if (NAMES & bit) return this.#repeatsName(field) || this.#readNewName(field);
    const data = this.#data;
    const from = this.at;
    let at = from + (LENGTHS[field] ?? 0);
    if (data[at] !== QUOTE) at = from;
    for (let byte = data[at]; byte !== QUOTE; byte = data[at]) {
      if (isNoText(byte)) return false;
      at += 1;
    }
    this.#found(field, from, at);
    return (TEXTS & bit) !== 0;
  }

  /** Whether the name is that of the event before, as it most often is. */
  #repeatsName(field: number): boolean {
    const from = this.from[field] ?? 0;
    const length = (this.to[field] ?? 0) - from;
    if (length < 0 || this.#data[this.at + length] !== QUOTE) return false;
    if (!areSame(this.#view, from, this.at, length)) return false;
    this.at += length + 1;
    return true;
  }

  #readNewName(field: number): boolean {
    const end = this.readName(field, this.#data, this.at);
    if (end !== -1) this.#found(field, this.at, end);
    return end !== -1;
  }

  #found(field: number, from: number, to: number): void {
    this.from[field] = from;
    this.to[field] = to;
    this.at = to + 1;
  }

  /** A number in plain digits, true or false; none is longer than a usage. */
  #readLiteral(field: number): boolean {
    const data = this.#data;
    let at = this.at;
    this.from[field] = at;
    for (let byte = data[at]; byte !== COMMA && byte !== CLOSING_BRACE; byte = data[at]) {
      if (byte === undefined || at - this.at === MOST_USAGE_CHARACTERS) return false;
      at += 1;
    }
    this.to[field] = at;
    this.at = at;
    return LITERALS[field]?.test(this.#text(field)) ?? false;
  }

  #text(field: number): string {
    return asciiText(this.#data, this.from[field] ?? 0, this.to[field] ?? 0);
  }

  protected skip(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; at += 1) if (this.#data[this.at + at] !== bytes[at]) return false;
    this.at += bytes.length;
    return true;
  }

  #skipKey(key: WordText | undefined): boolean {
    if (!key?.isAt(this.#view, this.at)) return false;
    this.at += key.length;
    return true;
  }

  protected skipByte(byte: number): boolean {
    if (this.#data[this.at] !== byte) return false;
    this.at += 1;
    return true;
  }
}

/** The end of the data, and what stands in no text of JSON, or as an escape. */
export function isNoText(byte: number | undefined): boolean {
  return byte === undefined || byte < FIRST_PRINTABLE || byte === BACKSLASH;
}
