/** Writes FOCUS charges as Parquet, with exact decimals and typed times. */
import { parseDecimalText, toScaled } from '@meterline/catalog';
import {
  FOCUS_COLUMNS,
  FOCUS_VERSION,
  type FocusCharge,
  type FocusColumn,
  type FocusSink,
} from '@meterline/client/focus';
import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import type { WaitingOutput } from './whole-output.js';

/** Number of rows per row group. About this many rows are held in memory. */
const ROWS_IN_GROUP = 10_000;
/** The widest decimal that Parquet readers support has 128 bits, or 38 digits. */
const DECIMAL_BYTES = 16;
const DECIMAL_DIGITS = 38;

const SCHEMA: SchemaElement[] = [
  { name: 'focus', num_children: FOCUS_COLUMNS.length },
  ...FOCUS_COLUMNS.map(
    (column): SchemaElement => ({ name: column.name, repetition_type: 'OPTIONAL', ...typeOf(column) }),
  ),
];

function typeOf(column: FocusColumn): Omit<SchemaElement, 'name'> {
  if (column.type === 'String') return { type: 'BYTE_ARRAY', converted_type: 'UTF8' };
  if (column.type === 'Date/Time') return { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' };
  const width = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: DECIMAL_BYTES } as const;
  return { ...width, converted_type: 'DECIMAL', precision: DECIMAL_DIGITS, scale: column.scale };
}

/** Opens a sink that writes each row group to the output and then frees its memory. */
export function openParquet(output: WaitingOutput): FocusSink & { finish(): Promise<void> } {
  const bytes = new ByteWriter();
  const flush = async () => {
    const group = bytes.getBytes();
    bytes.index = 0;
    await output.appendFile(group);
  };
  const writer = new ParquetWriter({
    writer: Object.assign(bytes, { flush, finish: flush }),
    schema: SCHEMA,
    kvMetadata: [{ key: 'FocusVersion', value: FOCUS_VERSION }],
    createdBy: 'Meterline',
  });
  let waiting: FocusCharge[] = [];
  const writeGroup = async () => {
    const charges = waiting;
    waiting = [];
    const columnData = FOCUS_COLUMNS.map((column) => ({
      name: column.name,
      data: charges.map((charge) => cellOf(column, charge)),
      offsetIndex: false,
    }));
    await writer.write({ columnData, rowGroupSize: charges.length });
  };
  return {
    write: async (charges) => {
      waiting.push(...charges);
      if (waiting.length >= ROWS_IN_GROUP) await writeGroup();
    },
    finish: async () => {
      if (waiting.length > 0) await writeGroup();
      await writer.finish();
    },
  };
}

/** Returns a cell. A bigint is either an unscaled decimal or a time in milliseconds. */
function cellOf(column: FocusColumn, charge: FocusCharge): string | bigint | null {
  if (column.type === 'String') return charge[column.name];
  if (column.type === 'Date/Time') return BigInt(charge[column.name]);
  return scaled(charge[column.name], column.scale);
}

function scaled(text: string, scale: number): bigint {
  const digits = parseDecimalText(text);
  if (!digits) throw new RangeError(`not a decimal: ${text}`);
  return toScaled(digits, scale);
}
