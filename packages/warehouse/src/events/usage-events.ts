/** Inserts into usage_events. */
import type { Warehouse } from '../clickhouse/connection.js';
import { BlockWriter, type PreparedInsert, preparedInsert } from '../clickhouse/insert.js';
import { EventRows, type NameField, type PricedEvent, WORD, WORDS_PER_ROW } from './event-rows.js';
import { Names } from './names.js';

/** Of a row in the block, about; the buffer grows where it is too low. */
const BYTES_PER_ROW = 90;

/** Writes a column of all rows. */
type ColumnWriter = (out: BlockWriter, parts: readonly EventRows[], rows: number) => void;

/** In the Native format; the server converts what the table keeps differently. */
export const USAGE_EVENTS: {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly write: ColumnWriter }[];
} = {
  name: 'usage_events',
  columns: [
    { name: 'account_id', ...names('accountId') },
    { name: 'event_id', type: 'UUID', write: words(WORD.eventId, 4) },
    { name: 'timestamp', type: "DateTime64(3, 'UTC')", write: words(WORD.timestamp, 2) },
    { name: 'workspace', ...names('workspace') },
    { name: 'resource_type', ...names('resourceType') },
    { name: 'resource_name', ...names('resourceName') },
    { name: 'resource_uuid', ...names('resourceUuid') },
    { name: 'billing_dimension', ...names('billingDimension') },
    { name: 'usage', type: 'Decimal(38, 9)', write: words(WORD.usage, 4) },
    { name: 'revision', type: 'UInt16', write: bits(Uint16Array, WORD.revision, 0) },
    { name: 'voided', type: 'Bool', write: bits(Uint8Array, WORD.revision, 16) },
    { name: 'cost', type: 'Decimal(38, 12)', write: words(WORD.cost, 4) },
    { name: 'price_revision', type: 'UInt16', write: bits(Uint16Array, WORD.price, 0) },
    { name: 'price_book', type: 'UInt16', write: bits(Uint16Array, WORD.price, 16) },
  ],
};

/** Stores events; storing one again changes nothing. See {@link PreparedInsert} for what success and failure mean. */
export async function insertUsageEvents(warehouse: Warehouse, events: readonly PricedEvent[]): Promise<void> {
  if (events.length > 0) await prepareUsageEvents([EventRows.of(events, new Names())])(warehouse);
}

/** One insert of all parts. @throws RangeError when the rows do not fit a buffer, which repeating cannot change */
export function prepareUsageEvents(parts: readonly EventRows[]): PreparedInsert {
  return preparedInsert(USAGE_EVENTS, encodeUsageEvents(parts));
}

/** A block of the Native format. */
export function encodeUsageEvents(parts: readonly EventRows[]): Buffer {
  const rows = parts.reduce((sum, { length }) => sum + length, 0);
  const out = new BlockWriter(1024 + rows * BYTES_PER_ROW);
  out.varUint(USAGE_EVENTS.columns.length);
  out.varUint(rows);
  for (const { name, type, write } of USAGE_EVENTS.columns) {
    out.string(name);
    out.string(type);
    // Nothing follows the header of a column without rows.
    if (rows > 0) write(out, parts, rows);
  }
  return out.bytes();
}

/** So many words from one on. */
function words(word: number, count: number): ColumnWriter {
  return (out, parts, rows) => {
    const column = new Uint32Array(rows * count);
    let row = 0;
    for (const { words, length } of parts) {
      for (let at = word; at < length * WORDS_PER_ROW; at += WORDS_PER_ROW) {
        for (let part = 0; part < count; part += 1) column[row * count + part] = words[at + part] ?? 0;
        row += 1;
      }
    }
    out.numbers(column);
  };
}

/** As many bits of a word as the array's numbers have, from one on. */
function bits(type: typeof Uint8Array | typeof Uint16Array, word: number, from: number): ColumnWriter {
  return (out, parts, rows) => {
    const column = new type(rows);
    let row = 0;
    for (const { words, length } of parts) {
      for (let at = word; at < length * WORDS_PER_ROW; at += WORDS_PER_ROW) {
        column[row] = (words[at] ?? 0) >>> from;
        row += 1;
      }
    }
    out.numbers(column);
  };
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
    for (const { names, words, length } of parts) {
      const keyOf = known.get(names) ?? new Uint32Array(names.size);
      known.set(names, keyOf);
      for (let at = WORD[field]; at < length * WORDS_PER_ROW; at += WORDS_PER_ROW) {
        const number = words[at] ?? 0;
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
    out.numbers(width === 0 ? Uint8Array.from(column) : width === 1 ? Uint16Array.from(column) : column);
  };
  return { type: 'LowCardinality(String)', write };
}

function keyFor(keys: Map<string, number>, text: string): number {
  const known = keys.get(text);
  if (known !== undefined) return known;
  keys.set(text, keys.size);
  return keys.size - 1;
}
