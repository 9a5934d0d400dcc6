import { z } from 'zod';
import type { Warehouse } from './client.js';
import { observed } from './observation.js';

/** One SELECT with its parameters; only identifiers of the catalog are ever part of the text. */
export interface Statement {
  /** Stable: dashboards and traces name the statement by it. */
  readonly name: string;
  readonly query: string;
  readonly query_params: Readonly<Record<string, unknown>>;
}

/** Runs a SELECT and checks every row against its schema. */
export async function readRows<Row extends z.ZodType>(
  warehouse: Warehouse,
  statement: Statement,
  row: Row,
): Promise<z.output<Row>[]> {
  const rows = await observed(warehouse, statement.name, async () => {
    const result = await warehouse.query({
      query: statement.query,
      query_params: { ...statement.query_params },
      format: 'JSONEachRow',
    });
    return result.json();
  });
  return z.array(row).parse(rows);
}
