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

/** Inserts rows in one statement, as a {@link PreparedInsert} does. */
export async function insertBlock<Row>(warehouse: Warehouse, table: Table<Row>, rows: readonly Row[]): Promise<void> {
  if (rows.length > 0) await prepareInsert(table, rows)(warehouse);
}

/** @throws RangeError when the rows do not fit a buffer, which repeating cannot change */
export function prepareInsert<Row>(table: Table<Row>, rows: readonly Row[]): PreparedInsert {
  const block = encodeNativeBlock(table.columns, rows, table.bytesPerRow);
  const statement = { name: `insert_${table.name}`, query: insertStatement(table), query_params: {} };
  return (warehouse) => warehouse.run(statement, block);
}

/** The statement's text, for a table of the schema. */
export function insertStatement({ name, columns }: Table<never>): string {
  return `INSERT INTO ${name} (${columns.map((column) => column.name).join(', ')}) FORMAT Native`;
}

/** For a few rows of a table that is seldom written: as JSON, all with the columns of the first. Else as {@link insertBlock}. */
export async function insertRows(
  warehouse: Warehouse,
  table: string,
  rows: readonly Readonly<Record<string, string | number>>[],
  name = `insert_${table}`,
): Promise<void> {
  const [first] = rows;
  if (!first) return;
  const query = `INSERT INTO ${table} (${Object.keys(first).join(', ')}) FORMAT JSONEachRow`;
  await warehouse.run({ name, query, query_params: {} }, rows.map((row) => JSON.stringify(row)).join('\n'));
}

const HEX_DIGITS = new Uint8Array(128);
for (let digit = 0; digit < 16; digit += 1) {
  HEX_DIGITS['0123456789abcdef'.charCodeAt(digit)] = digit;
  HEX_DIGITS['0123456789ABCDEF'.charCodeAt(digit)] = digit;
}

const HYPHEN = '-'.charCodeAt(0);
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

  uint8(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length] = value;
    this.#length += 1;
  }

  uint16(value: number): void {
    this.#reserve(2);
    this.#length = this.#bytes.writeUInt16LE(value, this.#length);
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

  int128(value: bigint): void {
    this.#reserve(16);
    this.#length = this.#bytes.writeBigUInt64LE(BigInt.asUintN(64, value), this.#length);
    this.#length = this.#bytes.writeBigInt64LE(value >> 64n, this.#length);
  }

  /** UUID in either case; ClickHouse keeps it as two 64-bit integers, each little-endian. */
  uuid(text: string): void {
    this.#reserve(16);
    let at = 0;
    for (let byte = 0; byte < 16; byte += 1) {
      if (text.charCodeAt(at) === HYPHEN) at += 1;
      const high = HEX_DIGITS[text.charCodeAt(at)] ?? 0;
      const low = HEX_DIGITS[text.charCodeAt(at + 1)] ?? 0;
      this.#bytes[this.#length + (byte < 8 ? 7 - byte : 23 - byte)] = (high << 4) | low;
      at += 2;
    }
    this.#length += 16;
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
