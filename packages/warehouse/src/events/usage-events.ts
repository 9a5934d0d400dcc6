/**
 * Inserts events as one block of ClickHouse's Native format, which stores column after column. So the server copies columns instead of
 * parsing rows. docs/decisions/0003 compares other formats. Source: ClickHouse documentation, "Native" format.
 */
import { insert, type PreparedInsert, type Warehouse } from '../clickhouse/connection.js';
import { type EventColumns, EventRows, type NameField, Names, type PricedEvent } from './event-rows.js';

const BYTES_PER_ROW = 90;

type ColumnWriter = (out: BlockWriter, parts: readonly EventRows[], rows: number) => void;

const COLUMNS: readonly { readonly name: string; readonly type: string; readonly write: ColumnWriter }[] = [
  { name: 'account_id', ...names('accountId') },
  { name: 'event_id', type: 'UUID', write: numbers('eventId', 4) },
  { name: 'timestamp', type: "DateTime64(3, 'UTC')", write: timestamps },
  { name: 'workspace', ...names('workspace') },
  { name: 'resource_type', ...names('resourceType') },
  { name: 'resource_name', ...names('resourceName') },
  { name: 'resource_uuid', ...names('resourceUuid') },
  { name: 'billing_dimension', ...names('billingDimension') },
  { name: 'usage', type: 'Decimal(38, 9)', write: numbers('usage', 2) },
  { name: 'revision', type: 'UInt16', write: numbers('revision') },
  { name: 'voided', type: 'Bool', write: numbers('voided') },
  { name: 'cost', type: 'Decimal(38, 12)', write: numbers('cost', 2) },
  { name: 'price_revision', type: 'UInt16', write: numbers('priceRevision') },
  { name: 'price_book', type: 'UInt16', write: numbers('priceBook') },
];

const INSERT = {
  name: 'insert_usage_events',
  query: `INSERT INTO usage_events (${COLUMNS.map(({ name }) => name).join(', ')}) FORMAT Native`,
};

/** Stores events. Storing an event again changes nothing. If the promise rejects, the events may or may not be stored. */
export async function insertUsageEvents(warehouse: Warehouse, events: readonly PricedEvent[]): Promise<void> {
  if (events.length > 0) await prepareUsageEvents([EventRows.of(events, new Names())])(warehouse);
}

/** @throws RangeError if the rows do not fit into a buffer. A retry cannot help. */
export function prepareUsageEvents(parts: readonly EventRows[]): PreparedInsert {
  const rows = parts.reduce((sum, { length }) => sum + length, 0);
  const block = encodeUsageEvents(parts, rows);
  return (warehouse) => insert(warehouse, INSERT, block, rows);
}

function encodeUsageEvents(parts: readonly EventRows[], rows: number): Buffer {
  const out = new BlockWriter(1024 + rows * BYTES_PER_ROW);
  out.varUint(COLUMNS.length);
  out.varUint(rows);
  for (const { name, type, write } of COLUMNS) {
    out.string(name);
    out.string(type);
    if (rows > 0) write(out, parts, rows);
  }
  return out.bytes();
}

/** Returns a function that copies a column unchanged from memory. Each row has `each` numbers. */
function numbers(column: Exclude<keyof EventColumns, NameField | 'timestamp'>, each = 1): ColumnWriter {
  return (out, parts) => {
    for (const { columns, length } of parts) out.numbers(columns[column].subarray(0, each * length));
  };
}

function timestamps(out: BlockWriter, parts: readonly EventRows[]): void {
  for (const { columns, length } of parts) {
    for (let row = 0; row < length; row += 1) out.int64(columns.timestamp[row] ?? 0);
  }
}

/**
 * Encoding of a LowCardinality column. The column starts with the format's version. One block follows: flags, the distinct names, and for
 * each row the number of its name. The flags say that the block contains the names, and how wide the numbers are. Source: ClickHouse,
 * `SerializationLowCardinality`.
 */
const KEYS_VERSION = 1;
const HAS_NAMES = 0x600;

function names(field: NameField): { type: string; write: ColumnWriter } {
  const write: ColumnWriter = (out, parts, rows) => {
    const keys = new Map<string, number>();
    const column = new Uint32Array(rows);
    let row = 0;
    // For each Names table: maps a name's number in the table to its number in this block plus one, or 0 if it has none in this block yet.
    const known = new Map<Names, Uint32Array>();
    for (const { names, columns, length } of parts) {
      const keyOf = known.get(names) ?? new Uint32Array(names.size);
      known.set(names, keyOf);
      for (let at = 0; at < length; at += 1) {
        const number = columns[field][at] ?? 0;
        if (keyOf[number] === 0) keyOf[number] = 1 + keyFor(keys, names.textOf(number));
        column[row] = (keyOf[number] ?? 0) - 1;
        row += 1;
      }
    }
    const width = keys.size <= 256 ? 0 : keys.size <= 65_536 ? 1 : 2;
    out.int64(KEYS_VERSION);
    out.int64(HAS_NAMES + width);
    out.int64(keys.size);
    for (const key of keys.keys()) out.string(key);
    out.int64(rows);
    out.numbers(width === 0 ? new Uint8Array(column) : width === 1 ? new Uint16Array(column) : column);
  };
  return { type: 'LowCardinality(String)', write };
}

function keyFor(keys: Map<string, number>, text: string): number {
  const known = keys.get(text);
  if (known !== undefined) return known;
  keys.set(text, keys.size);
  return keys.size - 1;
}

/** Up to this length, a string's length prefix is one byte: 42 UTF-16 code units take at most 126 bytes, and one byte holds up to 127. */
const SHORT_TEXT = 42;

/** Writes integers in little-endian byte order. */
class BlockWriter {
  #bytes: Buffer;
  #length = 0;

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  int64(value: number): void {
    this.#reserve(8);
    const low = value >>> 0;
    this.#length = this.#bytes.writeUInt32LE(low, this.#length);
    this.#length = this.#bytes.writeInt32LE((value - low) / 0x1_0000_0000, this.#length);
  }

  string(text: string): void {
    // A UTF-16 code unit takes at most three bytes in UTF-8; the length prefix takes at most five.
    this.#reserve(5 + text.length * 3);
    if (text.length <= SHORT_TEXT) {
      // The length prefix takes one byte. Leave this byte free, write the string, and then set the byte to the number of bytes written.
      const size = this.#bytes.write(text, this.#length + 1);
      this.#bytes[this.#length] = size;
      this.#length += 1 + size;
    } else {
      this.#varUint(Buffer.byteLength(text));
      this.#length += this.#bytes.write(text, this.#length);
    }
  }

  /** Copies a column unchanged, because every processor that ClickHouse supports is little-endian. */
  numbers({ buffer, byteOffset, byteLength }: ArrayBufferView): void {
    this.#reserve(byteLength);
    this.#bytes.set(new Uint8Array(buffer, byteOffset, byteLength), this.#length);
    this.#length += byteLength;
  }

  varUint(value: number): void {
    this.#reserve(5);
    this.#varUint(value);
  }

  #varUint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#length] = (rest & 0x7f) | 0x80;
      this.#length += 1;
      rest >>>= 7;
    }
    this.#bytes[this.#length] = rest;
    this.#length += 1;
  }

  #reserve(size: number): void {
    if (this.#length + size <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + size));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
