import { z } from 'zod';
import type { Warehouse } from './client.js';

/** One SELECT with its parameters; only identifiers of the catalog are ever part of the text. */
export interface Statement {
  readonly query: string;
  readonly query_params: Readonly<Record<string, unknown>>;
}

/** Runs a SELECT and checks every row against its schema. */
export async function readRows<Row extends z.ZodType>(
  warehouse: Warehouse,
  statement: Statement,
  row: Row,
): Promise<z.output<Row>[]> {
  const result = await warehouse.query({
    query: statement.query,
    query_params: { ...statement.query_params },
    format: 'JSONEachRow',
  });
  return z.array(row).parse(await result.json());
}
