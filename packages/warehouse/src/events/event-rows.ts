/**
 * Holds priced events in memory until they are inserted. Each column is an array of numbers outside the JavaScript heap, and an event takes
 * about 100 bytes. As an object, it would have two bigints and seven strings, which the garbage collector would copy while the event waits.
 * Strings are replaced by numbers from a {@link Names} table.
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

interface Pricing {
  /** USD, scaled by 10^12. */
  readonly cost: bigint;
  /** 0 at ingest. Each re-pricing raises the revision. */
  readonly priceRevision: number;
  readonly priceBook: number;
}

export type PricedEvent = UsageEvent & Pricing;

export const NAME_FIELDS = [
  'accountId',
  'workspace',
  'resourceType',
  'resourceName',
  'resourceUuid',
  'billingDimension',
] as const;
export type NameField = (typeof NAME_FIELDS)[number];

/** Typed arrays use the byte order of this processor, which must be little-endian like the Native format. */
function emptyColumns(capacity: number) {
  return {
    /** Four 32-bit numbers per row. ClickHouse stores a UUID as two 64-bit numbers, the upper half first. */
    eventId: new Uint32Array(4 * capacity),
    timestamp: new Float64Array(capacity),
    /** Two 64-bit numbers per row, the lower half first. Usage is scaled by 10^9, cost by 10^12. */
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
    position: new Uint32Array(capacity),
  };
}
export type EventColumns = ReturnType<typeof emptyColumns>;
type EventColumn = EventColumns[keyof EventColumns];

export class EventRows {
  readonly names: Names;
  readonly columns: EventColumns;
  readonly #capacity: number;
  #length = 0;
  #earliest: EpochMs = Number.POSITIVE_INFINITY;

  constructor(capacity: number, names: Names) {
    this.names = names;
    this.columns = emptyColumns(capacity);
    this.#capacity = capacity;
  }

  static of(events: readonly PricedEvent[], names: Names): EventRows {
    const rows = new EventRows(events.length, names);
    for (const [position, event] of events.entries()) rows.add(event, event, position);
    return rows;
  }

  get length(): number {
    return this.#length;
  }

  /** The timestamp of the earliest event; Infinity if there are no rows. */
  get earliest(): EpochMs {
    return this.#earliest;
  }

  /** @throws RangeError if a value does not fit its column, which is a bug */
  add(event: UsageEvent, { cost, priceRevision, priceBook }: Pricing, position: number): void {
    const { columns, names } = this;
    const row = this.#length;
    if (row >= this.#capacity) throw new RangeError(`the table is full: its capacity is ${row} events`);
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
      // The casts are safe, because add() stored a valid resource type and billing dimension.
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

  pick(rows: readonly number[]): EventRows {
    const picked = new EventRows(rows.length, this.names);
    const targets = Object.values(picked.columns);
    for (const [index, column] of Object.values(this.columns).entries()) {
      const target = targets[index];
      if (target) copyRows(column, target, rows, column.byteLength / this.#capacity);
    }
    picked.#length = rows.length;
    for (const timestamp of picked.columns.timestamp) picked.#earliest = Math.min(picked.#earliest, timestamp);
    return picked;
  }
}

/** Copies rows of `width` bytes each. Copying bytes is ten times as fast as a loop over arrays of several element types. */
function copyRows(column: EventColumn, target: EventColumn, rows: readonly number[], width: number): void {
  const [from, to] = [new Uint8Array(column.buffer), new Uint8Array(target.buffer)];
  let at = 0;
  for (const row of rows) {
    for (let byte = width * row; byte < width * (row + 1); byte += 1) {
      to[at] = from[byte] ?? 0;
      at += 1;
    }
  }
}

const HOURS = 2 ** 22;

/** Returns for each account the hours before `end` in which it has events. Each account appears once; an hour may appear twice. */
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

/** Writes a value into a row that is still zero. Throws RangeError if the value does not fit. */
function setInt128(column: BigInt64Array, row: number, value: bigint): void {
  column[2 * row] = value;
  if (value >= 0n && value <= MAX_INT64) return;
  if (value !== BigInt.asIntN(128, value)) throw new RangeError(`${value} is out of range for Int128`);
  column[2 * row + 1] = value >> 64n;
}

function int128Of(column: BigInt64Array, row: number): bigint {
  return ((column[2 * row + 1] ?? 0n) << 64n) | BigInt.asUintN(64, column[2 * row] ?? 0n);
}

/** Maps strings, which often repeat from event to event, to numbers. 0 is the empty string. Start a new table once this one {@link isLarge}. */
export class Names {
  readonly #numbers = new Map<string, number>([['', 0]]);
  readonly #texts: string[] = [''];
  #characters = 0;

  get size(): number {
    return this.#texts.length;
  }

  /** True once the table takes tens of megabytes. Resource UUIDs can make it this large, because each event may have its own. */
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

  textOf(number: number): string {
    const text = this.#texts[number];
    if (text === undefined) throw new RangeError(`no text has the number ${number}`);
    return text;
  }
}
