import { z } from 'zod';
import type { Warehouse } from './client.js';
import { observed } from './observation.js';
import type { ScalarParameters } from './statement-pool.js';

/** Part of a statement, with its parameters; only identifiers of the catalog are ever part of the text. */
export interface Relation {
  readonly query: string;
  readonly query_params: Readonly<Record<string, unknown>>;
}

/** One statement. */
export interface Statement extends Relation {
  /** Stable: dashboards and traces name the statement by it. */
  readonly name: string;
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

/** Runs a statement that answers with nothing. Resolves when it has ended. */
export async function execute(warehouse: Warehouse, { name, query, query_params }: Statement): Promise<void> {
  await observed(warehouse, name, () => warehouse.command({ query, query_params: { ...query_params } }));
}

/** A statement that somebody waits for. */
export interface PromptStatement extends Statement {
  readonly query_params: ScalarParameters;
}

/** As {@link readRows}, on the quickest way. */
export async function readRowsPromptly<Row extends z.ZodType>(
  warehouse: Warehouse,
  { name, query, query_params }: PromptStatement,
  row: Row,
): Promise<z.output<Row>[]> {
  return z.array(row).parse(await observed(warehouse, name, () => warehouse.statements.read(query, query_params)));
}

/** As {@link execute}, on the quickest way. */
export async function executePromptly(
  warehouse: Warehouse,
  { name, query, query_params }: PromptStatement,
): Promise<void> {
  await observed(warehouse, name, () => warehouse.statements.run(query, query_params));
}
