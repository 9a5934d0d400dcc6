/**
 * Inserts. Rows in bulk are encoded as one block of ClickHouse's Native format: column after column, so that the server
 * copies instead of parsing. Measured from Node against JSON and RowBinary: docs/decisions/0003.
 * Source: ClickHouse documentation, "Native" format.
 */
import type { Warehouse } from './connection.js';

export interface Column<Row> {
  readonly name: string;
  readonly type: string;
  readonly write: (out: BlockWriter, row: Row) => void;
}

export interface Table<Row> {
  readonly name: string;
  readonly columns: readonly Column<Row>[];
  /** An estimate; the buffer grows where it is too low. */
  readonly bytesPerRow: number;
}

/**
 * An insert whose rows are encoded, so that it can be repeated without encoding them again. When its promise resolves the rows
 * are durable; when it rejects they may or may not be, and the same rows may be inserted again.
 */
export type PreparedInsert = (warehouse: Warehouse) => Promise<void>;

/** One insert of the rows. @throws RangeError when they do not fit a buffer, which repeating cannot change */
export function prepareInsert<Row>(table: Table<Row>, rows: readonly Row[]): PreparedInsert {
  const block = encodeNativeBlock(table.columns, rows, table.bytesPerRow);
  return preparedInsert(table, block);
}

/** Of a block that holds these columns of the table. */
export function preparedInsert(table: NamedColumns, block: Buffer): PreparedInsert {
  const statement = { name: `insert_${table.name}`, query: insertStatement(table), query_params: {} };
  return (warehouse) => warehouse.run(statement, block);
}

export interface NamedColumns {
  readonly name: string;
  readonly columns: readonly { readonly name: string }[];
}

/** The statement's text, for a table of the schema. */
export function insertStatement({ name, columns }: NamedColumns): string {
  return `INSERT INTO ${name} (${columns.map((column) => column.name).join(', ')}) FORMAT Native`;
}

/** For a few rows of a table that is seldom written: as JSON, all with the columns of the first. */
export async function insertRows(
  warehouse: Warehouse,
  table: string,
  rows: readonly Readonly<Record<string, string | number | readonly number[]>>[],
  name = `insert_${table}`,
): Promise<void> {
  const [first] = rows;
  if (!first) return;
  const query = `INSERT INTO ${table} (${Object.keys(first).join(', ')}) FORMAT JSONEachRow`;
  await warehouse.run({ name, query, query_params: {} }, rows.map((row) => JSON.stringify(row)).join('\n'));
}

/** 42 UTF-16 units are at most 126 bytes, and a length below 128 takes one byte. */
const SHORT_TEXT = 42;

/** A byte buffer that grows, with a writer for each type that Meterline's tables use. Integers are little-endian. */
export class BlockWriter {
  #bytes: Buffer;
  #length = 0;

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  uint32(value: number): void {
    this.#reserve(4);
    this.#length = this.#bytes.writeUInt32LE(value, this.#length);
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

  /** A String of bytes that need not be text. */
  blob(content: Uint8Array): void {
    this.#reserve(5 + content.length);
    this.#varUint(content.length);
    this.#bytes.set(content, this.#length);
    this.#length += content.length;
  }

  /** A whole column, as it is in memory: little-endian, as every processor that ClickHouse runs on. */
  numbers({ buffer, byteOffset, byteLength }: Uint8Array | Uint16Array | Uint32Array): void {
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

export function encodeNativeBlock<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  bytesPerRow: number,
): Buffer {
  const out = new BlockWriter(1024 + rows.length * bytesPerRow);
  out.varUint(columns.length);
  out.varUint(rows.length);
  for (const { name, type, write } of columns) {
    out.string(name);
    out.string(type);
    for (const row of rows) write(out, row);
  }
  return out.bytes();
}
