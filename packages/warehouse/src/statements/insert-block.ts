import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Warehouse } from '../client.js';
import { type Column, encodeNativeBlock } from '../native-block.js';
import { observed } from '../observation.js';

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
  await prepareInsert(table, rows)(warehouse);
}

/** An insert whose rows are encoded, so that it can be repeated without encoding them again. */
export type PreparedInsert = (warehouse: Warehouse) => Promise<void>;

/** @throws RangeError when the rows do not fit a buffer, which repeating cannot mend */
export function prepareInsert<Row>(table: Table<Row>, rows: readonly Row[]): PreparedInsert {
  const block = encodeNativeBlock(table.columns, rows, table.bytesPerRow);
  return (warehouse) =>
    observed(warehouse, `insert_${table.name}`, async () => {
      const { stream } = await warehouse.exec({
        query: insertStatement(table),
        values: Readable.from([block], { objectMode: false }),
        // The status must tell the outcome: no header may leave before the insert has ended.
        clickhouse_settings: { wait_end_of_query: 1, send_progress_in_http_headers: 0 },
      });
      const answer = await text(stream);
      if (answer !== '') throw new Error(`the insert into ${table.name} was answered with: ${answer.slice(0, 500)}`);
    });
}
