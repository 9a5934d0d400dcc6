/**
 * Priced events as columns of numbers. What is collected for an insert is some 100 bytes an event outside the heap, instead of an object
 * with two bigints and seven strings, which the garbage collector copies while it waits. Names are numbers of a {@link Names}.
 */
import {
  type BillingDimension,
  type EpochMs,
  MS_PER_HOUR,
  type ResourceType,
  readUuid,
  type UsageEvent,
  uuidText,
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
export const NAME_FIELDS = [
  'accountId',
  'workspace',
  'resourceType',
  'resourceName',
  'resourceUuid',
  'billingDimension',
] as const;
export type NameField = (typeof NAME_FIELDS)[number];

/** Columns of `capacity` rows. Numbers are in the byte order of the Native format, which is that of this processor: little-endian. */
function emptyColumns(capacity: number) {
  return {
    /** Four words each: ClickHouse keeps a UUID as two numbers of 64 bits, the upper one first. */
    eventId: new Uint32Array(4 * capacity),
    timestamp: new Float64Array(capacity),
    /** Two numbers of 64 bits each, the lower one first: usage scaled by 10^9, cost by 10^12. */
    usage: new BigInt64Array(2 * capacity),
    cost: new BigInt64Array(2 * capacity),
    accountId: new Uint32Array(capacity),
    workspace: new Uint32Array(capacity),
    resourceType: new Uint32Array(capacity),
    resourceName: new Uint32Array(capacity),
    resourceUuid: new Uint32Array(capacity),
    billingDimension: new Uint32Array(capacity),
    revision: new Uint16Array(capacity),
    voided: new Uint8Array(capacity),
    priceRevision: new Uint16Array(capacity),
    priceBook: new Uint16Array(capacity),
    /** Index of the event in its job. */
    position: new Uint32Array(capacity),
  };
}
export type EventColumns = ReturnType<typeof emptyColumns>;

export class EventRows {
  readonly names: Names;
  readonly columns: EventColumns;
  readonly #capacity: number;
  #length = 0;
  #earliest: EpochMs = Number.POSITIVE_INFINITY;

  /** @param capacity the most events that it will hold */
  constructor(capacity: number, names: Names) {
    this.names = names;
    this.columns = emptyColumns(capacity);
    this.#capacity = capacity;
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
    const { columns, names } = this;
    const row = this.#length;
    if (row >= this.#capacity) throw new RangeError(`there is room for ${row} events only`);
    if (!readUuid(event.eventId, columns.eventId, 4 * row)) throw new RangeError(`${event.eventId} is not a UUID`);
    setInt128(columns.usage, row, event.usage);
    setInt128(columns.cost, row, cost);
    columns.timestamp[row] = event.timestamp;
    columns.accountId[row] = names.numberOf(event.accountId);
    columns.workspace[row] = names.numberOf(event.workspace);
    columns.resourceType[row] = names.numberOf(event.resourceType);
    columns.resourceName[row] = names.numberOf(event.resourceName);
    columns.resourceUuid[row] = names.numberOf(event.resourceUuid);
    columns.billingDimension[row] = names.numberOf(event.billingDimension);
    columns.revision[row] = uint16(event.revision);
    columns.voided[row] = event.voided ? 1 : 0;
    columns.priceRevision[row] = uint16(priceRevision);
    columns.priceBook[row] = uint16(priceBook);
    columns.position[row] = position;
    if (event.timestamp < this.#earliest) this.#earliest = event.timestamp;
    this.#length += 1;
  }

  timestampOf(row: number): EpochMs {
    return this.columns.timestamp[row] ?? 0;
  }

  positionOf(row: number): number {
    return this.columns.position[row] ?? 0;
  }

  eventOf(row: number): PricedEvent {
    const { columns, names } = this;
    const nameOf = (field: NameField) => names.textOf(columns[field][row] ?? 0);
    return {
      eventId: uuidText(columns.eventId, 4 * row),
      accountId: nameOf('accountId'),
      workspace: nameOf('workspace'),
      // What was added as one of these.
      resourceType: nameOf('resourceType') as ResourceType,
      resourceName: nameOf('resourceName'),
      resourceUuid: nameOf('resourceUuid'),
      billingDimension: nameOf('billingDimension') as BillingDimension,
      usage: int128Of(columns.usage, row),
      timestamp: this.timestampOf(row),
      revision: columns.revision[row] ?? 0,
      voided: columns.voided[row] === 1,
      cost: int128Of(columns.cost, row),
      priceRevision: columns.priceRevision[row] ?? 0,
      priceBook: columns.priceBook[row] ?? 0,
    };
  }

  /** The rows of these numbers, as a table of their own. */
  pick(rows: readonly number[]): EventRows {
    const picked = new EventRows(rows.length, this.names);
    for (const row of rows) {
      const event = this.eventOf(row);
      picked.add(event, event, this.positionOf(row));
    }
    return picked;
  }
}

/** More than there are hours in four centuries. */
const HOURS = 2 ** 22;

/** In which hours before an instant the accounts have events: an account once, its hours about once. */
export function hoursBefore(end: EpochMs, parts: readonly EventRows[]): AccountHours[] {
  const byAccount = new Map<string, EpochMs[]>();
  const known = new Map<Names, Set<number>>();
  for (const part of parts) {
    const { columns, names, earliest } = part;
    if (earliest >= end) continue;
    const seen = known.get(names) ?? new Set();
    known.set(names, seen);
    for (let row = 0; row < part.length; row += 1) {
      const timestamp = part.timestampOf(row);
      if (timestamp >= end) continue;
      const account = columns.accountId[row] ?? 0;
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

const MAX_INT64 = 2n ** 63n - 1n;

/** @param column of zeros @throws RangeError */
function setInt128(column: BigInt64Array, row: number, value: bigint): void {
  column[2 * row] = value;
  if (value >= 0n && value <= MAX_INT64) return;
  if (value !== BigInt.asIntN(128, value)) throw new RangeError(`${value} is out of range for Int128`);
  column[2 * row + 1] = value >> 64n;
}

function int128Of(column: BigInt64Array, row: number): bigint {
  return ((column[2 * row + 1] ?? 0n) << 64n) | BigInt.asUintN(64, column[2 * row] ?? 0n);
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
