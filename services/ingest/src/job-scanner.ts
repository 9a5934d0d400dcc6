/**
 * The way of a job that is as producers write it: from its bytes straight into the rows of an insert, without JSON.parse,
 * which makes a dozen objects and strings of each event (docs/decisions/0034). It reads what JSON.stringify writes of
 * usual events, with strings in which nothing is escaped. It says yes, or nothing: a job with anything else in it is parsed, and
 * its events take the ways of `intake.ts`. A property test holds all of them to the same rows.
 */
import {
  costOfInteger,
  DIMENSIONS,
  type EpochMs,
  isBillingDimension,
  MAX_CLOCK_SKEW_MS,
  MAX_EVENTS_PER_JOB,
  MAX_REVISION,
  type PriceBook,
  type UsageEventField,
} from '@meterline/catalog';
import { EventRows } from '@meterline/warehouse';
import { NameBytes } from './name-bytes.js';
import { MILLISECONDS_LENGTH, TimestampBytes } from './timestamp-bytes.js';
import { usualUsage } from './usual-event.js';
import { areSame, WordText } from './word-text.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const FIRST_PRINTABLE = 0x20;

const NOTHING = Buffer.alloc(0);
const NO_VIEW = new DataView(new ArrayBuffer(0));
const BEFORE_EVENTS = Buffer.from('{"events":[');
const AFTER_EVENTS = Buffer.from(']}');
const ID_LENGTH = 36;
/** The least that the fields that must be there take. */
const LEAST_EVENT_BYTES = 200;

