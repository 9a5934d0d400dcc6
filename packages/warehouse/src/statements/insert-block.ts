import { Readable } from 'node:stream';
import type { Warehouse } from '../client.js';
import { type Column, encodeNativeBlock } from '../native-block.js';

export interface Table<Row> {
  readonly name: string;
  readonly columns: readonly Column<Row>[];
  readonly bytesPerRow: number;
}

/** The statement's text, for a table of the schema. */
export function insertStatement({ name, columns }: Table<never>): string {
  return `INSERT INTO ${name} (${columns.map((column) => column.name).join(', ')}) FORMAT Native`;
}

/**
 * Inserts rows in one statement. When the promise resolves the rows are durable; when it rejects they may or may not
 * be, and the same rows may be inserted again.
 */
export async function insertBlock<Row>(warehouse: Warehouse, table: Table<Row>, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  const block = encodeNativeBlock(table.columns, rows, table.bytesPerRow);
  const { stream } = await warehouse.exec({
    query: insertStatement(table),
    values: Readable.from([block], { objectMode: false }),
  });
  // An insert answers with an empty body; reading it to its end gives the connection back to the pool.
  await stream.resume().toArray();
}
