/**
 * Inserts into usage_events, as one block of ClickHouse's Native format: column after column, so that the server copies instead
 * of parsing. Measured from Node against JSON and RowBinary: docs/decisions/0003.
 * Source: ClickHouse documentation, "Native" format.
 */
import { insert, type PreparedInsert, type Warehouse } from '../clickhouse/connection.js';
import { type EventColumns, EventRows, type NameField, Names, type PricedEvent } from './event-rows.js';

/** About the bytes of a row in the block; the buffer grows where it is too low. */
const BYTES_PER_ROW = 90;

/** Writes a column of all rows. */
type ColumnWriter = (out: BlockWriter, parts: readonly EventRows[], rows: number) => void;

/** The server converts what the table keeps differently. */
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

/** Stores events; storing one again changes nothing. See {@link PreparedInsert} for what success and failure mean. */
export async function insertUsageEvents(warehouse: Warehouse, events: readonly PricedEvent[]): Promise<void> {
  if (events.length > 0) await prepareUsageEvents([EventRows.of(events, new Names())])(warehouse);
}

/** One insert of all parts. @throws RangeError when the rows do not fit a buffer, which repeating cannot change */
export function prepareUsageEvents(parts: readonly EventRows[]): PreparedInsert {
  const rows = parts.reduce((sum, { length }) => sum + length, 0);
  const block = encodeUsageEvents(parts, rows);
  return (warehouse) => insert(warehouse, INSERT, block, rows);
}

/** A block of the Native format. */
function encodeUsageEvents(parts: readonly EventRows[], rows: number): Buffer {
  const out = new BlockWriter(1024 + rows * BYTES_PER_ROW);
  out.varUint(COLUMNS.length);
  out.varUint(rows);
  for (const { name, type, write } of COLUMNS) {
    out.string(name);
    out.string(type);
    // Nothing follows the header of a column without rows.
    if (rows > 0) write(out, parts, rows);
  }
  return out.bytes();
}

/** Writes a column as it is in memory. @param each how many numbers a row has */
function numbers(column: Exclude<keyof EventColumns, NameField | 'timestamp'>, each = 1): ColumnWriter {
  return (out, parts) => {
    for (const { columns, length } of parts) out.numbers(columns[column].subarray(0, each * length));
  };
}

/** Milliseconds as whole numbers of 64 bits. */
function timestamps(out: BlockWriter, parts: readonly EventRows[]): void {
  for (const { columns, length } of parts) {
    for (let row = 0; row < length; row += 1) out.int64(columns.timestamp[row] ?? 0);
  }
}

/**
 * A name is written once, and each row says which one it has. Source: ClickHouse, `SerializationLowCardinality`: the version of
 * the format; then for the block its flags (the names come with it; how wide the numbers are), the names, and the numbers.
 */
const KEYS_VERSION = 1;
const HAS_NAMES = 0x600;

function names(field: NameField): { type: string; write: ColumnWriter } {
  const write: ColumnWriter = (out, parts, rows) => {
    const keys = new Map<string, number>();
    const column = new Uint32Array(rows);
    let row = 0;
    // Numbers of one Names to those of this block, plus one.
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

/** 42 UTF-16 units are at most 126 bytes, and a length below 128 takes one byte. */
const SHORT_TEXT = 42;

/** A byte buffer that grows. Integers are little-endian. */
class BlockWriter {
  #bytes: Buffer;
  #length = 0;

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Any safe integer. */
  int64(value: number): void {
    this.#reserve(8);
    const low = value >>> 0;
    this.#length = this.#bytes.writeUInt32LE(low, this.#length);
    this.#length = this.#bytes.writeInt32LE((value - low) / 0x1_0000_0000, this.#length);
  }

  string(text: string): void {
    // A UTF-16 unit takes at most three bytes in UTF-8; the length prefix at most five.
    this.#reserve(5 + text.length * 3);
    if (text.length <= SHORT_TEXT) {
      // The prefix is one byte whatever the characters: write the text first, which tells its length.
      const size = this.#bytes.write(text, this.#length + 1);
      this.#bytes[this.#length] = size;
      this.#length += 1 + size;
    } else {
      this.#varUint(Buffer.byteLength(text));
      this.#length += this.#bytes.write(text, this.#length);
    }
  }

  /** A whole column, as it is in memory: little-endian, as every processor that ClickHouse runs on. */
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