const FIELD = {
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

export class JobScanner {
  readonly #book: PriceBook;
  #data: Buffer = NOTHING;
  /** The same. */
  #view: DataView = NO_VIEW;
  #at = 0;
  /** By field: its value's first byte and the one after its last, without quotes; and its number if it is a name. */
  readonly #from = new Int32Array(KEYS.length);
  readonly #to = new Int32Array(KEYS.length);
  readonly #number = new Int32Array(KEYS.length);
  /** By field, the one that came after it: most likely it does again. */
  readonly #next = new Int8Array(KEYS.length);
  readonly #timestamps = new TimestampBytes();

  constructor(book: PriceBook) {
    this.#book = book;
  }

  /** @returns undefined when an event is unusual, or the job is none */
  rowsOf(data: Buffer, now: EpochMs, names: NameBytes): EventRows | undefined {
    this.#data = data;
    this.#view = new DataView(data.buffer, data.byteOffset, data.length);
    this.#at = 0;
    // No event of this job has a name yet.
    this.#from.fill(0);
    this.#to.fill(-1);
    const rows = this.#rows(now, names);
    const isWhole = this.#at === data.length;
    this.#data = NOTHING;
    this.#view = NO_VIEW;
    return isWhole ? rows : undefined;
  }

  #rows(now: EpochMs, names: NameBytes): EventRows | undefined {
    const isList = this.#skip(BEFORE_EVENTS);
    const most = isList ? Math.min(MAX_EVENTS_PER_JOB, Math.ceil(this.#data.length / LEAST_EVENT_BYTES)) : 1;
    const rows = new EventRows(most, names.names);
    do {
      if (rows.length === most || !this.#addEvent(rows, now, names)) return undefined;
    } while (isList && this.#skipByte(COMMA));
    return !isList || this.#skip(AFTER_EVENTS) ? rows : undefined;
  }

  #addEvent(rows: EventRows, now: EpochMs, nameBytes: NameBytes): boolean {
    const { names } = nameBytes;
    const fields = this.#readFields(nameBytes);
    if ((fields & REQUIRED) !== REQUIRED) return false;
    const number = this.#number;
    const accountId = number[FIELD.accountId] ?? 0;
    const resourceType = number[FIELD.resourceType] ?? 0;
    const billingDimension = number[FIELD.billingDimension] ?? 0;
    const dimension = names.textOf(billingDimension);
    if (!isBillingDimension(dimension)) return false;
    const { unit, resourceType: expected } = DIMENSIONS[dimension];
    if (names.textOf(resourceType) !== expected) return false;

    const timestamp = this.#timestamps.parse(
      this.#data,
      this.#from[FIELD.timestamp] ?? 0,
      this.#to[FIELD.timestamp] ?? 0,
    );
    if (timestamp === undefined || timestamp < 0 || timestamp > now + MAX_CLOCK_SKEW_MS) return false;
    const usage = usualUsage(this.#data, this.#from[FIELD.usage] ?? 0, this.#to[FIELD.usage] ?? 0, unit);
    const price = this.#book.priceAt(names.textOf(accountId), dimension, timestamp);
    const cost = usage === undefined || !price ? undefined : costOfInteger(usage, price);
    const revision = fields & (1 << FIELD.revision) ? Number(this.#text(FIELD.revision)) : 0;
    if (usage === undefined || cost === undefined || revision > MAX_REVISION) return false;
    const event = {
      accountId,
      workspace: number[FIELD.workspace] ?? 0,
      resourceType,
      resourceName: number[FIELD.resourceName] ?? 0,
      resourceUuid: fields & (1 << FIELD.resourceUuid) ? (number[FIELD.resourceUuid] ?? 0) : 0,
      billingDimension,
      usage,
      timestamp,
      revision,
      voided: (fields & (1 << FIELD.void)) !== 0 && this.#text(FIELD.void) === 'true',
      cost,
      priceRevision: 0,
      priceBook: this.#book.version,
    };
    const id = this.#from[FIELD.eventId] ?? 0;
    return this.#to[FIELD.eventId] === id + ID_LENGTH && rows.addNumbered(event, rows.length, this.#data, id);
  }

  /** Reads an event as far as its braces. @returns the set of its fields; 0 when one is unknown, there twice or has an unusual value */
  #readFields(names: NameBytes): number {
    let fields = 0;
    let field = 0;
    if (!this.#skipByte(OPENING_BRACE)) return 0;
    do {
      const guess = this.#next[field] ?? 0;
      const read = this.#skipKey(KEYS[guess]) ? guess : KEYS.findIndex((key) => this.#skipKey(key));
      if (read === -1 || fields & (1 << read)) return 0;
      this.#next[field] = read;
      field = read;
      fields |= 1 << field;
      if (!this.#readValue(field, names)) return 0;
    } while (this.#skipByte(COMMA));
    return this.#skipByte(CLOSING_BRACE) ? fields : 0;
  }

  #readValue(field: number, names: NameBytes): boolean {
    if (!this.#skipByte(QUOTE)) return this.#readLiteral(field);
    const bit = 1 << field;
    if (NAMES & bit) return this.#repeatsName(field) || this.#readName(field, names);
    const data = this.#data;
    const from = this.#at;
    let at = from + (LENGTHS[field] ?? 0);
    if (data[at] !== QUOTE) at = from;
    for (let byte = data[at]; byte !== QUOTE; byte = data[at]) {
      if (isNoText(byte)) return false;
      at += 1;
    }
    this.#from[field] = from;
    this.#to[field] = at;
    this.#at = at + 1;
    return (TEXTS & bit) !== 0;
  }

  /** Whether the name is that of the event before, as it most often is. */
  #repeatsName(field: number): boolean {
    const from = this.#from[field] ?? 0;
    const length = (this.#to[field] ?? 0) - from;
    if (length < 0 || this.#data[this.#at + length] !== QUOTE) return false;
    if (!areSame(this.#view, from, this.#at, length)) return false;
    this.#at += length + 1;
    return true;
  }

  #readName(field: number, names: NameBytes): boolean {
    const data = this.#data;
    const from = this.#at;
    let hash = 0;
    let at = from;
    for (let byte = data[at]; byte !== QUOTE; byte = data[at]) {
      if (byte === undefined || isNoText(byte)) return false;
      hash = NameBytes.hashed(hash, byte);
      at += 1;
    }
    const number = names.numberOf(data, from, at, hash);
    this.#from[field] = from;
    this.#to[field] = at;
    this.#number[field] = number;
    this.#at = at + 1;
    return number !== 0 || (field === FIELD.resourceUuid && at === from);
  }

  /** A number in plain digits, true or false. */
  #readLiteral(field: number): boolean {
    const data = this.#data;
    let at = this.#at;
    this.#from[field] = at;
    for (let byte = data[at]; byte !== COMMA && byte !== CLOSING_BRACE; byte = data[at]) {
      if (byte === undefined) return false;
      at += 1;
    }
    this.#to[field] = at;
    this.#at = at;
    return LITERALS[field]?.test(this.#text(field)) ?? false;
  }

  /** What is no ASCII is no part of a value that this is called for. */
  #text(field: number): string {
    return this.#data.toString('latin1', this.#from[field], this.#to[field]);
  }

  #skip(bytes: Buffer): boolean {
    if (!startsWith(this.#data, this.#at, bytes)) return false;
    this.#at += bytes.length;
    return true;
  }

  #skipKey(key: WordText | undefined): boolean {
    if (!key?.isAt(this.#view, this.#at)) return false;
    this.#at += key.length;
    return true;
  }

  #skipByte(byte: number): boolean {
    if (this.#data[this.#at] !== byte) return false;
    this.#at += 1;
    return true;
  }
}

/** The end of the data, and what stands in no text of JSON, or as an escape. */
function isNoText(byte: number | undefined): boolean {
  return byte === undefined || byte < FIRST_PRINTABLE || byte === BACKSLASH;
}

function startsWith(data: Buffer, from: number, bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += 1) if (data[from + at] !== bytes[at]) return false;
  return true;
}
